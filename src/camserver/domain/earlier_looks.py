"""Which earlier look an analyzer compares a picture with, where a place is watched that things shall not vanish from.

Whoever takes a thing stands before it in the look before, and behind somebody nothing is missed (`domain.shelves`).
So cameras with such a place (the hint `shelf_roi`) get the newest earlier look in which neither human nor animal was
seen; all others get the look before, and so do these where there is no such look.

The contract has one previous picture, which serves other rules too:

- Covered and moved (`domain.tampering`) say what happened between the two pictures. They need no immediate
  predecessor, only one of the same view, and each change shall be said once. So no look from before a change of the
  view is chosen: the search ends at a look of which such a change was said.
- Running needs both looks within two seconds, and the runner in both. Where an older look is chosen it is not said:
  whoever marks such a place wants to know about that first.

A thing that is gone is said once as well: the look of which it was said counts as undisturbed, whoever else is in it,
since nobody was before the place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain.detections import TAG_MISSING, Category
from camserver.domain.tampering import TAG_COVERED, TAG_MOVED

# So many looks are searched at most, newest first: two minutes of a camera that is looked at every second.
LOOKS_MAX = 120
_LIVING_EVENTS = frozenset({Category.HUMAN.value, Category.ANIMAL.value})
# People and animals have such tags also where something else is the primary event.
_LIVING_TAGS = ("count.", "animal.")
_CHANGES_OF_VIEW = frozenset({TAG_COVERED, TAG_MOVED})


@dataclass(frozen=True, slots=True)
class EarlierLook:
    has_picture: bool
    is_quiet: bool  # to the gate: it shows what the look before it showed
    is_analyzed: bool
    primary_event: str = ""
    tags: tuple[str, ...] = ()


def undisturbed(looks: Sequence[EarlierLook]) -> int | None:
    """Where in `looks`, newest first, the newest is in which neither human nor animal was seen.

    A quiet look shows what the newest analyzed one before it shows; where that is not among them, nothing speaks
    against it. Of a look that changed something and was not analyzed (yet), nobody knows.
    """
    quiet: int | None = None  # the newest one that shows what the next analyzed look will tell
    for number, look in enumerate(looks):
        if not look.is_analyzed:
            if not look.is_quiet:
                quiet = None
            elif look.has_picture and quiet is None:
                quiet = number
            continue
        if not _is_disturbed(look):
            if quiet is not None:
                return quiet
            if look.has_picture:
                return number
        quiet = None
        if not _CHANGES_OF_VIEW.isdisjoint(look.tags):
            return None
    return quiet


def _is_disturbed(look: EarlierLook) -> bool:
    if TAG_MISSING in look.tags:
        return False
    return look.primary_event in _LIVING_EVENTS or any(tag.startswith(_LIVING_TAGS) for tag in look.tags)
