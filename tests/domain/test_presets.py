"""Presets name only what analyzers know, hide nobody at night, and are all in the guide."""

import pytest

from camserver.domain.detections import CARRIED, MEANINGS, Category
from camserver.domain.presets import PRESETS, Preset, preset_hints
from tests.rig.processes import REPOSITORY

NAMES = {*MEANINGS, *CARRIED, *Category}
PAGE = (REPOSITORY / "docs" / "guide" / "analyzer.md").read_text()


def test_every_preset_is_there() -> None:
    assert set(PRESETS) == set(Preset)


@pytest.mark.parametrize("preset", Preset)
def test_a_preset_names_what_there_is_and_never_hides_people_at_night(preset: Preset) -> None:
    told = PRESETS[preset]
    assert {*told.excluded, *told.expected, *told.expected_by_day} <= NAMES
    assert not {"person", "human", "hazard", "camera_issue"} & {*told.excluded, *told.expected}
    night = preset_hints(preset, is_day=False)
    assert night.get("expected_objects", []) == list(told.expected)
    assert preset_hints(preset, is_day=True).get("expected_objects", []) == [*told.expected, *told.expected_by_day]


@pytest.mark.parametrize("odd", ["", "None", "balanced", "Parking"])
def test_a_preset_that_is_not_known_says_nothing(odd: str) -> None:
    assert preset_hints(odd, is_day=True) == {}


@pytest.mark.parametrize("preset", Preset)
def test_the_guide_has_every_preset(preset: Preset) -> None:
    told = PRESETS[preset]
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{preset}` |"))
    assert told.called.en in line
    assert told.called.ja in line
    named = {name.strip("` ") for cell in line.split("|")[3:] for name in cell.split(",")}
    assert {*told.expected, *told.expected_by_day, *told.excluded} <= named
