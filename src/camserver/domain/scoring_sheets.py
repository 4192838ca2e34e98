"""Sheets that people bring on the web to have them scored, and what is asked of the scores of events.

A sheet is *coming* until all of it was uploaded, *waiting* until the scoring service has looked at it, then *looked*
at or *refused*. Only one that was looked at, and found fit, can be scored.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from camserver.base.errors import BadInput
from camserver.domain.scoring import ScoreForm
from camserver.domain.sheet_layout import NAME_MAX_CHARS, Category, SheetLayout

# Files are sent, kept and read in pieces of this size: no request and no process ever holds more of one.
PART_BYTES: Final = 1_000_000
SHEETS_MAX: Final = 1_000
SPEC_MAX_BYTES: Final = 60_000
INSTRUCTIONS_MAX_CHARS: Final = 10_000
FINDINGS_MAX: Final = 50
# Events of one search that are scored at once, and categories that they are scored against.
EVENTS_MAX: Final = 5_000
EVENT_CATEGORIES_MAX: Final = 50
# Scores that a search asks for.
CONDITIONS_MAX: Final = 5


class SheetKind(StrEnum):
    FILE = "file"  # uploaded
    GOOGLE = "google"  # by link
    FOLDER = "folder"  # of scoring.folder on the server
    EVENTS = "events"  # of a search


class SheetState(StrEnum):
    COMING = "coming"
    WAITING = "waiting"
    LOOKED = "looked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SheetWishes:
    """What a person asks for beside the settings; empty: as they say."""

    layout: Mapping[str, object] = field(default_factory=dict)
    model: str | None = None
    form: ScoreForm | None = None
    instructions: str = ""
    categories: tuple[Category, ...] = ()  # of events: a sheet has its own

    def as_json(self) -> str:
        return json.dumps({**asdict(self), "layout": dict(self.layout)}, ensure_ascii=False)

    @staticmethod
    def from_json(text: str) -> "SheetWishes":
        held = json.loads(text)
        held["categories"] = tuple(Category(**one) for one in held["categories"])
        return SheetWishes(**held)


def part_sizes(size_bytes: int) -> list[int]:
    """How long each piece of a file is."""
    whole, rest = divmod(size_bytes, PART_BYTES)
    return [PART_BYTES] * whole + ([rest] if rest else [])


def part_key(tenant_id: int, sheet_uuid: str, number: int, mark: str = "") -> str:
    """Where a piece lies. Those of a result are marked anew each time: whoever reads the last one goes on."""
    return f"sheets/t{tenant_id}/{sheet_uuid}/{mark or 'upload'}/{number:06}"


# ---------------------------------------------------------------------------------------------------------------
# Events
# ---------------------------------------------------------------------------------------------------------------

# Rows of a sheet of events: there are no headers in it, but row 1 would be theirs.
EVENTS_LAYOUT: Final = SheetLayout(
    text_column="A", first_category_column="B", name_row=1, definition_row=0, detail_row=0, first_data_row=2
)


def event_categories(named: Mapping[str, str]) -> tuple[Category, ...]:
    """Categories from names and definitions. BadInput when there are none, too many, or two of one name."""
    found: dict[str, Category] = {}
    for name, definition in named.items():
        plain = " ".join(name.split())
        if not plain or len(plain) > NAME_MAX_CHARS:
            raise BadInput("a category needs a name of at most 200 characters", reason="score_category")
        if plain.casefold() in found:
            raise BadInput(f"the category {plain!r} is named twice", reason="score_category")
        found[plain.casefold()] = Category(len(found), plain, definition.strip())
    if not 1 <= len(found) <= EVENT_CATEGORIES_MAX:
        raise BadInput(f"name 1 to {EVENT_CATEGORIES_MAX} categories", reason="score_category")
    return tuple(found.values())


def event_text(
    *, camera: str, site: str, began: str, primary_event: str, tags: tuple[str, ...], has_picture: bool
) -> str:
    """What a model is told of an event beside its picture."""
    shown = "the picture shows it" if has_picture else "there is no picture of it"
    seen = ", ".join(tags) if tags else "nothing more"
    return (
        f"An event of a camera; {shown}. Camera: {camera} ({site}). Began: {began}. Kind: {primary_event}. "
        f"Recognized: {seen}."
    )


@dataclass(frozen=True, slots=True)
class ScoreCondition:
    """An event's score of a category is at least this, or at most."""

    category: str
    is_least: bool
    score: float


_CONDITION: Final = re.compile(r"\s*(.{1,200}?)\s*(>=|<=)\s*(0(?:\.\d{1,4})?|1(?:\.0{1,4})?|\.\d{1,4})\s*", re.DOTALL)


def parse_condition(text: str) -> ScoreCondition:
    """`trespass>=0.8`. BadInput when it is none."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise BadInput(
            "a score is asked for as category>=0.8 or category<=0.2, with a number from 0 to 1", reason="score_filter"
        )
    return ScoreCondition(found[1], found[2] == ">=", float(found[3]))
