from camserver.domain.gate import GatePolicy, Verdict
from camserver.media.pictures import Change, Gray
from camserver.services.worker.gating import Gate
from tests.services.worker.build import start_message

GRAY = Gray((1, 1), b"\0")
FIRST = Change(1.0, 255.0)
QUIET = Change(0.0, 0.0)
MOVED = Change(0.1, 0.0)
S, A, F = Verdict.SKIP, Verdict.ANALYZE, Verdict.FORCED


def verdicts(changes: list[Change], force_every: int = 60, every_nth: int = 1) -> list[Verdict]:
    start = start_message(force_every=force_every, every_nth=every_nth)
    gate = Gate(GatePolicy(force_infer_every_n=1000), start.params)
    return [gate.judge(change, GRAY) for change in changes]


def test_first_look_is_analyzed_quiet_ones_are_not() -> None:
    assert verdicts([FIRST, QUIET, MOVED, QUIET]) == [A, S, A, S]


def test_one_is_forced_so_many_looks_after_the_last_analyzed_one() -> None:
    assert verdicts([FIRST] + [QUIET] * 7, force_every=3) == [A, S, S, F, S, S, F, S]
    assert verdicts([FIRST, QUIET, MOVED, QUIET, QUIET, QUIET], force_every=3) == [A, S, A, S, S, F]


def test_every_nth_passing_look_is_analyzed() -> None:
    assert verdicts([FIRST] + [MOVED] * 6, every_nth=3) == [A, S, S, A, S, S, A]


def test_thinned_out_looks_are_forced_too_when_it_is_time() -> None:
    assert verdicts([FIRST] + [MOVED] * 4, every_nth=100, force_every=2) == [A, S, F, S, F]


def test_the_picture_before_is_the_last_look_also_a_quiet_one() -> None:
    gate = Gate(GatePolicy(), start_message().params)
    for shade in (1, 2, 3):
        now = Gray((1, 1), bytes([shade]))
        gate.judge(QUIET, now)
        assert gate.before == now
