"""Whether a look is worth analyzing (decisions 1, 2, 8 and 40). Sees numbers, never pixels.

Two rules. *contrast*, the default, asks how far the most changed cell of the picture stands out from its own noise
and from the rest of the picture; it learns that noise first, and stays awake after a look that had something in it
(sticky). When the whole picture is new at once, that one look passes. *threshold* compares changed pixels and light
with two fixed limits and does nothing else. In both one look is forced every so often, and at most every n-th passing
look is analyzed. The numbers are measured in `media`.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from camserver.domain.policy import setting

# What a look without a previous image is measured as.
FIRST_DIFF_RATIO = 1.0
FIRST_LUMA_DELTA = 255.0
# The server may date a look anew when its clock is known better; a verdict is matched to its look within this.
# Below half of the shortest interval, so that neighbours are never taken for one another.
DATING_SLACK_MS = 400


class Verdict(StrEnum):
    SKIP = "skip"
    ANALYZE = "analyze"
    FORCED = "forced"  # nothing changed, but it is time


class Reason(StrEnum):
    """Why a look passes, or that it has no reason to."""

    QUIET = "quiet"
    CHANGE = "change"
    WHOLE = "whole"  # all of the picture is new
    LEARNING = "learning"  # there is nothing to compare with yet, or the noise is not known yet
    STICKY = "sticky"  # something was there just before
    FORCED = "forced"  # it is time


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
    z_pass: float = setting(
        4.0,
        "contrast: how far a cell must stand out from its usual noise and from the rest of the picture.",
        min=0.5,
        max=100.0,
    )
    learn_looks: int = setting(45, "contrast: looks that all pass while the noise is learned.", min=0, max=10_000)
    sticky_looks: int = setting(
        3, "Looks that pass after one that passed, while its analysis is not known yet.", min=0, max=1000
    )
    detect_every_n_frames: int = setting(1, "Analyze at most every n-th passing look.", min=1, max=1000)


@dataclass(frozen=True, slots=True)
class Measured:
    """What `media` measured of a look, each number against its rule's own reference."""

    diff_ratio: float  # share of pixels that changed, 0..1
    luma_delta: float  # mean luma now minus before, -255..255
    z_max: float | None = None  # of the cell that stands out most; None: there was no picture to compare with
    learned: int = 0  # looks the noise was learned from
    is_whole: bool = False  # all of the picture is new


@dataclass(frozen=True, slots=True)
class GateMemory:
    """What a camera's gate remembers from look to look, beside the measurements' references."""

    since_analyzed: int = 0  # looks since the last one that was analyzed or queued
    passing: int = 0  # looks that passed, counted for "every n-th"; below n
    sticky_left: int = 0  # looks that still pass because of an earlier one
    sticky_from: int = 0  # captured_at of that earlier one
    heard_until: int = 0  # captured_at of the newest look whose analysis is known


class Judged(NamedTuple):
    verdict: Verdict
    memory: GateMemory  # after the look
    reason: Reason


def judge(measured: Measured, captured_at: int, memory: GateMemory, policy: GatePolicy) -> Judged:
    """The verdict on a look, what the gate remembers after it, and why it passes (also when it is thinned out)."""
    reason = _by_threshold(measured, policy) if policy.rule == "threshold" else _by_contrast(measured, memory, policy)
    passing = memory.passing
    verdict = Verdict.SKIP
    if reason is not Reason.QUIET:
        # The first of n passing looks is analyzed.
        verdict = Verdict.ANALYZE if passing % policy.detect_every_n_frames == 0 else Verdict.SKIP
        passing = (passing + 1) % policy.detect_every_n_frames
    if verdict is Verdict.SKIP and is_forced(memory.since_analyzed, policy):
        verdict = Verdict.FORCED
    after = replace(
        memory, passing=passing, since_analyzed=memory.since_analyzed + 1 if verdict is Verdict.SKIP else 0
    )
    if verdict is Verdict.ANALYZE and reason is Reason.CHANGE:
        after = replace(after, sticky_left=policy.sticky_looks, sticky_from=captured_at)
    elif verdict is Verdict.ANALYZE and reason is Reason.STICKY:
        # Only own reasons make sticky; else an analyzer that is away would keep the gate open for ever.
        after = replace(after, sticky_left=memory.sticky_left - 1)
    return Judged(verdict, after, Reason.FORCED if verdict is Verdict.FORCED else reason)


def hear(memory: GateMemory, captured_at: int, detected: bool, policy: GatePolicy) -> GateMemory:
    """After the analyzer's verdict on the look of `captured_at` has come back (decision 8).

    Something was there: the next look is analyzed too, and those after it until its analysis is known. Nothing was
    there: that ends it, unless another look passed for a reason of its own since then.
    """
    if captured_at <= memory.heard_until:
        return memory
    memory = replace(memory, heard_until=captured_at)
    if detected:
        return replace(memory, sticky_left=policy.sticky_looks, sticky_from=max(memory.sticky_from, captured_at))
    if captured_at + DATING_SLACK_MS >= memory.sticky_from:
        return replace(memory, sticky_left=0)
    return memory


def is_forced(looks_since_analyzed: int, policy: GatePolicy) -> bool:
    """Whether this look is analyzed whatever it shows; counts looks since the last analyzed or queued one."""
    return looks_since_analyzed + 1 >= policy.force_infer_every_n


def _by_threshold(measured: Measured, policy: GatePolicy) -> Reason:
    """Changed pixels or light against the previous look. `luma_delta` is signed."""
    changed = measured.diff_ratio >= policy.diff_ratio_no_event
    return Reason.CHANGE if changed or abs(measured.luma_delta) >= policy.luma_delta_no_event else Reason.QUIET


def _by_contrast(measured: Measured, memory: GateMemory, policy: GatePolicy) -> Reason:
    if measured.z_max is None or measured.learned < policy.learn_looks:
        return Reason.LEARNING
    if measured.is_whole:
        # The light or the infra-red filter, most of all: it makes nothing sticky.
        return Reason.WHOLE
    if measured.z_max >= policy.z_pass:
        return Reason.CHANGE
    return Reason.STICKY if memory.sticky_left > 0 else Reason.QUIET
