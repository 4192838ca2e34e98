"""The controller in simulated time: how much of a capacity it finds that nobody told it, and at what cost."""

import pytest

from camserver.domain.scoring_limits import Allowance, ConcurrencyController, share_of
from tests.domain.scoring_world import ByConcurrency, ByRate, play

SECONDS = 40


def controller(cut: float = 0.9, clean: int = 1) -> ConcurrencyController:
    return ConcurrencyController(4, 256, cut, clean)


@pytest.mark.parametrize("places", [8, 50, 200])
@pytest.mark.parametrize("retry_after_sec", [1.0, None])
def test_a_cap_on_what_is_in_flight_is_found(places: int, retry_after_sec: float | None) -> None:
    played = play(controller(), ByConcurrency(lambda now: places, retry_after_sec), SECONDS)
    assert played.answered / SECONDS >= 0.92 * places * 5
    assert played.per_sec(20, SECONDS) >= 0.95 * places * 5
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize(("per_sec", "burst", "window_sec"), [(250, 50, None), (100, 10, None), (100, 100, 1.0)])
def test_a_cap_by_time_is_found(per_sec: float, burst: float, window_sec: float | None) -> None:
    played = play(controller(), ByRate(per_sec, burst, window_sec), SECONDS)
    assert played.per_sec(10, SECONDS) >= 0.88 * per_sec
    assert played.refused <= 0.006 * played.answered


@pytest.mark.parametrize(("per_sec", "burst"), [(1, 1), (5, 5), (10, 600)])
def test_a_small_cap_by_time_is_kept_to(per_sec: float, burst: float) -> None:
    played = play(controller(), ByRate(per_sec, burst), 300)
    assert played.per_sec(100, 300) >= 0.85 * per_sec
    assert played.refused <= 0.06 * played.answered


def test_less_fits_from_now_on() -> None:
    played = play(controller(), ByConcurrency(lambda now: 50 if now < 20 else 20), SECONDS)
    assert played.per_sec(25, SECONDS) >= 0.9 * 100
    assert played.refused <= 0.005 * played.answered


def test_more_fits_from_now_on() -> None:
    played = play(controller(), ByConcurrency(lambda now: 20 if now < 10 else 80), 60)
    assert played.per_sec(40, 60) >= 0.93 * 400


def test_the_cut_and_the_way_back_can_be_set() -> None:
    server = ByConcurrency(lambda now: 50)
    gentle = play(controller(), server, SECONDS)
    seed = play(controller(0.7, 3), ByConcurrency(lambda now: 50), SECONDS)
    assert gentle.answered > seed.answered >= 0.8 * SECONDS * 250


def test_a_burst_of_refusals_is_one_cut() -> None:
    one = ConcurrencyController(10, 100)
    tickets = []
    for _ in range(10):
        one.take()
        tickets.append(one.sent(0.0))
    for ticket in reversed(tickets):
        one.refuse(ticket, 1.0, 0.1)
    assert (one.cuts, one.refused) == (1, 10)
    assert one.limit == 9.0


def test_a_refusal_of_the_first_of_many_does_not_stop_the_rest() -> None:
    one = ConcurrencyController(10, 100)
    one.take()
    first = one.sent(0.0)
    one.refuse(first, 1.0, 0.1)
    assert one.limit == 4.5


def test_nobody_grows_a_limit_that_is_not_used() -> None:
    one = ConcurrencyController(10, 100)
    for number in range(100):
        one.take()
        one.answered(one.sent(float(number)), number + 0.1)
        one.release()
    assert one.limit == 10


def test_headers_pace_before_anything_is_refused() -> None:
    one = ConcurrencyController(10, 100)
    one.take()
    one.heed(Allowance(600, 590, 1.0), 1.0, 0.0)
    assert one.pace is None
    one.heed(Allowance(600, 12, 58.8), 1.0, 0.0)
    assert one.pace == pytest.approx(10.0)
    one.sent(0.0)
    assert one.wait_sec(0.0) == pytest.approx(0.1)
    one.heed(Allowance(60_000, 100, 59.9), 300.0, 0.0)
    assert one.pace == pytest.approx(3.33, abs=0.01)
    assert one.wait_sec(0.0) >= 0.29
    one.heed(Allowance(600, 590, 1.0), 1.0, 100.0)
    assert one.pace is None


@pytest.mark.parametrize(
    ("limit", "before", "now", "together", "share"),
    [
        (4, 0, 1, 4, None),  # alone
        (4, 0, 2, 54, 25),  # comes to one that has 50
        (50, 1, 2, 54, 25),  # which makes room
        (25, 2, 1, 25, 50),  # and takes it back
        (25, 2, 2, 50, None),
        (1, 1, 10, 20, 1),
    ],
)
def test_one_key_is_shared(limit: float, before: int, now: int, together: float, share: float | None) -> None:
    assert share_of(limit, before, now, together) == share
