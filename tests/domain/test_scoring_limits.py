"""The controller in simulated time: how much of a capacity it finds that nobody told it, and at what cost."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.scoring_limits import Allowance, ConcurrencyController, Wait, share_of
from tests.domain.scoring_world import Both, ByConcurrency, ByRate, InAnyWindow, Server, Way, play
from tests.rig.effort import times

SECONDS = 40


def controller(cut: float = 0.9, clean: int = 1) -> ConcurrencyController:
    return ConcurrencyController(4, 256, cut, clean)


@pytest.mark.parametrize("places", [8, 50, 200])
@pytest.mark.parametrize("retry_after_sec", [1.0, None, 0.02])
def test_a_cap_on_what_is_in_flight_is_found(places: int, retry_after_sec: float | None) -> None:
    played = play(controller(), ByConcurrency(lambda now: places, retry_after_sec), SECONDS)
    assert played.answered / SECONDS >= 0.92 * places * 5
    assert played.per_sec(20, SECONDS) >= 0.95 * places * 5
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize("places", [2, 20])
def test_a_long_wait_of_one_holds_up_nobody_else(places: int) -> None:
    played = play(controller(), ByConcurrency(lambda now: places, 20.0), 60)
    assert played.per_sec(5, 60) >= 0.85 * places * 5
    assert played.refused <= 0.01 * played.answered


def test_stragglers_do_not_slow_down_the_others() -> None:
    way = Way(straggler_share=0.01, straggler_sec=10.0)
    played = play(controller(), ByRate(38, 38), 120, way)
    assert played.per_sec(20, 120) >= 0.85 * 38
    assert played.refused <= 0.008 * played.answered


@pytest.mark.parametrize("seed", range(1, times(8, 40) + 1))
def test_a_large_store_that_runs_empty_is_emptied_once(seed: int) -> None:
    """Refusals take 0.3 s to come, so at the first one many are on their way: none of these was accepted."""
    played = play(controller(), ByRate(38, 766), 210, Way(1.5, 0.375, 0.3), seed)
    assert played.per_sec(30, 210) >= 0.97 * 38
    assert sum(at > 40 for at in played.refused_at) <= 0.005 * 170 * 38


@pytest.mark.parametrize("seed", range(1, 9))
def test_the_way_up_is_short(seed: int) -> None:
    """Of the first six seconds: the limit doubles with each answer's time, from the first batch on."""
    by_time = play(controller(), ByRate(150, 30), 6, seed=seed)
    by_number = play(controller(), ByConcurrency(lambda now: 50), 6, seed=seed)
    assert by_time.answered >= 0.88 * 150 * (6 - 0.2)
    assert by_number.answered >= 0.85 * 250 * (6 - 0.2)


def test_a_few_in_flight_are_tried_again_although_few_answers_come() -> None:
    way = Way(1.5, 0.75, 0.015, 0.01, straggler_share=0.01)
    used = sorted(play(controller(), ByRate(3.6, 2), 400, way, seed).per_sec(150, 400) for seed in range(1, 10))
    assert used[0] >= 0.5 * 3.6
    assert used[4] >= 0.8 * 3.6


@pytest.mark.parametrize(("per_sec", "burst"), [(250, 50), (150, 30), (100, 10), (40, 5)])
@pytest.mark.parametrize("says", ["exactly", "whole seconds", "nothing"])
def test_a_cap_by_time_is_found(per_sec: float, burst: float, says: str) -> None:
    server = ByRate(per_sec, burst, is_whole=says == "whole seconds", is_silent=says == "nothing")
    played = play(controller(), server, 60)
    assert played.per_sec(10, 60) >= 0.87 * per_sec
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_cap_by_windows_is_found(is_whole: bool) -> None:
    played = play(controller(), ByRate(100, 100, 1.0, is_whole=is_whole), 60)
    assert played.per_sec(15, 60) >= 0.87 * 100
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize(("per_sec", "burst", "window_sec"), [(10, 600, None), (5, 5, None), (10, 600, 60.0)])
def test_a_small_cap_by_time_is_kept_to(per_sec: float, burst: float, window_sec: float | None) -> None:
    played = play(controller(), ByRate(per_sec, burst, window_sec), 600)
    assert played.per_sec(120, 600) >= 0.9 * per_sec
    # A large bucket that runs empty looks like a window for a moment, which costs a few refusals more.
    assert played.refused <= 0.009 * played.answered


