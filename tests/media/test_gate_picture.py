import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from camserver.media.contrast import Compared, compare
from camserver.media.gate_picture import draw
from camserver.media.watched import Watch
from tests.media.test_contrast import learned, seen, visited

RIGHT_HALF = ((0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 1.0))


def opened(jpeg: bytes) -> NDArray[np.int16]:
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), np.int16)


def found() -> tuple[NDArray[np.uint8], Compared]:
    before, random = learned(60)
    gray = seen(visited(), 2.0, random)
    return gray, compare(gray, before.scene)


def test_the_changed_cell_is_red_and_the_rest_gray() -> None:
    gray, compared = found()
    picture = opened(draw(gray, compared, Watch(), 4.0))
    assert picture.shape == (540, 960, 3)
    assert compared.cell is not None
    row, column = compared.cell
    red, _, blue = picture[row * 24 + 12, column * 24 + 12]
    assert red > blue + 80
    far = picture[400:500, 700:900]
    assert np.abs(far[..., 0] - far[..., 2]).mean() < 8


def test_what_is_not_watched_is_blue() -> None:
    gray, compared = found()
    picture = opened(draw(gray, compared, Watch(ignored=(RIGHT_HALF,)), 4.0))
    right, left = picture[:, 500:], picture[300:, :460]
    assert (right[..., 2] - right[..., 0]).mean() > 30
    assert np.abs(left[..., 2] - left[..., 0]).mean() < 8


def test_a_look_with_nothing_to_compare_with_is_just_the_picture() -> None:
    gray, _ = found()
    for compared in (None, compare(gray, None)):
        picture = opened(draw(gray, compared, Watch(), 4.0))
        assert np.abs(picture[..., 0] - picture[..., 2]).max() < 8


def test_odd_sizes_are_fine() -> None:
    random = np.random.default_rng(1)
    for shape in ((181, 321), (70, 33), (5, 1000), (500, 320)):
        before = compare(random.integers(0, 255, shape).astype(np.uint8), None)
        gray = random.integers(0, 255, shape).astype(np.uint8)
        picture = opened(draw(gray, compare(gray, before.scene), Watch(ignored=(RIGHT_HALF,)), 4.0))
        assert picture.shape[0] % shape[0] == 0
