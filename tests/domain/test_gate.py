from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.gate import (
    DATING_SLACK_MS,
    FIRST_DIFF_RATIO,
    FIRST_LUMA_DELTA,
    GateMemory,
    GatePolicy,
    Measured,
    Reason,
    Verdict,
    hear,
    judge,
)

CONTRAST = GatePolicy()
THRESHOLD = GatePolicy(rule="threshold")
S, A, F = Verdict.SKIP, Verdict.ANALYZE, Verdict.FORCED


def look(z_max: float | None = 0.0, learned: int = 1000) -> Measured:
    return Measured(0.0, 0.0, z_max, learned)


QUIET, MOVED = look(0.0), look(9.0)


class Run:
    """Looks a second apart, and what the analyzer said in between."""

    def __init__(self, policy: GatePolicy = CONTRAST) -> None:
        self.policy = policy
        self.memory = GateMemory()
        self.at = 0
        self.reasons: list[Reason] = []

    def looks(self, *measured: Measured) -> list[Verdict]:
        given = []
        for one in measured:
            self.at += 1000
            verdict, self.memory, reason = judge(one, self.at, self.memory, self.policy)
            self.reasons.append(reason)
            given.append(verdict)
        return given

    def hear(self, captured_at: int, detected: bool) -> None:
        self.memory = hear(self.memory, captured_at, detected, self.policy)


# The threshold rule --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("diff_ratio", "luma_delta", "verdict"),
    [
        (0.0, 0.0, S),
        (0.0029, 4.9, S),
        (0.0029, -4.9, S),
        (0.003, 0.0, A),
        (0.0, 5.0, A),
        (0.0, -5.0, A),
        (FIRST_DIFF_RATIO, FIRST_LUMA_DELTA, A),
    ],
)
def test_the_threshold_rule(diff_ratio: float, luma_delta: float, verdict: Verdict) -> None:
    assert judge(Measured(diff_ratio, luma_delta), 0, GateMemory(), THRESHOLD)[0] is verdict


def test_the_threshold_rule_neither_learns_nor_is_sticky() -> None:
    run = Run(THRESHOLD)
    assert run.looks(Measured(0.5, 0), Measured(0, 0), Measured(0, 0, 99.0, 0)) == [A, S, S]
    run.hear(1000, True)
    assert run.looks(Measured(0, 0)) == [S]


# The contrast rule ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (look(3.99), S),
        (look(4.0), A),
        (look(None), A),  # nothing to compare with
        (look(0.0, learned=44), A),
        (look(0.0, learned=45), S),
        # Light and changed pixels are recorded but decide nothing.
        (Measured(1.0, 255.0, 0.0, 1000), S),
    ],
)
def test_the_contrast_rule(measured: Measured, verdict: Verdict) -> None:
    assert judge(measured, 0, GateMemory(), CONTRAST)[0] is verdict


def test_a_picture_that_is_new_all_over_passes_once() -> None:
    """The infra-red filter: it is looked at, but nothing is sticky because of it."""
    run = Run()
    assert run.looks(Measured(1.0, 90.0, 2.0, 1000, is_whole=True), QUIET, QUIET) == [A, S, S]
    assert run.reasons[0] is Reason.WHOLE


def test_every_look_has_its_reason() -> None:
    run = Run(replace(CONTRAST, force_infer_every_n=3, sticky_looks=1))
    run.looks(look(None), look(9.0, learned=3), MOVED, QUIET, QUIET, QUIET, QUIET)
    assert run.reasons == [
        Reason.LEARNING,
        Reason.LEARNING,
        Reason.CHANGE,
        Reason.STICKY,
        Reason.QUIET,
        Reason.QUIET,
        Reason.FORCED,
    ]


def test_a_look_that_is_thinned_out_keeps_its_reason() -> None:
    run = Run(replace(CONTRAST, detect_every_n_frames=2))
    assert run.looks(MOVED, MOVED) == [A, S]
    assert run.reasons == [Reason.CHANGE, Reason.CHANGE]


def test_sticky_for_three_looks_while_nothing_is_known() -> None:
    assert Run().looks(MOVED, QUIET, QUIET, QUIET, QUIET, QUIET) == [A, A, A, A, S, S]


def test_a_change_begins_the_count_anew() -> None:
    assert Run().looks(MOVED, QUIET, MOVED, QUIET, QUIET, QUIET, QUIET) == [A, A, A, A, A, A, S]


def test_nothing_there_ends_it() -> None:
    run = Run()
    run.looks(MOVED, QUIET)
    run.hear(1000, False)
    assert run.looks(QUIET) == [S]