def test_tokens_are_a_cap_by_time_too() -> None:
    server = ByRate(150 * 240, 30 * 240, is_by_weight=True)
    played = play(controller(), server, 60, Way(weights=(120, 360)))
    assert played.per_sec(10, 60) >= 0.85 * 150
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize(
    "server",
    [
        ByRate(150, 30, tells=True),
        ByRate(150 * 240, 30 * 240, is_by_weight=True, tells=True),
        ByRate(100, 100, 1.0, tells=True),
        ByRate(50, 3_000, tells=True),
    ],
)
def test_what_headers_tell_is_kept_to(server: ByRate) -> None:
    weight = 240.0 if server.is_by_weight else 1.0
    per_sec = server._rate(0) / weight
    played = play(controller(), server, 60, Way(weights=(0.5 * weight, 1.5 * weight)))
    assert played.per_sec(10, 60) >= 0.9 * per_sec
    assert played.refused <= 0.003 * played.answered


@pytest.mark.parametrize(("per_window", "window_sec", "latency_sec"), [(300, 10, 0.2), (60, 2, 0.15), (520, 10, 1.0)])
def test_windows_that_slide_are_found(per_window: int, window_sec: float, latency_sec: float) -> None:
    """Used up at once, they give nothing until the window is over, and say nothing of that."""
    way = Way(latency_sec, 0.25 * latency_sec, 0.006, 0.003)
    played = play(controller(), InAnyWindow(per_window, window_sec), 120, way)
    assert played.answered / 120 >= 0.85 * per_window / window_sec
    assert sum(at > 3 * window_sec for at in played.refused_at) <= 0.004 * played.answered
    assert played.refused <= 0.007 * played.answered


@pytest.mark.parametrize("seed", range(1, 7))
def test_tokens_of_a_window_that_slides_are_found(seed: int) -> None:
    """Some questions are short enough for what is left of a window: it has not begun anew with them."""
    way = Way(0.2, 0.05, 0.006, 0.003, weights=(160, 240))
    played = play(controller(), InAnyWindow(60_000, 10, True), 120, way, seed)
    assert played.answered / 120 >= 0.8 * 30
    assert played.refused <= 0.009 * played.answered


@pytest.mark.parametrize("says", ["exactly", "whole"])
def test_a_window_that_says_how_long_it_takes_is_found(says: str) -> None:
    played = play(controller(), InAnyWindow(600, 20, says=says), 120, Way(0.3, 0.07, 0.006))
    assert played.answered / 120 >= 0.85 * 30
    assert sum(at > 25 for at in played.refused_at) <= 0.004 * played.answered


@pytest.mark.parametrize("latency_sec", [0.15, 0.3, 0.5])
@pytest.mark.parametrize("retry_after_sec", [None, 1.0])
def test_half_as_many_in_flight_are_no_matter_of_time(latency_sec: float, retry_after_sec: float | None) -> None:
    """The same number is refused again and again, and one less never: then that is it, and not the pace."""
    places = ByConcurrency(lambda now: 24 if now < 20 else 12 if now < 45 else 48, retry_after_sec)
    played = play(controller(), places, 90, Way(latency_sec, 0.25 * latency_sec, 0.006, 0.003))
    assert played.answered >= 0.8 * (24 * 20 + 12 * 25 + 48 * 45) / latency_sec
    assert played.refused <= 0.004 * played.answered


def test_both_at_once_are_found() -> None:
    played = play(controller(), Both(ByConcurrency(lambda now: 50), ByRate(150, 30)), 60)
    assert played.per_sec(10, 60) >= 0.9 * 150
    assert played.refused <= 0.005 * played.answered


@pytest.mark.parametrize(
    ("server", "from_sec", "per_sec"),
    [
        (lambda: ByConcurrency(lambda now: 50 if now < 20 else 20), 30, 100),
        (lambda: ByConcurrency(lambda now: 50 if now < 20 else 20, 0.02), 30, 100),
        (lambda: ByConcurrency(lambda now: 20 if now < 20 else 80), 50, 400),
        (lambda: ByRate(lambda now: 150 if now < 20 else 60, 30), 30, 60),
        (lambda: ByRate(lambda now: 60 if now < 20 else 150, 30), 90, 150),
    ],
)
def test_what_fits_changes_meanwhile(server: Callable[[], Server], from_sec: int, per_sec: float) -> None:
    played = play(controller(), server(), 120)
    assert played.per_sec(from_sec, 120) >= 0.88 * per_sec
    assert played.refused <= 0.005 * played.answered


