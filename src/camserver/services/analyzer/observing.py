"""What is measured of a picture besides what a model finds in it: of people's clothes and haste, and of the camera.

The rules are in `domain` (clothes, running, shelves, tampering); here they get their numbers. Work for a thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from camserver.domain.clothes import top_place, top_tag
from camserver.domain.detections import (
    TAG_DARK,
    TAG_GLARE,
    Detection,
    DetectionPolicy,
    Hints,
    Measured,
    Quality,
    people,
    quality_tags,
)
from camserver.domain.running import ELAPSED_MAX_MS, TAG_RUNNING, Walker, is_running
from camserver.domain.shelves import gone_from, is_changed
from camserver.domain.stationary import iou
from camserver.domain.tampering import tampering_tags
from camserver.media.change import Gray
from camserver.media.jpeg_planes import Picture, Planes, rgb_of
from camserver.services.analyzer.colours import Coloured, colours_in, gain_of
from camserver.services.analyzer.comparing import changed_share, compare, has_colours, is_region_changed, with_boxes
from camserver.services.analyzer.pictures import gray_of, hidden_pixels, measured_of

# The clothes of so many people are looked at, the surest first.
CLOTHES_MAX = 10
# Two boxes that overlap more than this are one person's.
SAME_PERSON_IOU = 0.5
# What may be in front of somebody need not be sure to be left out of the colours.
IN_FRONT_SCORE = 0.3
# A previous picture is kept at most so large: no model sees more of it, and two large ones take twice the memory.
KEPT_SIDE_MAX_PX = 1280


@dataclass(frozen=True, slots=True)
class Sight:
    """One picture of a camera as it was decoded and measured. Of a previous one the picture itself is kept only where
    the model may have to look at it too."""

    gray: Gray
    has_colours: bool
    picture: Picture | None


def sight_of(picture: Picture) -> Sight:
    if isinstance(picture, Planes):
        return Sight(gray_of(picture.luma()), has_colours(picture), picture)
    measured = measured_of(picture)
    return Sight(np.asarray(measured.convert("L")), has_colours(measured), picture)


def previous_sight_of(picture: Picture, hints: Hints, since_ms: int | None) -> Sight:
    sight = sight_of(picture)
    if not is_kept(hints, since_ms):
        return replace(sight, picture=None)
    if isinstance(picture, Image.Image) and max(picture.size) > KEPT_SIDE_MAX_PX:
        picture.thumbnail((KEPT_SIDE_MAX_PX, KEPT_SIDE_MAX_PX), Image.Resampling.BILINEAR)
    return sight


def is_kept(hints: Hints, since_ms: int | None) -> bool:
    """Whether the model may have to look at the previous picture too."""
    return hints.shelf is not None or _may_run(since_ms)


def _may_run(since_ms: int | None) -> bool:
    return since_ms is not None and 0 < since_ms <= ELAPSED_MAX_MS


@dataclass(frozen=True, slots=True)
class Observer:
    """One request's pictures, what was found in them, and what is known of the camera."""

    now: Sight
    before: Sight | None
    quality: Quality
    hints: Hints
    since_ms: int | None

    def to_find_too(self, found: Sequence[Detection]) -> Picture | None:
        """The previous picture, if the model shall look at it as well: somebody may run, or something may be gone
        from the shelf. That costs as much as the new picture, so what can be ruled out without it is."""
        before, shelf = self.before, self.hints.shelf
        if before is None or before.picture is None or before.gray.shape != self.now.gray.shape:
            return None
        may_run = _may_run(self.since_ms) and any(one.label == "person" for one in found)
        may_miss = shelf is not None and is_region_changed(before.gray, self.now.gray, shelf)
        return before.picture if may_run or may_miss else None

    def measure(
        self, found: Sequence[Detection], found_before: Sequence[Detection] | None, policy: DetectionPolicy
    ) -> Measured:
        """`found_before`: in the previous picture; None when nobody looked."""
        tampering = self._tampering(found)
        persons = people(found, self.hints, policy)[:CLOTHES_MAX]
        tops = self._tops(self.now, persons, found)
        tags = {top_tag(top.shares) for top in tops if top is not None}
        is_missing = False
        if found_before is not None and not tampering:
            earlier = people(found_before, self.hints, policy)[:CLOTHES_MAX]
            if self._runs(_walkers(persons, tops), earlier, found_before):
                tags.add(TAG_RUNNING)
            is_missing = self._is_missing(found, found_before)
        return Measured(frozenset(tags), frozenset(tampering), is_missing)

    def _tampering(self, found: Sequence[Detection]) -> tuple[str, ...]:
        if self.before is None:
            return ()
        # A lorry before the lens is no other view: what was recognized is not compared.
        there = [one for one in found if one.score >= IN_FRONT_SCORE]
        hidden = with_boxes(hidden_pixels(self.now.gray.shape, self.hints.masks), self.now.gray.shape, there)
        compared = compare(self.before.gray, self.now.gray, hidden, self.before.has_colours, self.now.has_colours)
        return () if compared is None else tampering_tags(compared, TAG_GLARE in quality_tags(self.quality))

    def _tops(self, sight: Sight, persons: Sequence[Detection], found: Sequence[Detection]) -> list[Coloured | None]:
        """The colours of each one's upper clothing, where they can be seen."""
        if not persons or sight.picture is None or not sight.has_colours or self._is_ill_lit():
            return [None] * len(persons)
        gain, picture = gain_of(sight.gray), rgb_of(sight.picture)
        places = (top_place(one, _others(one, found), picture.size) for one in persons)
        return [None if place is None else colours_in(picture, place, gain) for place in places]

    def _runs(
        self, walkers: Sequence[Walker], earlier: Sequence[Detection], found_before: Sequence[Detection]
    ) -> bool:
        if self.before is None or not walkers or not _may_run(self.since_ms):
            return False
        before = _walkers(earlier, self._tops(self.before, earlier, found_before))
        height, width = self.now.gray.shape
        return is_running(walkers, before, self.since_ms, aspect=width / height)

    def _is_ill_lit(self) -> bool:
        return not {TAG_DARK, TAG_GLARE}.isdisjoint(quality_tags(self.quality))

    def _is_missing(self, found: Sequence[Detection], found_before: Sequence[Detection]) -> bool:
        if self.hints.shelf is None or self.before is None or self._is_ill_lit():
            return False
        before, now = self.before.gray, self.now.gray
        gone = gone_from(self.hints.shelf, self.hints.expected_things, found_before, found)
        return any(is_changed(changed_share(before, now, (one.x1, one.y1, one.x2, one.y2))) for one in gone)


def _others(person: Detection, found: Sequence[Detection]) -> list[Detection]:
    """What may be in front of somebody."""
    box = person.box()
    return [one for one in found if one.score >= IN_FRONT_SCORE and iou(one.box(), box) <= SAME_PERSON_IOU]


def _walkers(persons: Sequence[Detection], tops: Sequence[Coloured | None]) -> list[Walker]:
    return [Walker(person, None if top is None else top.middle) for person, top in zip(persons, tops, strict=True)]