def test_nothing_there_before_another_change_ends_nothing() -> None:
    run = Run()
    run.looks(MOVED, MOVED)
    run.hear(1000, False)
    assert run.looks(QUIET) == [A]
    run.hear(2000, False)
    assert run.looks(QUIET) == [S]


def test_a_verdict_dated_anew_still_finds_its_look() -> None:
    run = Run()
    run.looks(MOVED)
    run.hear(1000 - DATING_SLACK_MS, False)
    assert run.looks(QUIET) == [S]


def test_somebody_who_stands_still_is_looked_at_until_gone() -> None:
    run = Run()
    assert run.looks(MOVED) == [A]
    for _ in range(20):
        run.hear(run.at, True)
        assert run.looks(QUIET) == [A]
    run.hear(run.at, False)
    assert run.looks(QUIET) == [S]


def test_found_by_a_forced_look_keeps_it_awake() -> None:
    run = Run(replace(CONTRAST, force_infer_every_n=3))
    assert run.looks(QUIET, QUIET, QUIET) == [S, S, F]
    run.hear(3000, True)
    assert run.looks(QUIET) == [A]


def test_a_forced_or_learning_look_alone_makes_nothing_sticky() -> None:
    run = Run(replace(CONTRAST, force_infer_every_n=3))
    assert run.looks(look(None), look(0, learned=3), QUIET, QUIET, QUIET, QUIET) == [A, A, S, S, F, S]


def test_a_verdict_heard_twice_counts_once() -> None:
    run = Run()
    run.looks(MOVED)
    run.hear(1000, True)
    run.looks(QUIET, QUIET, QUIET)
    run.hear(1000, True)
    assert run.looks(QUIET) == [S]


def test_switched_off_stickiness() -> None:
    run = Run(replace(CONTRAST, sticky_looks=0))
    assert run.looks(MOVED, QUIET) == [A, S]
    run.hear(1000, True)
    assert run.looks(QUIET) == [S]


# Both rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [CONTRAST, THRESHOLD])
def test_every_sixtieth_quiet_look_is_forced(policy: GatePolicy) -> None:
    verdicts = Run(policy).looks(*[QUIET] * 120)
    assert [number for number, verdict in enumerate(verdicts, 1) if verdict is F] == [60, 120]


def test_every_nth_passing_look_is_analyzed() -> None:
    assert Run(replace(CONTRAST, detect_every_n_frames=3)).looks(*[MOVED] * 7) == [A, S, S, A, S, S, A]


def test_thinned_out_looks_are_forced_too_when_it_is_time() -> None:
    policy = replace(CONTRAST, detect_every_n_frames=100, force_infer_every_n=2)
    assert Run(policy).looks(*[MOVED] * 5) == [A, S, F, S, F]


any_look = st.builds(
    Measured,
    st.floats(0, 1),
    st.floats(-255, 255),
    st.none() | st.floats(-10, 100),
    st.integers(0, 100),
    st.booleans(),
)
policies = st.builds(
    GatePolicy,
    rule=st.sampled_from(["contrast", "threshold"]),
    force_infer_every_n=st.integers(1, 20),
    sticky_looks=st.integers(0, 5),
    detect_every_n_frames=st.integers(1, 5),
)


@given(policies, st.lists(st.tuples(any_look, st.none() | st.booleans()), max_size=60))
def test_bounds_hold_whatever_comes(policy: GatePolicy, steps: list[tuple[Measured, bool | None]]) -> None:
    run = Run(policy)
    skipped = 0
    for measured, heard in steps:
        (verdict,) = run.looks(measured)
        skipped = skipped + 1 if verdict is S else 0
        assert skipped < policy.force_infer_every_n
        assert 0 <= run.memory.sticky_left <= policy.sticky_looks
        assert 0 <= run.memory.passing < policy.detect_every_n_frames
        if heard is not None:
            run.hear(run.at, heard)


@given(st.integers(1, 5), st.lists(st.booleans(), min_size=30, max_size=60))
def test_without_the_analyzer_the_gate_closes_again(sticky: int, changes: list[bool]) -> None:
    """An analyzer that is away must not keep the gate open: at most so many extra looks after each change."""
    run = Run(replace(CONTRAST, sticky_looks=sticky, force_infer_every_n=1000))
    verdicts = run.looks(*[MOVED if change else QUIET for change in changes])
    for number, verdict in enumerate(verdicts):
        recent = changes[max(number - sticky, 0) : number + 1]
        assert (verdict is A) == any(recent)
