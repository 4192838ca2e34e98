"""The gate of one camera: counts what `domain.gate` needs to judge the next look, and keeps the picture before.

The threshold rule judges, whichever rule is set: the measurements of the contrast rule are not made yet.
"""

from dataclasses import replace

from camserver.domain.gate import GatePolicy, Verdict, is_forced, judge_threshold
from camserver.media.pictures import Change, Gray
from camserver.wire.worker import LookParams


class Gate:
    def __init__(self, policy: GatePolicy, params: LookParams) -> None:
        self.policy = replace(
            policy,
            force_infer_every_n=params.force_infer_every_n,
            detect_every_n_frames=params.detect_every_n_frames,
        )
        self.before: Gray | None = None
        self._since_analyzed = 0
        self._passing = 0

    def judge(self, change: Change, gray: Gray) -> Verdict:
        """The verdict on the look that shows `gray`, which then is the picture before."""
        verdict = judge_threshold(change.diff_ratio, change.luma_delta, self._since_analyzed, self.policy)
        if verdict is Verdict.ANALYZE:
            verdict = self._thin_out()
        self._since_analyzed = self._since_analyzed + 1 if verdict is Verdict.SKIP else 0
        self.before = gray
        return verdict

    def _thin_out(self) -> Verdict:
        """At most every n-th passing look is analyzed (decision 40); the first of them is."""
        turn = self._passing % self.policy.detect_every_n_frames
        self._passing += 1
        if turn == 0:
            return Verdict.ANALYZE
        return Verdict.FORCED if is_forced(self._since_analyzed, self.policy) else Verdict.SKIP
