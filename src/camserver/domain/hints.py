"""What an analyzer is told about a camera besides the picture (`hints_json` of the contract).

Only what is known for sure: a hint that can't be told is left out.
"""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# What the contract has for people to say of a camera.
OWN_HINTS = ("location_type", "expected_objects", "excluded_objects", "thresholds")
OWN_CHARS_MAX = 8_000
DAY = "day"
NIGHT = "night"


def time_band(at_ms: int, timezone: str, night_from_hour: int, night_until_hour: int) -> str | None:
    """Day or night by the local clock. None where the time zone is not known here."""
    try:
        hour = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(ZoneInfo(timezone)).hour
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        return None
    if night_from_hour <= night_until_hour:
        is_night = night_from_hour <= hour < night_until_hour
    else:
        is_night = hour >= night_from_hour or hour < night_until_hour
    return NIGHT if is_night else DAY


def camera_hints(
    at_ms: int, timezone: str, network_zone: str, night_from_hour: int, night_until_hour: int, own: str | None = None
) -> dict[str, object]:
    """`own` is what people said of the camera, as JSON; what is known here wins over it."""
    band = time_band(at_ms, timezone, night_from_hour, night_until_hour)
    known = {"time_band": band, "network_zone": network_zone or None}
    return {**_own(own), **{name: value for name, value in known.items() if value is not None}}


def _own(text: str | None) -> dict[str, object]:
    if text is None or len(text) > OWN_CHARS_MAX:
        return {}
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return {name: said[name] for name in OWN_HINTS if name in said} if isinstance(said, dict) else {}