def any_way(chance: random.Random) -> Way:
    latency_sec = chance.choice([0.05, 0.2, 0.6])
    return Way(
        latency_sec,
        latency_sec * chance.choice([0.1, 0.25]),
        latency_sec * chance.choice([0.01, 0.05]),
        chance.choice([0.0, 0.003]),
        chance.choice([0.0, 0.01]),
        failing_share=chance.choice([0.0, 0.01]),
    )


def any_by_concurrency(chance: random.Random, seed: int) -> tuple[float, float]:
    """What was used of a capacity, the way up included, and what was refused of all."""
    way, places = any_way(chance), chance.randint(4, 80)
    seconds = max(6_000 * way.latency_sec / places, 50 * way.latency_sec, 8.0)
    server = ByConcurrency(lambda now: places, chance.choice([None, 0.05, 1.0, 2.0]))
    played = play(controller(), server, seconds, way, seed)
    usual_sec = way.latency_sec + way.straggler_share * way.straggler_sec
    could = seconds * places / usual_sec * (1 - way.failing_share)
    return played.answered / could, played.refused / played.answered


def any_by_rate(chance: random.Random, seed: int) -> tuple[float, float]:
    way, per_sec, says = any_way(chance), chance.randint(20, 300), chance.choice(["exactly", "whole", "nothing"])
    burst = max(chance.choice([0.1, 0.3, 1.0, 2.0]) * per_sec, 4)
    server = ByRate(per_sec, burst, is_whole=says == "whole", is_silent=says == "nothing")
    seconds = max(20.0, 8_000 / per_sec)
    most = 0.9 * 256 / (way.latency_sec + way.straggler_share * way.straggler_sec)
    played = play(controller(), server, seconds, way, seed)
    could = min(per_sec, most) * (1 - way.failing_share)
    return played.per_sec(10, int(seconds)) / could, played.refused / played.answered


@pytest.mark.parametrize("kind", [any_by_concurrency, any_by_rate])
def test_providers_of_any_kind(kind: Callable[[random.Random, int], tuple[float, float]]) -> None:
    """Drawn by lot, always the same ones: nearly all of them are found out, and none is wasted."""
    chance = random.Random(7)
    count = times(12, 400)
    found = [kind(chance, seed) for seed in range(count)]
    assert sum(used >= 0.85 for used, _ in found) >= 0.9 * count
    assert sum(refused <= 0.005 for _, refused in found) >= 0.9 * count
    assert min(used for used, _ in found) >= 0.5
    assert max(refused for _, refused in found) <= 0.015


HAPPENS = st.sampled_from(["send", "answer", "refuse", "refuse again", "lose", "told little", "told much", "share"])


@given(st.lists(st.tuples(HAPPENS, st.floats(0, 3), st.sampled_from([None, 0.0, 0.3, 1.0, 60.0])), max_size=60))
def test_whatever_happens_somebody_is_sent_in_the_end(happens: list[tuple[str, float, float | None]]) -> None:
    one, now, flying, waiting = ConcurrencyController(4, 20), 0.0, [], 0
    for what, passed_sec, wait in happens:
        now += passed_sec
        if what == "send" and one.wait_sec(now) <= 0 and (waiting or one.has_place):
            if waiting:
                waiting -= 1
            else:
                one.take()
            flying.append(one.sent(now))
        elif what in ("answer", "lose") and flying:
            ticket = flying.pop()
            one.answered(ticket, now) if what == "answer" else one.lost(ticket)
            one.release()
        elif what.startswith("refuse") and flying:
            assert 0 < one.left_sec(one.refuse(flying.pop(0), wait, now), now) <= 120
            waiting += 1
        elif what.startswith("told"):
            one.heed(Allowance(100, 0 if what == "told little" else 99, wait or 0.0), 1.0, now)
        elif what == "share":
            one.share(passed_sec, 0.5)
        assert 1 <= one.limit <= 20
        assert one.pace is None or one.pace > 0
        assert 0 <= one.wait_sec(now) <= 125


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


