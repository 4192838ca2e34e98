"""Cases: evidence that people keep together. What a case may hold, and when it keeps it from being deleted.

A case holds frames, events (with all their frames and the clip) and clips. As long as it is open, or closed under
hold, nothing deletes what it holds. Rows are elsewhere; what goes when nothing holds it is in `keeping`.
"""

from enum import StrEnum

from camserver.base.errors import BadInput
from camserver.domain.names import is_name, is_plain

TITLE_MAX_CHARS = 255
NOTE_MAX_CHARS = 10_000
# An event counts as one item, however many frames it has.
ITEMS_MAX = 2_000
NOTES_MAX = 1_000


class CaseState(StrEnum):
    OPEN = "open"
    CLOSED = "closed"


class ItemKind(StrEnum):
    FRAME = "frame"
    EVENT = "event"  # with all its frames and its clip
    CLIP = "clip"


def holds_items(state: CaseState, hold: bool) -> bool:
    """Whether a case keeps its items from being deleted."""
    return hold or state is CaseState.OPEN


def checked_title(title: str) -> str:
    """The title with single spaces between its words; BadInput when there are none, it is too long or no one line."""
    if not is_plain(title):
        raise BadInput(
            "a title is one line of characters that can be seen; write the rest as a note", reason="case_title_line"
        )
    plain = " ".join(title.split())
    if not is_name(plain):
        raise BadInput("a case needs a title; say in a few words what it is about", reason="case_title")
    if len(plain) > TITLE_MAX_CHARS:
        raise BadInput(
            f"the title has {len(plain)} characters, at most {TITLE_MAX_CHARS} are allowed; write the rest as a note",
            reason="case_title_long",
            chars_max=TITLE_MAX_CHARS,
        )
    return plain


def checked_note(body: str) -> str:
    plain = body.strip()
    if not plain:
        raise BadInput("the note is empty; write something", reason="case_note")
    if len(plain) > NOTE_MAX_CHARS:
        raise BadInput(
            f"the note has {len(plain)} characters, at most {NOTE_MAX_CHARS} are allowed; write two",
            reason="case_note_long",
            chars_max=NOTE_MAX_CHARS,
        )
    return plain
