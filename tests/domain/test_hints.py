"""What an analyzer is told about a camera besides the picture."""

import pytest

from camserver.domain.hints import camera_hints, time_band
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
    assert camera_hints(T0, "UTC", "local", 22, 5, own) == {
        "excluded_objects": ["bird"],
        "thresholds": {"person": 0.7},
        "time_band": "night",
        "network_zone": "local",
    }
    for odd in ("[]", "null", "{", "7", '"text"', '{"thresholds": "' + "x" * 10_000 + '"}'):
        assert camera_hints(T0, "UTC", "", 22, 5, odd) == {"time_band": "night"}
