import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.looks import (
    LookPolicy,
    connect_timeout_ms,
    is_held,
    keyframe_wait_ms,
    next_due_ms,
    phase_ms,
)

from .build import MIN, T0

KEYS = st.integers(1, 2**63 - 1)
INTERVALS = st.integers(1, 86_400_000)
TIMES = st.integers(0, 2**43)


@given(KEYS, INTERVALS, TIMES)
def test_the_next_look_is_after_now_within_one_interval_and_on_the_grid(
    key: int, interval_ms: int, now_ms: int
) -> None:
    due = next_due_ms(key, interval_ms, now_ms)
    assert now_ms < due <= now_ms + interval_ms
    assert due % interval_ms == phase_ms(key, interval_ms)


@given(KEYS, INTERVALS, TIMES, st.lists(st.floats(0, 3), max_size=30))
def test_slow_looks_neither_overlap_nor_shift_the_schedule(
    key: int, interval_ms: int, start_ms: int, lengths: list[float]
) -> None:
    first = due = next_due_ms(key, interval_ms, start_ms)
    for length in lengths:
        ended = due + int(length * interval_ms)
        following = next_due_ms(key, interval_ms, ended)
        assert following > ended
        assert (following - first) % interval_ms == 0
        due = following


@pytest.mark.parametrize("count", [10, 64, 1000])
def test_cameras_are_spread_over_the_interval(count: int) -> None:
    phases = sorted(phase_ms(key, MIN) for key in range(1, count + 1))
    widest = max(b - a for a, b in zip(phases, [*phases[1:], phases[0] + MIN], strict=True))
    assert widest <= 3 * MIN / count


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="camera 7"):
        next_due_ms(7, 0, T0)


def test_connect_timeouts_by_zone() -> None:
    assert connect_timeout_ms("local", LookPolicy()) == 3000
    assert connect_timeout_ms("vpn", LookPolicy()) == 5000


@pytest.mark.parametrize(
    ("gop_ms", "wait_ms"), [(None, 3000), (1000, 3000), (2000, 4000), (10_000, 20_000), (60_000, 25_000)]
)
def test_the_wait_for_a_keyframe(gop_ms: int | None, wait_ms: int) -> None:
    assert keyframe_wait_ms(gop_ms) == wait_ms


@pytest.mark.parametrize(
    ("interval_ms", "first_picture_ms", "is_watched", "held"),
    [
        (1000, None, False, True),
        (5000, None, False, True),
        (5001, None, False, False),
        (60_000, 1500, False, False),
        (60_000, 1500, True, True),
        (3_600_000, None, True, True),
        # Waiting half of the time for a picture: better stay.
        (20_000, 9_999, False, False),
        (20_000, 10_000, False, True),
    ],
)
def test_who_stays_connected(interval_ms: int, first_picture_ms: int | None, is_watched: bool, held: bool) -> None:
    assert is_held(interval_ms, first_picture_ms, is_watched, LookPolicy()) is held
