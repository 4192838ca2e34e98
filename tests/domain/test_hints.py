"""What an analyzer is told about a camera besides the picture."""

import json

import pytest

from camserver.domain.hints import OWN_CHARS_MAX, Told, camera_hints, time_band, watches_a_place
from tests.domain.build import T0

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("hour", "band"), [(21, "day"), (22, "night"), (23, "night"), (0, "night"), (4, "night"), (5, "day"), (12, "day")]
)
def test_night_is_from_22_to_5(hour: int, band: str) -> None:
    assert time_band(T0 + hour * HOUR_MS, "UTC", 22, 5) == band


def test_it_is_the_sites_night() -> None:
    at = T0 + 14 * HOUR_MS  # 23:00 in Tokyo
    assert time_band(at, "Asia/Tokyo", 22, 5) == "night"
    assert time_band(at, "UTC", 22, 5) == "day"


def test_daylight_saving_moves_the_night() -> None:
    """20:30 UTC is 21:30 in Paris in winter and 22:30 in summer."""
    winter_ms, summer_ms = 1_767_990_600_000, 1_783_629_000_000  # 2026-01-09, 2026-07-09
    assert time_band(winter_ms, "Europe/Paris", 22, 5) == "day"
    assert time_band(summer_ms, "Europe/Paris", 22, 5) == "night"


def test_a_night_within_one_day_and_no_night_at_all() -> None:
    assert time_band(T0 + 2 * HOUR_MS, "UTC", 1, 3) == "night"
    assert time_band(T0 + 3 * HOUR_MS, "UTC", 1, 3) == "day"
    assert {time_band(T0 + hour * HOUR_MS, "UTC", 5, 5) for hour in range(24)} == {"day"}


@pytest.mark.parametrize("timezone", ["", "Nowhere/Atall", "../../etc/passwd", "\x00"])
def test_what_is_not_known_is_not_told(timezone: str) -> None:
    assert time_band(T0, timezone, 22, 5) is None
    assert camera_hints(T0, timezone, "vpn", 22, 5) == {"network_zone": "vpn"}


def test_hints_of_a_camera() -> None:
    assert camera_hints(T0, "UTC", "local", 22, 5) == {"time_band": "night", "network_zone": "local"}


def test_what_people_said_of_the_camera_goes_along_but_never_overrules_what_is_known() -> None:
    own = '{"excluded_objects": ["bird"], "thresholds": {"person": 0.7}, "time_band": "day", "preset": "balanced"}'
    assert camera_hints(T0, "UTC", "local", 22, 5, Told(own)) == {
        "excluded_objects": ["bird"],
        "thresholds": {"person": 0.7},
        "time_band": "night",
        "network_zone": "local",
    }
    for odd in ("[]", "null", "{", "7", '"text"', '{"thresholds": "' + "x" * OWN_CHARS_MAX + '"}'):
        assert camera_hints(T0, "UTC", "", 22, 5, Told(odd, odd)) == {"time_band": "night"}


def test_masks_and_the_time_of_the_picture_before_go_along() -> None:
    mask = [[0.1, 0.1], [0.4, 0.1], [0.4, 0.3]]
    hints = camera_hints(T0, "", "", 22, 5, Told(None, json.dumps([mask])), previous_at_ms=T0 - 1500)
    assert hints == {"privacy_masks": [mask], "prev_captured_at": "2025-12-31T23:59:58.500+00:00"}
    assert camera_hints(T0, "", "", 22, 5, Told(None, "[]")) == {}


def test_a_preset_is_told_in_the_contracts_words_and_by_the_time_of_day() -> None:
    told = Told('{"preset": "shop"}')
    night, day = (camera_hints(T0 + hour * HOUR_MS, "UTC", "", 22, 5, told) for hour in (0, 12))
    assert (night["location_type"], night.get("expected_objects")) == ("shop", None)
    assert (day["location_type"], day["expected_objects"]) == ("shop", ["human"])
    excluded = json.dumps(day["excluded_objects"])
    assert '"car"' in excluded
    assert '"person"' not in excluded


def test_where_the_time_is_not_known_nobody_is_expected() -> None:
    assert "expected_objects" not in camera_hints(T0, "Nowhere", "", 22, 5, Told('{"preset": "shop"}'))


def test_what_people_say_stands_in_the_place_of_what_the_preset_says() -> None:
    own = {"preset": "parking", "expected_objects": ["truck"], "excluded_objects": [], "shelf_roi": None}
    hints = camera_hints(T0, "", "", 22, 5, Told(json.dumps(own)))
    assert hints == {"location_type": "parking", "expected_objects": ["truck"], "excluded_objects": []}


@pytest.mark.parametrize(
    ("hints", "watched"),
    [
        (None, False),
        ({"preset": "shop"}, False),
        ({"preset": "shop", "shelf_roi": None}, False),
        ({"expected_objects": ["shelf_roi"]}, False),
        ({"shelf_roi": [[0, 0], [1, 0], [1, 1]]}, True),
    ],
)
def test_whether_a_place_is_watched(hints: dict[str, object] | None, watched: bool) -> None:
    assert watches_a_place(Told(None if hints is None else json.dumps(hints))) is watched
    assert not watches_a_place(Told('{"shelf_roi": '))
