"""Whether somebody stays, where an analyzer says where people are: a busy door is not loitering (decision 18).

That an event lasts is what makes it loitering. But many people who pass one after the other make a long event too. So
where boxes of people are known, somebody must also have stayed near one place: a *dweller* is a place that a person's
box goes on overlapping from look to look, in at least half of the looks that showed people, with no pause longer than
an event may have. Who they are nobody knows: two people who take turns on one bench are one dweller, and somebody who
walks up and down is none. Without boxes the event's length decides alone.

Dwellers are kept in the camera's memory beside the things that stay where they are, under a label of their own.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from camserver.domain.analysis import Box
from camserver.domain.facts import Still
from camserver.domain.stationary import iou

DWELLER: Final = "@dweller"
DWELLERS_MAX: Final = 16
PEOPLE: Final = frozenset({"person", "human", "pedestrian", "people", "man", "woman", "child"})


def parted(memory: Sequence[Still]) -> tuple[tuple[Still, ...], tuple[Still, ...]]:
    """A camera's memory as things that stay and dwellers."""
    things = tuple(one for one in memory if one.label != DWELLER)
    return things, tuple(one for one in memory if one.label == DWELLER)


def people_in(boxes: Sequence[Box]) -> tuple[Box, ...]:
    return tuple(box for box in boxes if (box.label or "").strip().lower() in PEOPLE)


def follow(
    dwellers: Sequence[Still], boxes: Sequence[Box], captured_at: int, gap_ms: int, min_overlap: float
) -> tuple[Still, ...]:
    """The dwellers after a look. `boxes` are of people; a look without any says nothing about where people stay."""
    recent = [one for one in dwellers if abs(captured_at - one.last_seen_at) <= gap_ms or _spans(one, captured_at)]
    if not boxes:
        return tuple(recent)
    homes = _match(recent, boxes, min_overlap)
    found = {home: boxes[index] for index, home in homes.items()}
    after = [
        _seen_at(one, found[index], captured_at) if index in found else replace(one, missed=one.missed + 1)
        for index, one in enumerate(recent)
    ]
    after += [_arrived(box, captured_at) for index, box in enumerate(boxes) if index not in homes]
    ranked = sorted(after, key=lambda one: (one.seen - one.missed, one.last_seen_at), reverse=True)
    return tuple(ranked[:DWELLERS_MAX])


def somebody_stays(dwellers: Sequence[Still], start_at: int, long_ms: int) -> bool | None:
    """Whether one of them was near one place for so long; None when nothing is known of places since `start_at`."""
    known = [one for one in dwellers if one.last_seen_at >= start_at]
    if not known:
        return None
    return any(one.last_seen_at - one.first_seen_at >= long_ms and one.seen >= one.missed for one in known)


def _spans(one: Still, at_ms: int) -> bool:
    return one.first_seen_at <= at_ms <= one.last_seen_at


def _match(dwellers: Sequence[Still], boxes: Sequence[Box], min_overlap: float) -> dict[int, int]:
    """Box index -> dweller index, one to one, best overlap first; ties go to who has been there longest."""
    pairs = sorted(
        (-overlap, dweller.first_seen_at, box_index, index)
        for box_index, box in enumerate(boxes)
        for index, dweller in enumerate(dwellers)
        if (overlap := iou(box, dweller)) >= min_overlap
    )
    taken: dict[int, int] = {}
    for _, _, box_index, index in pairs:
        if box_index not in taken and index not in taken.values():
            taken[box_index] = index
    return taken


def _seen_at(one: Still, box: Box, captured_at: int) -> Still:
    """In its place again; the place follows somebody who shifts about. A look from behind moves nothing."""
    is_newest = captured_at >= one.last_seen_at
    place = box if is_newest else one
    return Still(
        label=DWELLER,
        x1=place.x1,
        y1=place.y1,
        x2=place.x2,
        y2=place.y2,
        first_seen_at=min(one.first_seen_at, captured_at),
        last_seen_at=max(one.last_seen_at, captured_at),
        seen=one.seen + 1,
        missed=one.missed,
    )


def _arrived(box: Box, captured_at: int) -> Still:
    return Still(DWELLER, box.x1, box.y1, box.x2, box.y2, captured_at, captured_at, seen=1)
