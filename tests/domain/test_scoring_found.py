"""What a process found out about a provider, and how the next one goes on with it."""

from collections.abc import Callable

import pytest

from camserver.domain.scoring_found import Found
from camserver.domain.scoring_limits import ConcurrencyController
from tests.domain.scoring_world import ByConcurrency, ByRate, InAnyWindow, Server, play

FOUND = Found(40.0, 44.0, 120.0, 0.5)


@pytest.mark.parametrize(
    ("server", "per_sec"),
    [
        (lambda: ByConcurrency(lambda now: 20, None), 100),
        (lambda: ByConcurrency(lambda now: 50, 1.0), 250),
        (lambda: ByRate(150, 30), 150),
        (lambda: ByRate(40, 5, is_silent=True), 40),
        (lambda: InAnyWindow(300, 10), 30),
        (lambda: InAnyWindow(60, 2), 30),
    ],
)
def test_those_that_come_later_find_out_nothing_anew(server: Callable[[], Server], per_sec: float) -> None:
    """Each of ten is killed after eight seconds."""
    first = ConcurrencyController(4, 256)
    play(first, server(), 40)
    found, answered, refused = first.found, 0, 0
    for seed in range(10):
        next_one = ConcurrencyController(4, 256)
        assert found is not None
        next_one.go_on(found)
        played = play(next_one, server(), 8, seed=seed)
        answered, refused, found = answered + played.answered, refused + played.refused, next_one.found
    assert answered >= 0.85 * 10 * 8 * per_sec
    assert refused <= 0.002 * answered


def test_fewer_than_before_are_found_out_all_the_same() -> None:
    controller = ConcurrencyController(4, 256)
    controller.go_on(Found(200.0, 210.0, None, 0.2))
    played = play(controller, ByConcurrency(lambda now: 20, None), 40)
    assert played.per_sec(10, 40) >= 0.9 * 100
    assert played.refused <= 0.03 * played.answered


def test_more_than_before_are_found_out_all_the_same() -> None:
    controller = ConcurrencyController(4, 256)
    controller.go_on(Found(10.0, 11.0, None, 0.2))
    played = play(controller, ByConcurrency(lambda now: 50, None), 60)
    assert played.per_sec(40, 60) >= 0.9 * 250


def test_nothing_is_told_before_the_first_answer() -> None:
    controller = ConcurrencyController(4, 256)
    assert controller.found is None
    controller.take()
    controller.answered(controller.sent(1.0), 1.25)
    assert controller.found == Found(controller.limit, None, None, 0.25)


def test_what_all_have_is_the_share_of_one_times_their_number() -> None:
    assert FOUND.scaled(3) == Found(120.0, 132.0, 360.0, 0.5)
    assert Found(1.0, None, None, 0.5).scaled(2) == Found(2.0, None, None, 0.5)


@pytest.mark.parametrize(
    ("found", "is_news"),
    [
        (Found(41.0, 44.0, 120.0, 9.0), False),
        (Found(43.0, 44.0, 120.0, 0.5), True),
        (Found(40.0, None, 120.0, 0.5), True),
        (Found(40.0, 44.0, 100.0, 0.5), True),
        (Found(40.0, 44.0, None, 0.5), True),
    ],
)
def test_what_hardly_differs_is_no_news(found: Found, is_news: bool) -> None:
    assert found.is_news(FOUND) == is_news
    assert found.is_news(None)
