"""Windows that refusals tell of, and numbers in flight that they tell of."""

import pytest

from camserver.domain.scoring_places import Numbers
from camserver.domain.scoring_windows import Moment, Past, Window, refused_in, window_of


def steady(per_sec: float, seconds: float) -> Past:
    past = Past()
    for half in range(int(2 * seconds) + 1):
        past.mark(Moment(half / 2, half, int(half / 2 * per_sec)))
    return past


def test_what_was_accepted_is_known_between_marks_too() -> None:
    past = steady(30, 20)
    now = Moment(20.0, 40, 600)
    assert past.accepted_in(now, 10) == pytest.approx(300)
    assert past.accepted_in(now, 3.3) == pytest.approx(99)
    assert past.accepted_in(now, 50) == 600
    assert past.per_sec(now, 2.0) == pytest.approx(30)
    assert past.when(315) == pytest.approx(10.5)
    assert past.when(-1) is None


def test_a_refusal_that_comes_late_was_not_accepted() -> None:
    past = steady(30, 20)
    past.missed(40)
    past.missed(21)
    assert past.when(315) == pytest.approx(10.5 + 0.5 / 15)


def test_a_window_is_what_was_accepted_until_it_came_back() -> None:
    begin, stop = Moment(0.0, 0, 0), Moment(1.5, 301, 300)
    assert window_of(begin, stop, 8.0, 12.0) == Window(300, 8.0, 12.0)
    assert window_of(begin, stop, 1.52, 2.0) is None  # too short a stop to tell
    assert window_of(begin, Moment(1.5, 10, 9), 8.0, 12.0) is None  # too few


@pytest.mark.parametrize(
    ("accepted_a_sec", "is_steady", "found"),
    [
        (30, True, Window(300, 10, 10)),
        (20, True, Window(240, 12, 12)),  # it became smaller
        (20, False, None),  # so soon after another refusal it was none
        (10, True, None),
        (60, True, None),  # much more was accepted than it holds
    ],
)
def test_a_steady_window_is_just_full_when_it_refuses(
    accepted_a_sec: float, is_steady: bool, found: Window | None
) -> None:
    past = steady(accepted_a_sec, 40)
    now = Moment(40.0, 80, int(40 * accepted_a_sec))
    fits = refused_in(Window(300, 8, 12), past, now, is_steady)
    if found is None or fits is None:
        assert fits is found
    else:
        assert fits.count == pytest.approx(found.count, rel=0.025)
        assert fits.most_sec == pytest.approx(found.most_sec, rel=0.025)


def told(levels: list[tuple[str, int]]) -> bool:
    numbers, is_number = Numbers(), False
    for number, (what, in_flight) in enumerate(levels):
        numbers.sent(number, in_flight)
        if what == "refused":
            is_number = numbers.refused(number, in_flight)
        elif what == "refused too":
            numbers.missed(number)
    return is_number


@pytest.mark.parametrize(
    ("levels", "is_number"),
    [
        ([("refused", 13), ("accepted", 12), ("refused", 13)], True),
        ([("refused", 13), ("accepted", 12), ("refused too", 14), ("refused", 13)], True),
        ([("refused", 24), ("accepted", 12), ("refused", 13)], False),  # not the same
        ([("refused", 13), ("accepted", 13), ("refused", 13)], False),  # as many were accepted
        ([("refused", 13), ("accepted", 5), ("refused", 13)], False),  # far fewer were
        ([("refused", 3), ("accepted", 2), ("refused", 3)], False),  # by chance
    ],
)
def test_the_same_number_again_is_that_number(levels: list[tuple[str, int]], is_number: bool) -> None:
    assert told(levels) is is_number
