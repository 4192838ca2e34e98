import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.gate import FIRST_DIFF_RATIO, FIRST_LUMA_DELTA, GatePolicy, Verdict, judge_threshold

POLICY = GatePolicy()


@pytest.mark.parametrize(
    ("diff_ratio", "luma_delta", "verdict"),
    [
        (0.0, 0.0, Verdict.SKIP),
        (0.0029, 4.9, Verdict.SKIP),
        (0.0029, -4.9, Verdict.SKIP),
        (0.003, 0.0, Verdict.ANALYZE),
        (0.0, 5.0, Verdict.ANALYZE),
        (0.0, -5.0, Verdict.ANALYZE),
        (FIRST_DIFF_RATIO, FIRST_LUMA_DELTA, Verdict.ANALYZE),
    ],
)
def test_the_threshold_rule(diff_ratio: float, luma_delta: float, verdict: Verdict) -> None:
    assert judge_threshold(diff_ratio, luma_delta, 0, POLICY) is verdict


def test_every_sixtieth_quiet_look_is_forced() -> None:
    verdicts, since = [], 0
    for _ in range(120):
        verdict = judge_threshold(0.0, 0.0, since, POLICY)
        since = since + 1 if verdict is Verdict.SKIP else 0
        verdicts.append(verdict)
    assert [n for n, verdict in enumerate(verdicts, 1) if verdict is Verdict.FORCED] == [60, 120]


@given(st.floats(0, 1), st.floats(-255, 255), st.integers(0, 1000), st.integers(1, 200))
def test_never_more_than_n_looks_are_skipped(ratio: float, delta: float, since: int, every_n: int) -> None:
    verdict = judge_threshold(ratio, delta, since, GatePolicy(force_infer_every_n=every_n))
    if verdict is Verdict.SKIP:
        assert since + 1 < every_n
        assert judge_threshold(ratio, -delta, since, GatePolicy(force_infer_every_n=every_n)) is verdict
