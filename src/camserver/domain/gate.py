"""Whether a look is worth analyzing (decisions 1, 2 and 40). Sees numbers, never pixels.

Here are the settings of both rules and the plain threshold rule. The numbers are measured in `media`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from camserver.domain.policy import setting

# What a look without a previous image is measured as.
FIRST_DIFF_RATIO = 1.0
FIRST_LUMA_DELTA = 255.0


class Verdict(StrEnum):
    SKIP = "skip"
    ANALYZE = "analyze"
    FORCED = "forced"  # nothing changed, but it is time


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """Which looks are worth analyzing."""

    rule: Literal["contrast", "threshold"] = setting(
        "contrast", "contrast: local contrast, adapts to noise and light; threshold: the two limits below."
    )
    diff_ratio_no_event: float = setting(
        0.003, "threshold: share of changed pixels below which nothing happened.", min=0.0, max=1.0
    )
    luma_delta_no_event: float = setting(
        5.0, "threshold: change of the mean luma (0..255) below which nothing happened.", min=0.0, max=255.0
    )
    pixel_delta: int = setting(20, "A pixel has changed when its luma changed by more than this.", min=1, max=255)
    force_infer_every_n: int = setting(
        60, "A look is analyzed anyway when this many passed since the last analyzed one.", min=1, max=100_000
    )
    z_pass: float = setting(4.0, "contrast: how far above its usual noise a cell must be.", min=0.5, max=100.0)
    learn_looks: int = setting(45, "contrast: looks that all pass while the noise is learned.", min=0, max=10_000)
    sticky_looks: int = setting(
        3, "Looks that pass after one that passed, while its analysis is not known yet.", min=0, max=1000
    )
    detect_every_n_frames: int = setting(1, "Analyze at most every n-th passing look.", min=1, max=1000)


def is_forced(looks_since_analyzed: int, policy: GatePolicy) -> bool:
    """Whether this look is analyzed whatever it shows; counts looks since the last analyzed or queued one."""
    return looks_since_analyzed + 1 >= policy.force_infer_every_n


def judge_threshold(diff_ratio: float, luma_delta: float, looks_since_analyzed: int, policy: GatePolicy) -> Verdict:
    """The threshold rule: changed pixels or light against the previous look. `luma_delta` is signed."""
    if diff_ratio >= policy.diff_ratio_no_event or abs(luma_delta) >= policy.luma_delta_no_event:
        return Verdict.ANALYZE
    return Verdict.FORCED if is_forced(looks_since_analyzed, policy) else Verdict.SKIP
