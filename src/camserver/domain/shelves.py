"""Whether a thing is gone from a place that is watched for that: a shelf, a counter, a parking space.

Told from two pictures alone. A thing was recognized there a picture ago and is not now, nobody is in front of the
place in either, and (measured elsewhere) the picture changed where it was: a detector that overlooks a thing changes
no pixel. It is a suspicion: who sees it judges.
"""

from collections.abc import Collection, Sequence

from camserver.domain.detections import MEANINGS, Category, Detection, names_of
from camserver.domain.polygons import Polygon, contains
from camserver.domain.stationary import iou

# The detector was this sure of the thing while it was there; this little is enough to think it is still there, or
# that there is somebody in front of it.
SEEN_SCORE, DOUBT_SCORE = 0.4, 0.15
SAME_PLACE_IOU = 0.3
# Of the pixels where the thing was, how many must be others now.
CHANGED_SHARE_MIN = 0.3
_LIVING = (Category.HUMAN, Category.ANIMAL)


def gone_from(
    shelf: Polygon, expected: Collection[str], before: Sequence[Detection], now: Sequence[Detection]
) -> tuple[Detection, ...]:
    """What was in the place and is not there now, as far as the detector can say.

    `expected` names what belongs there; when it is empty, anything that does not live.
    """
    if any(_is_in_front(one, shelf) for one in (*before, *now)):
        return ()
    there = [one for one in before if one.score >= SEEN_SCORE and _belongs(one, shelf, expected)]
    return tuple(one for one in there if not any(_is_still(one, other) for other in now))


def is_changed(changed_share: float) -> bool:
    return changed_share >= CHANGED_SHARE_MIN


def _belongs(one: Detection, shelf: Polygon, expected: Collection[str]) -> bool:
    if not contains(shelf, (one.x1 + one.x2) / 2, (one.y1 + one.y2) / 2):
        return False
    return not set(expected).isdisjoint(names_of(one.label)) if expected else not _lives(one)


def _is_in_front(one: Detection, shelf: Polygon) -> bool:
    """Whether somebody may hide the place: the boxes of both touch."""
    if not _lives(one) or one.score < DOUBT_SCORE:
        return False
    across, down = [x for x, _ in shelf], [y for _, y in shelf]
    return one.x1 < max(across) and min(across) < one.x2 and one.y1 < max(down) and min(down) < one.y2


def _is_still(one: Detection, other: Detection) -> bool:
    """By its place alone: a bottle may be called a vase a moment later."""
    return other.score >= DOUBT_SCORE and iou(one.box(), other.box()) >= SAME_PLACE_IOU


def _lives(one: Detection) -> bool:
    meaning = MEANINGS.get(one.label)
    return meaning is not None and meaning.category in _LIVING
