"""Files of strangers: what would be decoded for ever is refused everywhere, and no picture becomes white or lies."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image

from camserver.base.errors import BadInput
from camserver.commands.analyze_files import Unusable, read_upright
from camserver.media.box_picture import draw_boxes
from camserver.media.foreign_picture import SCANS_MAX, check_scans
from camserver.media.jpeg_picture import JpegPicture
from camserver.services.analyzer.pictures import decode
from tests.services.analyzer.hostile import of_scans

GRADIENT = np.tile(np.linspace(0, 65_535, 256, dtype=np.uint16), (64, 1))


def encoded(picture: Image.Image, form: str, exif: Image.Exif | None = None) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **({} if exif is None else {"exif": exif}))
    return out.getvalue()


def red(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(picture.convert("RGB"))[:, :, 0].astype(int)


READERS: dict[str, Callable[[bytes, Path], object]] = {
    "analyzer": lambda content, _: decode(content, "picture"),
    "worker": lambda content, _: JpegPicture(content, 640),
    "boxes": lambda content, _: draw_boxes(content, []),
    "command": lambda content, folder: read_upright(written(content, folder)),
}


def written(content: bytes, folder: Path) -> Path:
    path = folder / "picture.jpg"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("reader", READERS)
def test_a_jpeg_of_endless_scans_is_refused_by_every_reader(reader: str, tmp_path: Path) -> None:
    READERS[reader](of_scans(SCANS_MAX), tmp_path)
    with pytest.raises(BadInput, match="more than 100 scans"):
        READERS[reader](of_scans(SCANS_MAX + 1), tmp_path)


def test_a_png_may_hold_those_bytes_as_often_as_it_likes() -> None:
    check_scans(b"\x89PNG" + b"\xff\xda" * 1000, "picture")


def test_16_bits_a_pixel_are_no_white(tmp_path: Path) -> None:
    content = encoded(Image.fromarray(GRADIENT), "PNG")
    wanted = GRADIENT.astype(int) >> 8
    assert np.array_equal(np.asarray(decode(content, "picture"))[:, :, 0], wanted)
    assert np.abs(red(draw_boxes(content, [])) - wanted).max() <= 6
    assert np.abs(red(read_upright(written(content, tmp_path))) - wanted).max() <= 6


def test_a_large_one_of_16_bits_keeps_its_shades() -> None:
    large = Image.fromarray(np.repeat(np.repeat(GRADIENT, 50, axis=0), 16, axis=1))
    small = np.asarray(decode(encoded(large, "PNG"), "picture"))[:, :, 0].astype(int)
    assert small.shape[1] < large.width
    assert np.abs(small[5] - np.linspace(0, 255, small.shape[1])).max() <= 2


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("form", "size"), [("JPEG", (64, 48)), ("PNG", (64, 48)), ("PNG", (4000, 3000))])
def test_it_is_put_upright_alike_over_http_and_by_command(
    orientation: int, form: str, size: tuple[int, int], tmp_path: Path
) -> None:
    """Bright where the file's first pixel is."""
    picture = Image.new("RGB", size)
    picture.paste((255, 255, 255), (0, 0, size[0] // 2, size[1] // 2))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    content = encoded(picture, form, exif)
    upright = np.asarray(decode(content, "picture"))[:, :, 0]
    corners = {(0, 0): (1, 5), (0, -1): (2, 6), (-1, -1): (3, 7), (-1, 0): (4, 8)}
    bright = [corner for corner in corners if upright[corner] > 128]
    assert [orientation in corners[corner] for corner in bright] == [True]
    assert (upright.shape[1] > upright.shape[0]) == (orientation < 5)
    if size[0] < 100:
        by_command = red(read_upright(written(content, tmp_path)))
        assert np.abs(by_command - upright).max() <= 12


def test_a_position_that_can_not_be_read_is_none() -> None:
    content = bytearray(encoded(Image.new("RGB", (64, 48)), "JPEG", Image.Exif()))
    content[2:2] = b"\xff\xe1\x00\x10Exif\x00\x00" + b"\xff" * 8
    assert decode(bytes(content), "picture").size == (64, 48)


def test_the_command_says_it_in_both_languages(tmp_path: Path) -> None:
    with pytest.raises(Unusable) as refused:
        read_upright(written(of_scans(SCANS_MAX + 1), tmp_path))
    assert "走査" in refused.value.said.ja