def test_nobody_grows_a_limit_that_is_not_used() -> None:
    one = ConcurrencyController(10, 100)
    for number in range(100):
        one.take()
        one.answered(one.sent(float(number)), number + 0.1)
        one.release()
    assert one.limit == 10


def test_one_question_goes_ahead_after_a_refusal() -> None:
    one = ConcurrencyController(10, 100)
    tickets = []
    for _ in range(10):
        one.take()
        tickets.append(one.sent(0.0))
    one.refuse(tickets[-1], None, 0.01)
    for ticket in tickets[:5]:
        one.answered(ticket, 0.2)
        one.release()
    assert one.has_place
    assert one.wait_sec(0.2) == 0
    one.take()
    trial = one.sent(0.2)
    assert one.wait_sec(0.2) > 0
    one.answered(trial, 0.21)
    assert one.wait_sec(0.21) == 0


def test_a_refused_trial_makes_everybody_wait_as_long_as_is_said() -> None:
    one = ConcurrencyController(10, 100)
    for _ in range(10):
        one.take()
    tickets = [one.sent(0.0) for _ in range(10)]
    one.refuse(tickets[-1], 3.0, 0.01)
    one.refuse(one.sent(0.1), 3.0, 0.11)
    assert one.wait_sec(0.11) == pytest.approx(3.0)


def test_a_refused_question_waits_no_longer_than_until_later_ones_are_answered() -> None:
    one = ConcurrencyController(10, 100)
    for _ in range(3):
        one.take()
    first, second = one.sent(0.0), one.sent(0.0)
    wait = one.refuse(second, 30.0, 0.1)
    assert 1 <= one.left_sec(wait, 0.1) < 30
    one.answered(first, 1.0)
    assert one.left_sec(wait, 1.0) > 0  # it was sent before: that says nothing
    one.answered(one.sent(1.0), 1.2)
    assert one.left_sec(wait, 1.2) == 0
    assert one.left_sec(Wait(0.0, 9.0, None), 1.2) == pytest.approx(7.8)


def test_alone_and_refused_is_a_matter_of_time() -> None:
    one = ConcurrencyController(4, 100)
    for second in range(4):
        one.take()
        wait = one.refuse(one.sent(float(second)), 0.5, second + 0.01)
        assert one.left_sec(wait, second + 0.01) >= 0.5 - 1e-6
    assert one.limit == 4


def test_headers_pace_before_anything_is_refused() -> None:
    one = ConcurrencyController(10, 100)
    one.take()
    one.heed(Allowance(600, 590, 1.0), 1.0, 0.0)
    assert one.pace is None
    one.heed(Allowance(600, 60, 54.0), 1.0, 0.0)
    assert one.pace == pytest.approx(10.0)
    one.sent(0.0)
    assert one.wait_sec(0.0) == pytest.approx(0.1)
    one.heed(Allowance(60_000, 6_000, 54.0, "tokens"), 300.0, 0.0)
    assert one.pace == pytest.approx(3.33, abs=0.01)
    one.sent(0.1)
    assert one.wait_sec(0.1) >= 0.29
    one.heed(Allowance(60_000, 59_000, 1.0, "tokens"), 300.0, 100.0)
    one.heed(Allowance(600, 590, 1.0), 1.0, 100.0)
    assert one.pace is None


def test_what_is_left_of_a_window_is_spread_over_its_rest() -> None:
    one = ConcurrencyController(10, 100)
    one.heed(Allowance(600, 500, 50.0), 1.0, 10.0)
    one.heed(Allowance(600, 138, 40.0), 1.0, 20.0)
    assert one.pace == pytest.approx(3.0)
    one.heed(Allowance(600, 0, 30.0), 1.0, 30.0)
    one.sent(30.0)
    assert 29.9 <= one.wait_sec(30.0) <= 30.1


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


def test_a_capacity_that_falls_and_then_grows_fourfold_is_used_again() -> None:
    """The fall looks like a pace; once far more in flight is accepted than was refused, that pace is doubted."""

    def places(now: float) -> int:
        return 24 if now < 20 else 12 if now < 45 else 48

    used = []
    for seed in range(12):
        way = Way(latency_sec=0.3, jitter_sec=0.09)
        played = play(ConcurrencyController(8, 256), ByConcurrency(places), 100, way, seed)
        used.append(played.per_sec(70, 100) / (48 / 0.3))
        assert played.refused <= 0.005 * played.answered
    assert sorted(used)[len(used) // 2] > 0.75
