"""A camera's memory of things that stay where they are, so that a parked car is one event (decision 18).

The rule errs towards telling too much. A box counts as still only after analyzed looks in a row held the same
label in the same place for a minimum time, and the place it was first seen in never drifts along. A person is
never taken for still, and nor is anything in a look that tells of a person, a hazard or a camera fault: who
stands still is loitering, and that must stay an event.

The life of a parked car: it arrives and opens an event; further looks merge. Whoever passes before it counts as
still ends that event with one of their own, but the car has been *told*: seen in its place again it may go on with
an event, but begins none. Once it counts as still it no longer feeds events at all, and its own closes by the
ordinary rule. When it leaves, its box is in another place and opens a new event.

Forgetting counts analyzed looks rather than time, because looks without change are not analyzed: an hour of quiet
is no sign that the car left. Nor is a look in which somebody stands before it, or which is dark or blurred. Who
comes to a place that was seen empty must fit it closely to pass for the one that left. What is stored of the frame
is never changed; only what the event rule sees is.
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
CAMERA_MOVED_TAG = "camera.moved"
# Pictures in which a thing that is there may well not be seen.
_BLIND_TAGS = frozenset({"camera.dark", "camera.glare", "camera.blur", "camera.occluded"})
# What an analyzer calls by one name in one look, and by another in the next, e.g. when the camera turns to infrared.
_ALIKE = frozenset({"car", "truck", "bus", "van"})
# How much of a thing's place another one must cover to hide it.
HIDING_SHARE = 0.5
# So many looks in a row that show the place without it, over the time it takes to become still: it has left.
GONE_LOOKS = 2


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
    min_iou_again: float = setting(
        0.85,
        "The same for a thing whose place was seen without it meanwhile: another one there seldom fits so well.",
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
    max_unseen_sec: int = setting(
        604_800, "How long a thing is remembered that no analyzed look has shown.", min=60, max=31_536_000
    )
    max_stills: int = setting(64, "How many things are remembered per camera.", min=1, max=256)


def remember(
    stills: Sequence[Still], boxes: Sequence[Box], now_ms: int, policy: StationaryPolicy, is_clear: bool = True
) -> tuple[tuple[Still, ...], tuple[Box, ...]]:
    """The memory after a look at `now_ms`, and the boxes that are not known to be still.

    A look older than what the memory holds adds sightings but counts no misses: a thing may have come later. Nor
    does one that is not clear.
    """
    stills = _recent(stills, now_ms, policy)
    matches = _match(stills, boxes, policy)
    matched = set(matches.values())
    kept: list[Still | None] = []
    for index, still in enumerate(stills):
        if index in matched:
            kept.append(_seen_again(still, now_ms))
        elif not is_clear or now_ms <= still.last_seen_at or _is_hidden(still, boxes):
            kept.append(still)
        else:
            kept.append(_missed(still, now_ms, policy))
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


def is_told(stills: Sequence[Still], analysis: Analysis, captured_at: int, policy: StationaryPolicy) -> bool:
    """Whether all that a look shows has been told as an event of its kind and is where it was.

    `stills` is the memory before the look.
    """
    if not policy.enabled or not analysis.boxes or not _may_be_left_out(analysis, policy):
        return False
    kind = _kind(analysis)
    known = [still for still in _recent(stills, captured_at, policy) if still.first_seen_at <= captured_at]
    matches = _match(known, analysis.boxes, policy)
    if len(matches) < len(analysis.boxes):
        return False
    return all(known[home].told == kind or is_still(known[home], policy) for home in matches.values())


def mark_told(stills: tuple[Still, ...], analysis: Analysis, policy: StationaryPolicy) -> tuple[Still, ...]:
    """The memory after a look that fed an event. What is seen beside a person is not what that event tells of."""
    kind = _kind(analysis)
    if not policy.enabled or kind not in policy.primary_events:
        return stills
    shown = set(_match(stills, analysis.boxes, policy).values())
    return tuple(replace(still, told=kind) if index in shown else still for index, still in enumerate(stills))


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
    if CAMERA_MOVED_TAG in analysis.tags:
        return (), analysis  # every place means another spot now
    if analysis.detected and not analysis.boxes:
        return stills, analysis  # labels without places say nothing about what stays where it is
    is_clear = _BLIND_TAGS.isdisjoint(analysis.tags)
    after, moving = remember(stills, analysis.boxes, captured_at, policy, is_clear)
    return after, _without_stills(analysis, moving, policy)


def nothing_new(analysis: Analysis) -> Analysis:
    """The analysis without all that it tells."""
    return replace(
        analysis, detected=False, primary_event=NO_EVENT, severity=0, unknown_flag=False, tags=(), boxes=()
    )


def iou(a: Box | Still, b: Box | Still) -> float:
    """Intersection over union of two boxes, 0..1."""
    shared = _shared(a, b)
    if shared == 0.0:
        return 0.0
    union = _area(a) + _area(b) - shared
    return shared / union if union > 0 else 0.0


def _without_stills(analysis: Analysis, moving: Sequence[Box], policy: StationaryPolicy) -> Analysis:
    """`analysis`, or nothing detected when all it tells of is explained by still things."""
    if moving or not analysis.boxes or not _may_be_left_out(analysis, policy):
        return analysis
    return nothing_new(analysis)


def _kind(analysis: Analysis) -> str:
    if analysis.primary_event == NO_EVENT and analysis.unknown_flag:
        return UNKNOWN_EVENT
    return analysis.primary_event


def _may_be_left_out(analysis: Analysis, policy: StationaryPolicy) -> bool:
    if _kind(analysis) not in policy.primary_events:
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
        if _are_alike(still.label, box.label) and (overlap := iou(box, still)) >= _needed_iou(still, policy)
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


def _recent(stills: Sequence[Still], now_ms: int, policy: StationaryPolicy) -> list[Still]:
    return [still for still in stills if now_ms - still.last_seen_at <= policy.max_unseen_sec * 1000]


def _needed_iou(still: Still, policy: StationaryPolicy) -> float:
    return max(policy.min_iou, policy.min_iou_again) if still.missed else policy.min_iou


def _are_alike(label: str, other: str | None) -> bool:
    return label == other or (other in _ALIKE and label in _ALIKE)


def _is_hidden(still: Still, boxes: Sequence[Box]) -> bool:
    """Whether something of another sort is before its place. One of its own sort rather took the place."""
    return any(
        not _are_alike(still.label, box.label) and _shared(box, still) >= HIDING_SHARE * _area(still) for box in boxes
    )


def _missed(still: Still, now_ms: int, policy: StationaryPolicy) -> Still | None:
    """The thing after a look without it; None when forgotten. What is not yet still may not be missed even once."""
    missed = still.missed + 1
    is_gone = missed >= GONE_LOOKS and now_ms - still.last_seen_at >= policy.min_duration_sec * 1000
    if not is_still(still, policy) or is_gone or missed > policy.max_missed:
        return None
    return replace(still, missed=missed)


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
    # The memory holds others under labels that begin so (see dwelling).
    return bool(label) and label[0] != "@" and not is_hazard(label) and label not in policy.never_labels


def _shared(a: Box | Still, b: Box | Still) -> float:
    width = min(a.x2, b.x2) - max(a.x1, b.x1)
    height = min(a.y2, b.y2) - max(a.y1, b.y1)
    return width * height if width > 0 and height > 0 else 0.0


def _area(box: Box | Still) -> float:
    return (box.x2 - box.x1) * (box.y2 - box.y1)
