import contextlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from camserver.base.errors import BadInput
from camserver.media.pictures import (
    PIXELS_MAX,
    Gray,
    blur_score,
    develop,
    difference_hash,
    measure_change,
)
from camserver.media.test_pictures import draw


def jpeg(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()


def flat(shade: int, size: tuple[int, int] = (10, 10)) -> Gray:
    return Gray(size, bytes([shade]) * (size[0] * size[1]))


def made(data: bytes, before: Gray | None = None) -> tuple[tuple[int, int], tuple[int, int], Gray, float, float]:
    one = develop(data, infer_width=640, diff_width=320, before=before, pixel_delta=20)
    with Image.open(io.BytesIO(one.infer_jpeg)) as infer:
        assert infer.format == "JPEG"
        assert infer.size == one.infer_size
    return one.full_size, one.infer_size, one.gray, one.change.diff_ratio, one.change.luma_delta


def test_infer_picture_is_640_wide_and_keeps_its_shape() -> None:
    full, infer, gray, _, _ = made(draw((1920, 1080), 3, 10))
    assert (full, infer, gray.size) == ((1920, 1080), (640, 360), (320, 180))


def test_small_picture_is_not_enlarged() -> None:
    full, infer, gray, _, _ = made(draw((200, 100), 3, 10))
    assert (full, infer, gray.size) == ((200, 100), (200, 100), (200, 100))


def test_without_picture_before_everything_changed() -> None:
    *_, ratio, delta = made(draw((640, 360), 0, 10))
    assert (ratio, delta) == (1.0, 255.0)


def test_other_size_than_before_counts_as_no_picture_before() -> None:
    assert measure_change(flat(1), flat(1, (10, 20)), 20).diff_ratio == 1.0


def test_same_picture_changed_nothing() -> None:
    still = draw((640, 360), None, 1)
    _, _, gray, _, _ = made(still)
    *_, ratio, delta = made(still, gray)
    assert (ratio, delta) == (0.0, 0.0)


def test_moving_shape_is_seen() -> None:
    _, _, gray, _, _ = made(draw((640, 360), 0, 10))
    *_, ratio, _ = made(draw((640, 360), 5, 10), gray)
    assert 0.003 < ratio < 0.5


@pytest.mark.parametrize(("shade", "changed"), [(120, 0.0), (121, 1.0), (80, 0.0), (79, 1.0)])
def test_a_pixel_changed_when_its_luma_did_by_more_than_20(shade: int, changed: float) -> None:
    change = measure_change(flat(shade), flat(100), 20)
    assert change.diff_ratio == changed
    # Signed: now minus before.
    assert change.luma_delta == shade - 100


def test_ratio_is_the_share_of_changed_pixels() -> None:
    now = Gray((10, 10), bytes([200] * 7 + [100] * 93))
    assert measure_change(now, flat(100), 20).diff_ratio == pytest.approx(0.07)


def test_blur_score_rises_as_a_picture_gets_blurrier() -> None:
    sharp = Image.effect_noise((320, 180), 60)
    scores = [blur_score(sharp.filter(ImageFilter.GaussianBlur(radius))) for radius in (0, 1, 2, 4, 8)]
    assert scores == sorted(scores)
    assert 0 <= scores[0] < 5
    assert 90 < scores[-1] <= 100


def test_blur_score_of_a_known_laplacian() -> None:
    # Columns 0,0,4,4,... : the second derivative is +4 or -4 at every pixel, so its variance is 16.
    row = bytes([100 + (4 if x % 4 in (2, 3) else 0) for x in range(402)])
    score = blur_score(Image.frombytes("L", (402, 50), row * 50))
    assert score == pytest.approx(100 / (1 + 16 / 100), abs=0.5)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (64, 1)])
def test_tiny_pictures_are_fine(size: tuple[int, int]) -> None:
    full, *_ = made(jpeg(Image.new("RGB", size)))
    assert full == size


def test_hash_is_of_what_is_seen_not_of_the_bytes() -> None:
    picture = Image.effect_noise((640, 360), 80).filter(ImageFilter.GaussianBlur(20))
    lighter = picture.point([min(shade + 5, 255) for shade in range(256)])
    mirrored = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    assert difference_hash(picture) == difference_hash(lighter)
    assert difference_hash(picture) != difference_hash(mirrored)
    assert len(difference_hash(picture)) == 16


@given(st.integers(0, 3000))
def test_cut_off_or_garbled_picture_is_refused_or_read_but_never_crashes(cut: int) -> None:
    data = draw((320, 180), 1, 10)
    for broken in (data[:cut], data[:cut] + b"\xff" + data[cut + 1 :]):
        with contextlib.suppress(BadInput):
            made(broken)


def test_other_formats_are_refused() -> None:
    out = io.BytesIO()
    Image.new("RGB", (10, 10)).save(out, "PNG")
    with pytest.raises(BadInput, match="no readable JPEG"):
        made(out.getvalue())


@pytest.mark.parametrize("size", [(9000, 5000), (14_000, 13_000)])
def test_picture_of_too_many_pixels_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    assert size[0] * size[1] > PIXELS_MAX
    head = bytearray(jpeg(Image.new("L", (8, 8))))
    frame = head.index(b"\xff\xc0")
    head[frame + 5 : frame + 9] = size[1].to_bytes(2, "big") + size[0].to_bytes(2, "big")
    with pytest.raises(BadInput):
        made(bytes(head))
