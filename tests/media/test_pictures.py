import contextlib
import io

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.gate import GatePolicy
from camserver.media.change import Reference
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.pictures import PIXELS_MAX, Developed, Margins, develop, fit_width
from camserver.media.test_pictures import draw


def jpeg(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()


def made(data: bytes, before: Reference | None = None) -> Developed:
    one = develop(
        JpegPicture(data, 640),
        infer_width=640,
        diff_width=320,
        before=before or Reference(),
        pixel_delta=20,
        with_contrast=True,
    )
    with Image.open(io.BytesIO(one.infer_jpeg)) as infer:
        assert infer.format == "JPEG"
        assert infer.size == one.infer_size
    return one


def sizes(one: Developed) -> list[tuple[int, int]]:
    assert one.reference.gray is not None
    rows, columns = one.reference.gray.shape
    return [one.full_size, one.infer_size, (columns, rows)]


def test_infer_picture_is_640_wide_and_keeps_its_shape() -> None:
    one = made(draw((1920, 1080), 3, 10))
    assert sizes(one) == [(1920, 1080), (640, 360), (320, 180)]
    assert one.infer_margins == Margins()
    assert not one.infer_margins.any


def test_small_picture_is_not_enlarged() -> None:
    assert sizes(made(draw((200, 100), 3, 10))) == [(200, 100)] * 3


def test_same_picture_changed_nothing() -> None:
    still = draw((640, 360), None, 1)
    again = made(still, made(still).reference).measured
    assert (again.diff_ratio, again.luma_delta) == (0.0, 0.0)


def test_moving_shape_is_seen() -> None:
    reference = made(draw((640, 360), None, 1)).reference
    for _ in range(20):  # what is usual has to be learned
        reference = made(draw((640, 360), None, 1), reference).reference
    moved = made(draw((640, 360), 5, 10), reference).measured
    assert 0.003 < moved.diff_ratio < 0.5
    assert moved.z_max is not None
    assert moved.z_max > GatePolicy().z_pass


def test_the_hash_is_of_the_infer_picture() -> None:
    one = made(draw((640, 360), 5, 10))
    assert one.infer_hash64_hex == f"{xxhash.xxh3_64_intdigest(one.infer_jpeg):016x}"
    assert one.infer_hash64_hex != made(draw((640, 360), 6, 10)).infer_hash64_hex


def test_the_full_picture_is_the_one_that_came() -> None:
    data = draw((640, 360), 5, 10)
    assert JpegPicture(data, 640).full() == data


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (64, 1)])
def test_tiny_pictures_are_fine(size: tuple[int, int]) -> None:
    assert made(jpeg(Image.new("RGB", size))).full_size == size


def test_gray_pictures_are_fine() -> None:
    assert made(jpeg(Image.new("L", (64, 48), 99))).infer_size == (64, 48)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 4000))
def test_a_fitted_picture_is_never_larger_and_keeps_its_shape(width: int, height: int, most: int) -> None:
    fitted = fit_width((width, height), most)
    assert 1 <= fitted[0] <= min(width, most)
    assert 1 <= fitted[1] <= height
    assert abs(fitted[1] - height * fitted[0] / width) <= 1


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


def test_gray_is_an_area_average() -> None:
    columns = np.zeros((64, 640), np.uint8)
    columns[:, ::2] = 200
    gray = JpegPicture(jpeg(Image.fromarray(columns)), 640).gray(320)
    assert gray.shape == (32, 320)
    assert abs(float(gray.mean()) - 100) < 3
    assert gray.std() < 5
