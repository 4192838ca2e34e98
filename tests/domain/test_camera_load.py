"""What a camera costs, as far as it is promised: more for more pictures and larger ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.camera_load import MAIN_PIXELS, camera_load, pixels_of


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.integers(1, 10**8), st.integers(1, 10**8))
def test_more_looks_and_larger_pictures_cost_more(one: float, other: float, small: int, large: int) -> None:
    (one, other), (small, large) = sorted((one, other)), sorted((small, large))
    often, rarely = camera_load(one, small, False, False), camera_load(other, small, False, False)
    assert often.cpu >= rarely.cpu > 0
    larger = camera_load(one, large, False, False)
    assert (larger.cpu, larger.mem) >= (often.cpu, often.mem)


def test_the_small_stream_is_the_one_looked_at() -> None:
    assert camera_load(1, 3840 * 2160, True, False) == camera_load(1, None, True, False)
    assert camera_load(1, None, True, False).cpu < camera_load(1, None, False, False).cpu
    assert camera_load(1, None, False, False) == camera_load(1, MAIN_PIXELS, False, False)
    assert camera_load(1, None, False, True) == camera_load(60, 3840 * 2160, True, True)


@pytest.mark.parametrize(
    ("caps", "pixels"),
    [('{"res": "1920x1080"}', 2_073_600), (None, None), ("{}", None), ("[]", None), ('{"res": "big"}', None)],
)
def test_pixels_come_from_what_a_probe_found(caps: str | None, pixels: int | None) -> None:
    assert pixels_of(caps) == pixels
