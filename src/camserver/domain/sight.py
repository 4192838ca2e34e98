"""Whether a camera still shows what it is there for: covered, turned away or frozen (decisions 4).

A worker measures two small values of every picture (media/view.py), and this rule compares them with what is usual
for the camera. All that is learned is in `Sight`, on the server: a worker that starts again changes nothing. Each
finding is only a suspicion until it lasted; see `suspicions`.

- covered: the texture of a usual picture is gone, from one moment to the next. Dusk takes longer, and is none.
- moved: the texture is elsewhere, steadily, and where it was never seen before. A camera has a few views (by day,
  with infra-red); one that stays becomes another of them, and the issue ends.
- frozen: pictures are equal to the bit. A sensor's noise sees to it that those of a live camera never are.
"""

from dataclasses import dataclass, replace

from camserver.base.records import record
from camserver.domain.policy import setting
from camserver.domain.suspicions import Suspicion, denied, held_when_lasting, shown

# The grid of `view_hex`.
VIEW_COLUMNS, VIEW_ROWS = 16, 9
VIEWS_MAX = 4
# Of the cells, how many agree: with a view that is known; with one that is another; and from look to look of one that
# stays. Two different places agree in half of them, a turn by a third of the picture leaves at most 0.64. Light,
# weather and passers-by leave at least 0.76, the switch to infra-red 0.65.
KNOWN_AGREEMENT = 0.8
OTHER_AGREEMENT = 0.65
STEADY_AGREEMENT = 0.85
# A scene with less texture than this says too little to be judged by it.
STRUCTURE_MIN = 0.04
# Shares of the usual texture: below which a picture is blank, above which a blank one is no more, and above which it
# is as usual. Dusk takes its time from the last to the first.
BLANK_SHARE = 0.15
CLEAR_SHARE = 0.3
USUAL_SHARE = 0.5
# How quickly the usual texture follows; some twenty looks.
USUAL_WEIGHT = 0.05
# Once dusk made a picture blank, a lamp that goes on and off again covers nothing.
DARK_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class HealthPolicy:
    """When something is wrong with a camera. When it is down is in [looks]."""

    failing_sec: int = setting(
        180,
        "A camera whose looks have failed for this long (or for as many intervals as down_after_looks) is down, "
        "however few they were: after a refused password they are rare.",
        min=10,
        max=86_400,
    )
    unattended_after_sec: int = setting(
        30, "How long no worker may hold a camera before it is shown as unattended.", min=0, max=3600
    )
    unattended_told_after_sec: int = setting(
        300, "How long a camera must be unattended before people are told, once for a site.", min=0, max=86_400
    )
    covered_looks: int = setting(
        3, "Looks in a row without texture after which a camera is covered.", min=1, max=1000
    )
    covered_sec: int = setting(60, "How long they must last.", min=0, max=86_400)
    covered_within_sec: int = setting(
        180,
        "Texture that takes longer than this to vanish is dusk and no cover (1.5 intervals, if more).",
        min=1,
        max=86_400,
    )
    moved_looks: int = setting(5, "Looks in a row at another view after which a camera was moved.", min=2, max=1000)
    moved_sec: int = setting(300, "How long they must last.", min=0, max=86_400)
    moved_accepted_sec: int = setting(
        3600, "How long a new view must last to become a usual one, which ends the issue.", min=60, max=604_800
    )
    frozen_looks: int = setting(10, "Equal pictures in a row after which a camera is frozen.", min=3, max=1000)
    frozen_sec: int = setting(600, "How long they must last.", min=0, max=86_400)


@record
class Picture:
    """What a good look says about its picture; None where it says nothing."""

    captured_at: int
    frame_id: int
    hash_hex: str | None = None
    structure: float | None = None
    view_hex: str | None = None


@record
class Sight:
    """What is remembered of a camera's pictures."""

    hash_hex: str = ""  # of the newest picture
    usual_structure: float | None = None
    clear_at: int | None = None  # captured_at of the newest picture with its usual texture
    dark_at: int | None = None  # … of the newest one that dusk made blank
    views: tuple[str, ...] = ()  # known ones, the one seen last first
    other_view: str = ""  # what a moved camera shows
    covered: Suspicion | None = None
    moved: Suspicion | None = None
    frozen: Suspicion | None = None


