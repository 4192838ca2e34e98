import io

import pytest
from PIL import Image

from camserver.base.errors import BadInput
from camserver.media.grid_picture import LINE, WIDTH_MIN, draw_grid


def _picture(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (90, 90, 90)).save(out, "JPEG")
    return out.getvalue()


def _is_line(pixel: tuple[int, ...]) -> bool:
    return all(abs(value - wanted) < 80 for value, wanted in zip(pixel, LINE, strict=True))


def test_lines_are_at_the_tenths_of_width_and_height() -> None:
    with Image.open(io.BytesIO(draw_grid(_picture(1600, 900)))) as drawn:
        picture = drawn.convert("RGB")
    assert picture.size == (1600, 900)
    # Between two lines across, at a place of no line down, and the other way round.
    for tenth in range(1, 10):
        row = [picture.getpixel((round(tenth / 10 * 1600) + step, 430)) for step in (-1, 0, 1)]
        column = [picture.getpixel((840, round(tenth / 10 * 900) + step)) for step in (-1, 0, 1)]
        assert any(_is_line(pixel) for pixel in row if isinstance(pixel, tuple))
        assert any(_is_line(pixel) for pixel in column if isinstance(pixel, tuple))
    assert picture.getpixel((840, 430)) == pytest.approx((90, 90, 90), abs=12)


def test_a_small_picture_is_enlarged_so_that_the_numbers_can_be_read() -> None:
    with Image.open(io.BytesIO(draw_grid(_picture(640, 360)))) as drawn:
        assert drawn.width >= WIDTH_MIN
        assert drawn.width * 360 == drawn.height * 640


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(BadInput, match="no readable"):
        draw_grid(b"no picture")
