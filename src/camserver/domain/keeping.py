"""What becomes of evidence that is kept already: how long each thing stays, and what goes when room is short.

Pure rules over what the store read; it asks the same rule again under a lock before anything is deleted. What is in a
case has the class `case` and goes by none of them. The newest picture of a camera always stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.retention import Retention, RetentionPolicy

DAY_MS = 86_400_000
# Quiet pictures are thinned out only when nobody looks at them as news any more.
THIN_AFTER_MS = 600_000
# Looks come a little early or late; a picture is not thinned out for that.
THIN_TOLERANCE = 0.1
# How much more than needed is freed, so that the next look does not bring the same shortage.
SLACK = 0.02
# What was held back is counted in the message that follows; a busy camera leaves hundreds of such rows an hour.
SUPPRESSED_DAYS_MAX = 2


class Why(StrEnum):
    """Why something goes before or at its time; also what reports call it."""

    AGE = "age"
    QUIET = "quiet"  # one of many pictures of a quiet camera
    CAMERA_QUOTA = "camera_quota"
    TENANT_QUOTA = "tenant_quota"
    FLOOR = "floor"  # free space is below the floor
    FLOOR_BEST = "floor_best"  # as before, and nothing but the small pictures of events was left


class Fate(StrEnum):
    KEEP = "keep"
    SHRINK = "shrink"  # the full picture goes, row and small picture stay
    STRIP = "strip"  # the pictures go, the row stays
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class KeptFrame:
    frame_id: int
    captured_at: int
    retention: Retention
    keep_until: int | None
    is_quiet: bool  # the gate let it pass by, and nobody analyzed it
    is_seen: bool  # detected, unknown or part of an event
    is_best: bool  # its event's best frame
    is_awaited: bool  # an unfinished job needs its picture
    infer_bytes: int | None
    full_bytes: int | None

    @property
    def bytes(self) -> int:
        return (self.infer_bytes or 0) + (self.full_bytes or 0)

    @property
    def has_picture(self) -> bool:
        return self.infer_bytes is not None or self.full_bytes is not None


@dataclass(frozen=True, slots=True)
class KeptEvent:
    event_id: int
    last_seen_at: int
    retention: Retention
    keep_until: int | None
    is_open: bool
    has_case_frames: bool


@dataclass(frozen=True, slots=True)
class KeptClip:
    clip_id: int
    end_at: int
    retention: Retention  # its event's
    keep_until: int | None  # its event's
    bytes: int


def frame_days(frame: KeptFrame, policy: RetentionPolicy) -> int | None:
    """How many days the frame's class gives it; None: no end."""
    return _class_days(frame.retention, policy.detected_days if frame.is_seen else policy.frames_days, policy)


def _class_days(retention: Retention, normal_days: int, policy: RetentionPolicy) -> int | None:
    match retention:
        case Retention.CASE:
            return None
        case Retention.QUARANTINE:
            return policy.quarantine_days
        case Retention.NORMAL:
            return normal_days


def _is_over(at_ms: int, days: int | None, keep_until: int | None, now_ms: int) -> bool:
    if days is None or (keep_until is not None and now_ms < keep_until):
        return False
    return now_ms >= at_ms + days * DAY_MS


def frame_fate_by_age(frame: KeptFrame, is_newest: bool, policy: RetentionPolicy, now_ms: int) -> Fate:
    """What its age does to a frame. The best frame of an event lives as long as the event, in its small picture."""
    if is_newest or frame.is_awaited:
        return Fate.KEEP
    if not _is_over(frame.captured_at, frame_days(frame, policy), frame.keep_until, now_ms):
        return Fate.KEEP
    if frame.is_best:
        return Fate.KEEP if frame.full_bytes is None else Fate.SHRINK
    return Fate.DELETE


def _fate_of_quiet(frame: KeptFrame, is_newest: bool, policy: RetentionPolicy, now_ms: int) -> Fate:
    goes = frame.is_quiet and not frame.is_best and _may_give(frame, is_newest, now_ms)
    return Fate.STRIP if goes else Fate.KEEP


def _fate_in_need(frame: KeptFrame, is_newest: bool, policy: RetentionPolicy, now_ms: int) -> Fate:
    """Room is short: ordinary pictures go, but of an event's best frame only the full one."""
    if not _may_give(frame, is_newest, now_ms):
        return Fate.KEEP
    if frame.is_best:
        return Fate.KEEP if frame.full_bytes is None else Fate.SHRINK
    return Fate.STRIP