def look_at(
    before: Sight, picture: Picture, is_live: bool, interval_ms: int, over_after_looks: int, policy: HealthPolicy
) -> Sight:
    """After one more picture. `is_live`: of a camera; those of files and tests may well be equal for ever."""
    after = _covered(before, picture, interval_ms, over_after_looks, policy)
    # A picture of nothing says neither where the camera looks nor whether it lives.
    if after.covered is None:
        after = _moved(after, picture, over_after_looks, policy)
        after = _frozen(after, picture, over_after_looks, policy) if is_live else replace(after, frozen=None)
    return replace(after, hash_hex=picture.hash_hex or "")


def agreement(one_hex: str, other_hex: str) -> float:
    """Share of the cells in which two views agree."""
    cells = 4 * len(one_hex)
    return 1 - (int(one_hex, 16) ^ int(other_hex, 16)).bit_count() / cells


def _covered(before: Sight, picture: Picture, interval_ms: int, over_after_looks: int, policy: HealthPolicy) -> Sight:
    structure, usual, suspicion = picture.structure, before.usual_structure, before.covered
    if structure is None:
        return before
    if usual is None:
        return replace(before, usual_structure=structure, clear_at=picture.captured_at)
    share = structure / usual if usual else 1.0
    if usual >= STRUCTURE_MIN and share < (BLANK_SHARE if suspicion is None else CLEAR_SHARE):
        if suspicion is None and _is_dusk(before, picture.captured_at, interval_ms, policy):
            return replace(before, usual_structure=_followed(usual, structure), dark_at=picture.captured_at)
        suspicion = shown(suspicion, picture.captured_at, picture.frame_id)
        return replace(before, covered=held_when_lasting(suspicion, policy.covered_looks, policy.covered_sec * 1000))
    return replace(
        before,
        covered=denied(suspicion, over_after_looks),
        usual_structure=_followed(usual, structure),
        clear_at=picture.captured_at if share >= USUAL_SHARE else before.clear_at,
        dark_at=picture.captured_at if structure < STRUCTURE_MIN and suspicion is None else before.dark_at,
    )


def _is_dusk(before: Sight, at: int, interval_ms: int, policy: HealthPolicy) -> bool:
    """Whether a blank picture became so by and by, or was so already before somebody switched on a lamp."""
    within_ms = max(policy.covered_within_sec * 1000, interval_ms * 3 // 2)
    is_sudden = before.clear_at is not None and at - before.clear_at <= within_ms
    return not is_sudden or (before.dark_at is not None and at - before.dark_at <= DARK_MS)


def _followed(usual: float, structure: float) -> float:
    return round(usual + USUAL_WEIGHT * (structure - usual), 4)


def _moved(before: Sight, picture: Picture, over_after_looks: int, policy: HealthPolicy) -> Sight:
    view = picture.view_hex
    if view is None or picture.structure is None or picture.structure < STRUCTURE_MIN:
        return before
    if not before.views:
        return replace(before, views=(view,))
    best = max(before.views, key=lambda known: agreement(known, view))
    agreed = agreement(best, view)
    if agreed >= KNOWN_AGREEMENT:
        # The view goes on as it is now: the sun moves, leaves grow.
        views = (view, *(known for known in before.views if known != best))
        return replace(before, views=views, moved=denied(before.moved, over_after_looks))
    if agreed >= OTHER_AGREEMENT:
        return before
    suspicion, other = before.moved, before.other_view
    if suspicion is not None and suspicion.held_at is None and agreement(other, view) < STEADY_AGREEMENT:
        # Not the same as a moment ago either: something large passes by, or it rains.
        suspicion = None
    if suspicion is None:
        other = view
    suspicion = shown(suspicion, picture.captured_at, picture.frame_id)
    suspicion = held_when_lasting(suspicion, policy.moved_looks, policy.moved_sec * 1000)
    if picture.captured_at - suspicion.since >= policy.moved_accepted_sec * 1000:
        return replace(before, views=(view, *before.views)[:VIEWS_MAX], moved=None, other_view="")
    return replace(before, moved=suspicion, other_view=other)


def _frozen(before: Sight, picture: Picture, over_after_looks: int, policy: HealthPolicy) -> Sight:
    if not picture.hash_hex:
        return before
    if picture.hash_hex != before.hash_hex:
        return replace(before, frozen=denied(before.frozen, over_after_looks))
    suspicion = shown(before.frozen, picture.captured_at, picture.frame_id)
    return replace(before, frozen=held_when_lasting(suspicion, policy.frozen_looks, policy.frozen_sec * 1000))
