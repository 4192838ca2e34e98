"""Presets for common places: what a camera there need not tell of, so that nobody has to write lists.

A preset is a word of a camera's hints. The server turns it into the hints of the analyzer contract, so any analyzer
understands it. What people say of the camera themselves stands in the place of what the preset says. Presets set no
thresholds: which ones are good is measured for the whole (docs/quality.md), not guessed for a place.

Nothing here hides people at night, and only where people are all day long does it by day.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.phrases import Phrase


class Preset(StrEnum):
    ENTRANCE = "entrance"
    CORRIDOR = "corridor"
    OFFICE = "office"
    SHOP = "shop"
    KITCHEN = "kitchen"
    WAREHOUSE = "warehouse"
    PARKING = "parking"
    ROAD = "road"
    OUTDOOR = "outdoor"


@dataclass(frozen=True, slots=True)
class PresetHints:
    """Names as hints have them: labels, categories, tags."""

    called: Phrase
    excluded: tuple[str, ...] = ()  # can't be there: what looks like it is something else
    expected: tuple[str, ...] = ()  # is there all the time, and no event by itself
    expected_by_day: tuple[str, ...] = ()


_EXOTIC = ("elephant", "zebra", "giraffe")
_FLYING_AND_FLOATING = ("airplane", "boat")
_NOT_ON_STREETS = (*_EXOTIC, *_FLYING_AND_FLOATING)
_NOT_INDOORS = (*_NOT_ON_STREETS, "train", "bus", "car", "truck", "horse", "sheep", "cow", "bear")

PRESETS: Mapping[Preset, PresetHints] = {
    Preset.ENTRANCE: PresetHints(Phrase("玄関・出入口", "Entrance"), excluded=(*_NOT_ON_STREETS, "train")),
    Preset.CORRIDOR: PresetHints(Phrase("廊下・階段", "Corridor, stairs"), excluded=_NOT_INDOORS),
    Preset.OFFICE: PresetHints(Phrase("事務所", "Office"), excluded=_NOT_INDOORS, expected_by_day=("human",)),
    Preset.SHOP: PresetHints(Phrase("店内", "Shop"), excluded=_NOT_INDOORS, expected_by_day=("human",)),
    Preset.KITCHEN: PresetHints(Phrase("厨房・台所", "Kitchen"), excluded=_NOT_INDOORS, expected_by_day=("human",)),
    Preset.WAREHOUSE: PresetHints(
        Phrase("倉庫", "Warehouse"),
        excluded=(*_NOT_ON_STREETS, "train", "horse", "sheep", "cow"),
        expected=("truck",),
    ),
    Preset.PARKING: PresetHints(
        Phrase("駐車場", "Parking"), excluded=(*_NOT_ON_STREETS, "train"), expected=("vehicle",)
    ),
    Preset.ROAD: PresetHints(
        Phrase("道路", "Road"), excluded=_NOT_ON_STREETS, expected=("vehicle",), expected_by_day=("human",)
    ),
    Preset.OUTDOOR: PresetHints(Phrase("屋外・庭", "Outdoors"), excluded=_EXOTIC),
}


def preset_hints(preset: str, is_day: bool) -> dict[str, object]:
    """In the contract's words; nothing for a preset that is not known here. `is_day`: known to be day."""
    if preset not in PRESETS:
        return {}
    told = PRESETS[Preset(preset)]
    hints: dict[str, object] = {"location_type": str(preset)}
    expected = (*told.expected, *(told.expected_by_day if is_day else ()))
    if expected:
        hints["expected_objects"] = list(expected)
    if told.excluded:
        hints["excluded_objects"] = list(told.excluded)
    return hints
