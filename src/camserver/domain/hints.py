"""What an analyzer is told about a camera besides the picture (`hints_json` of the contract).

Only what is known for sure: a hint that can't be told is left out. Beside the contract's own names there are three
that other analyzers may ignore: when the previous picture was taken, what is masked, and which region things shall
not vanish from.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from camserver.domain.presets import preset_hints

# What people may say of a camera besides its preset.
OWN_HINTS = ("location_type", "expected_objects", "excluded_objects", "thresholds", "shelf_roi")
# Hints at all the bounds of the API are below this.
OWN_CHARS_MAX = 12_000
# Of each list of names, and of one name.
NAMES_MAX = 32
NAME_CHARS_MAX = 64
# When the previous picture was taken.
PREVIOUS_AT = "prev_captured_at"
DAY = "day"
NIGHT = "night"


@dataclass(frozen=True, slots=True)
class Told:
    """What people said of a camera, as it is stored: JSON, or None."""

    hints: str | None = None
    privacy_masks: str | None = None


NOTHING_TOLD = Told()


def watches_a_place(told: Told) -> bool:
    """Whether people marked a region of the camera that things shall not vanish from."""
    # Asked for every job; few cameras have one.
    return told.hints is not None and "shelf_roi" in told.hints and _object(told.hints).get("shelf_roi") is not None


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
    at_ms: int,
    timezone: str,
    network_zone: str,
    night_from_hour: int,
    night_until_hour: int,
    told: Told = NOTHING_TOLD,
    previous_at_ms: int | None = None,
) -> dict[str, object]:
    """What is known here wins over what people said, and that over what their preset says."""
    band = time_band(at_ms, timezone, night_from_hour, night_until_hour)
    said = _object(told.hints)
    known = {
        "time_band": band,
        "network_zone": network_zone or None,
        PREVIOUS_AT: None if previous_at_ms is None else _iso_utc(previous_at_ms),
        "privacy_masks": _masks(told.privacy_masks),
    }
    own = {name: said[name] for name in OWN_HINTS if said.get(name) is not None}
    preset = preset_hints(str(said.get("preset")), is_day=band == DAY)
    return {**preset, **own, **{name: value for name, value in known.items() if value is not None}}


def _object(text: str | None) -> dict[str, object]:
    said = _parsed(text) if text is not None and len(text) <= OWN_CHARS_MAX else None
    return said if isinstance(said, dict) else {}


def _masks(text: str | None) -> list[object] | None:
    masks = _parsed(text)
    return masks if isinstance(masks, list) and masks else None


def _parsed(text: str | None) -> object:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return None


def _iso_utc(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
