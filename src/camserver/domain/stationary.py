"""A camera's memory of things that stay where they are, so that a parked car is one event (decision 18).

The rule errs towards telling too much. A box counts as still only after analyzed looks in a row held the same
label in the same place for a minimum time, and the place it was first seen in never drifts along. A person is
never taken for still, and nor is anything in a look that tells of a person, a hazard or a camera fault: who
stands still is loitering, and that must stay an event.

The life of a parked car: it arrives and opens an event; further looks merge; once it counts as still it no
longer feeds the event, which closes by the ordinary rule. While it stands there, somebody passing is an event
of their own and does not reopen the car's. When it leaves, its box is in another place and opens a new event.

Forgetting counts analyzed looks and not time, because looks without change are not analyzed: an hour of quiet
is no sign that the car left. What is stored of the frame is never changed; only what the event rule sees is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from camserver.domain.analysis import Analysis, Box
from camserver.domain.facts import Still
from camserver.domain.policy import setting
from camserver.domain.vocabulary import NO_EVENT, UNKNOWN_EVENT, is_hazard

# Tags that make a look untouchable: what they tell of is not explained by any box in the memory.
_TELLING_TAGS = frozenset({"camera.offline", "camera.moved", "camera.occluded", "object_missing.suspected"})
_TELLING_FAMILY = "behavior."
_CAMERA_MOVED = "camera.moved"


@dataclass(frozen=True, slots=True)
class StationaryPolicy:
    """When something seen again and again in the same place stops feeding events."""

    enabled: bool = setting(True, "Whether things that stay where they are stop feeding events.")
    primary_events: tuple[str, ...] = setting(
        ("vehicle", "animal", "unknown"),
        "Primary events that may be left out when nothing but still things is in the picture.",
    )
    never_labels: tuple[str, ...] = setting(
        (
            "person",
            "human",
            "pedestrian",
            "people",
            "man",
            "woman",
            "child",
            "face",
            "fire",
            "flame",
            "smoke",
            "water",
        ),
        "Box labels, in lower case, that never count as still.",
    )
    min_iou: float = setting(
        0.7,
        "How much two boxes must overlap (intersection over union) to be in the same place.",
        min=0.3,
        max=1.0,
    )
    min_looks: int = setting(5, "How many analyzed looks must have held a thing before it is still.", min=2, max=1000)
    min_duration_sec: int = setting(
        300, "How long a thing must have been seen in its place before it is still.", min=1, max=86_400
    )
    max_missed: int = setting(
        5, "How many analyzed looks in a row may miss a still thing before it is forgotten.", min=0, max=1000
    )
    max_stills: int = setting(64, "How many things are remembered per camera.", min=1, max=256)


def remember(
    stills: Sequence[Still], boxes: Sequence[Box], now_ms: int, policy: StationaryPolicy
) -> tuple[tuple[Still, ...], tuple[Box, ...]]:
    """The memory after a look at `now_ms`, and the boxes that are not known to be still.

    A look older than what the memory holds adds sightings but counts no misses: a thing may have come later.
    """
    matches = _match(stills, boxes, policy)
    matched = set(matches.values())
    kept = [_aged(still, index in matched, now_ms, policy) for index, still in enumerate(stills)]
    moving: list[Box] = []
    fresh: list[Still] = []
    for index, box in enumerate(boxes):
        home = matches.get(index)
        if home is None:
            moving.append(box)
            if _can_be_still(box, policy):
                fresh.append(_first_sight(box, now_ms))
        elif not is_still(_seen_again(stills[home], now_ms), policy):
            moving.append(box)
    return _bounded([still for still in kept if still is not None] + fresh, policy), tuple(moving)


def is_still(still: Still, policy: StationaryPolicy) -> bool:
    """Whether a remembered thing has been in its place often and long enough."""
    return (
        still.seen >= policy.min_looks and still.last_seen_at - still.first_seen_at >= policy.min_duration_sec * 1000
    )


def is_full(stills: Sequence[Still], policy: StationaryPolicy) -> bool:
    """Whether the memory has reached its bound, so that the caller can report it."""
    return len(stills) >= policy.max_stills


def look_through(
    stills: tuple[Still, ...], analysis: Analysis, captured_at: int, late: bool, policy: StationaryPolicy
) -> tuple[tuple[Still, ...], Analysis]:
    """The memory afterwards, and the analysis as the event rule shall see it.

    A late look leaves the memory as it is, but is judged by what the memory knew of its time.
    """
    if not policy.enabled:
        return stills, analysis
    if late:
        return stills, _without_stills(analysis, _moving_then(stills, analysis.boxes, captured_at, policy), policy)
    if _CAMERA_MOVED in analysis.tags:
        return (), analysis  # every place means another spot now
    if analysis.detected and not analysis.boxes:
        return stills, analysis  # labels without places say nothing about what stays where it is
    after, moving = remember(stills, analysis.boxes, captured_at, policy)
    return after, _without_stills(analysis, moving, policy)


def iou(a: Box | Still, b: Box | Still) -> float:
    """Intersection over union of two boxes, 0..1."""
    width = min(a.x2, b.x2) - max(a.x1, b.x1)
    height = min(a.y2, b.y2) - max(a.y1, b.y1)
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    union = _area(a) + _area(b) - shared
    return shared / union if union > 0 else 0.0


def _without_stills(analysis: Analysis, moving: Sequence[Box], policy: StationaryPolicy) -> Analysis:
    """`analysis`, or nothing detected when all it tells of is explained by still things."""
    if moving or not analysis.boxes or not _may_be_left_out(analysis, policy):
        return analysis
    return replace(
        analysis, detected=False, primary_event=NO_EVENT, severity=0, unknown_flag=False, tags=(), boxes=()
    )


def _may_be_left_out(analysis: Analysis, policy: StationaryPolicy) -> bool:
    primary_event = analysis.primary_event
    if primary_event == NO_EVENT and analysis.unknown_flag:
        primary_event = UNKNOWN_EVENT
    if primary_event not in policy.primary_events:
        return False
    if any(is_hazard(tag) or tag in _TELLING_TAGS or tag.startswith(_TELLING_FAMILY) for tag in analysis.tags):
        return False
    # More things counted than boxes given: something in the picture has no place we could compare.
    return analysis.count_hint is None or analysis.count_hint <= len(analysis.boxes)


def _match(stills: Sequence[Still], boxes: Sequence[Box], policy: StationaryPolicy) -> dict[int, int]:
    """Box index -> still index, one to one, best overlap first; ties by position."""
    pairs = [
        (-overlap, box_index, still_index)
        for box_index, box in enumerate(boxes)
        if _can_be_still(box, policy)
        for still_index, still in enumerate(stills)
        if still.label == box.label and (overlap := iou(box, still)) >= policy.min_iou
    ]
    taken: dict[int, int] = {}
    used: set[int] = set()
    for _, box_index, still_index in sorted(pairs):
        if box_index not in taken and still_index not in used:
            taken[box_index] = still_index
            used.add(still_index)
    return taken


def _moving_then(
    stills: Sequence[Still], boxes: Sequence[Box], captured_at: int, policy: StationaryPolicy
) -> tuple[Box, ...]:
    known = [still for still in stills if is_still(still, policy) and still.first_seen_at <= captured_at]
    matches = _match(known, boxes, policy)
    return tuple(box for index, box in enumerate(boxes) if index not in matches)


def _aged(still: Still, seen: bool, now_ms: int, policy: StationaryPolicy) -> Still | None:
    """The thing after this look; None when forgotten. What is not yet still may not be missed even once."""
    if seen:
        return _seen_again(still, now_ms)
    if now_ms <= still.last_seen_at:
        return still
    allowed = policy.max_missed if is_still(still, policy) else 0
    return replace(still, missed=still.missed + 1) if still.missed < allowed else None


def _seen_again(still: Still, now_ms: int) -> Still:
    return replace(
        still,
        first_seen_at=min(still.first_seen_at, now_ms),
        last_seen_at=max(still.last_seen_at, now_ms),
        seen=still.seen + 1,
        missed=0,
    )


def _first_sight(box: Box, now_ms: int) -> Still:
    return Still(
        label=box.label or "",
        x1=box.x1,
        y1=box.y1,
        x2=box.x2,
        y2=box.y2,
        first_seen_at=now_ms,
        last_seen_at=now_ms,
        seen=1,
    )


def _bounded(stills: list[Still], policy: StationaryPolicy) -> tuple[Still, ...]:
    """At most `max_stills`: those seen most often stay, then those seen last."""
    if len(stills) <= policy.max_stills:
        return tuple(stills)
    ranked = sorted(stills, key=lambda still: (still.seen, still.last_seen_at), reverse=True)
    return tuple(ranked[: policy.max_stills])


def _can_be_still(box: Box, policy: StationaryPolicy) -> bool:
    if box.label is None:
        return False
    label = box.label.strip().lower()
    return bool(label) and not is_hazard(label) and label not in policy.never_labels


def _area(box: Box | Still) -> float:
    return (box.x2 - box.x1) * (box.y2 - box.y1)