def _fate_in_despair(frame: KeptFrame, is_newest: bool, policy: RetentionPolicy, now_ms: int) -> Fate:
    return Fate.STRIP if _may_give(frame, is_newest, now_ms) else Fate.KEEP


def _may_give(frame: KeptFrame, is_newest: bool, now_ms: int) -> bool:
    """Whether a frame's pictures may go before their time."""
    return (
        frame.retention is Retention.NORMAL
        and frame.has_picture
        and not is_newest
        and not frame.is_awaited
        and (frame.keep_until is None or now_ms >= frame.keep_until)
    )


_FATES: Mapping[Why, Callable[[KeptFrame, bool, RetentionPolicy, int], Fate]] = {
    Why.AGE: frame_fate_by_age,
    Why.QUIET: _fate_of_quiet,
    Why.CAMERA_QUOTA: _fate_in_need,
    Why.TENANT_QUOTA: _fate_in_need,
    Why.FLOOR: _fate_in_need,
    Why.FLOOR_BEST: _fate_in_despair,
}


def frame_fate(why: Why, frame: KeptFrame, is_newest: bool, policy: RetentionPolicy, now_ms: int) -> Fate:
    """What becomes of a frame when a sweep comes to it for this reason."""
    return _FATES[why](frame, is_newest, policy, now_ms)


def freed_bytes(frame: KeptFrame, fate: Fate) -> int:
    match fate:
        case Fate.KEEP:
            return 0
        case Fate.SHRINK:
            return frame.full_bytes or 0
        case Fate.STRIP | Fate.DELETE:
            return frame.bytes


def event_is_over(event: KeptEvent, policy: RetentionPolicy, now_ms: int) -> bool:
    """Whether an event goes. It lives at least as long as what belongs to it."""
    if event.is_open or event.has_case_frames:
        return False
    class_days = _class_days(event.retention, policy.events_days, policy)
    days = None if class_days is None else max(class_days, policy.events_days)
    return _is_over(event.last_seen_at, days, event.keep_until, now_ms)


def clip_is_over(clip: KeptClip, policy: RetentionPolicy, now_ms: int) -> bool:
    """A clip lives as long as the frames of its event's class."""
    days = _class_days(clip.retention, policy.detected_days, policy)
    return _is_over(clip.end_at, days, clip.keep_until, now_ms)


def clip_may_go(clip: KeptClip, now_ms: int) -> bool:
    """Whether a clip may go before its time, because room is short."""
    return clip.retention is Retention.NORMAL and (clip.keep_until is None or now_ms >= clip.keep_until)


@dataclass(frozen=True, slots=True)
class Thinned:
    frame_ids: tuple[int, ...]  # whose pictures go
    kept_at: int | None  # the last quiet picture that stays, for the next page


def thin_out(frames: Sequence[KeptFrame], kept_at: int | None, every_sec: int) -> Thinned:
    """Which quiet pictures go so that one in `every_sec` stays. `frames` are a camera's, in the order of time.

    Thinning what was thinned takes nothing more, so it can begin anywhere again.
    """
    apart_ms = every_sec * 1000 * (1 - THIN_TOLERANCE)
    going = []
    for frame in frames:
        if not frame.is_quiet or not frame.has_picture:
            continue
        if kept_at is not None and frame.captured_at - kept_at < apart_ms:
            going.append(frame.frame_id)
        else:
            kept_at = frame.captured_at
    return Thinned(tuple(going), kept_at)


def beyond_bytes(used_bytes: int, max_bytes: int) -> int:
    """How many bytes must go so that a bound is kept, with a little room; 0 when it is kept."""
    if max_bytes == 0 or used_bytes <= max_bytes:
        return 0
    return used_bytes - max_bytes + round(max_bytes * SLACK)


def short_bytes(free_bytes: int | None, policy: RetentionPolicy) -> int:
    """How many bytes must go so that the disk is above its floor, with a little room; 0 when it is."""
    if free_bytes is None or policy.free_min_bytes == 0 or free_bytes >= policy.free_min_bytes:
        return 0
    return policy.free_min_bytes - free_bytes + round(policy.free_min_bytes * SLACK)


def days_until_floor(free_bytes: int | None, grown_bytes_a_day: int, policy: RetentionPolicy) -> float | None:
    """In how many days the disk reaches its floor at this growth; None: not at all, or it can't be known."""
    if free_bytes is None or grown_bytes_a_day <= 0:
        return None
    return max(free_bytes - policy.free_min_bytes, 0) / grown_bytes_a_day


def suppressed_days(policy: RetentionPolicy) -> int:
    """How many days messages that were held back are remembered."""
    return min(policy.deliveries_days, SUPPRESSED_DAYS_MAX)
