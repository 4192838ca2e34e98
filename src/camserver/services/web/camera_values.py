"""A camera's own values between the API and their columns: checked, and said in words when they are wrong."""

import json
from collections.abc import Sequence

from camserver.base.errors import BadInput
from camserver.domain import polygons
from camserver.domain.coco_labels import COCO80
from camserver.domain.detections import Hints, unknown_names
from camserver.domain.polygons import Problem
from camserver.domain.vocabulary import Vocabulary
from camserver.store.overrides import NAMES, Overrides
from camserver.wire import api

_POLYGON_FIELDS = ("ignore_masks", "privacy_masks")
_FLAGS = ("mask_clock", "live_sound")


def columns(asked: api.CameraValues) -> dict[str, object]:
    """What was said of them, by column; BadInput when it makes no sense."""
    given = [name for name in NAMES if name in asked.model_fields_set]
    _check_total(asked)
    return {name: _column(name, getattr(asked, name)) for name in given}


def overrides(asked: api.CameraValues) -> Overrides:
    return Overrides(**columns(asked))  # type: ignore[arg-type]  # the names are its fields, the values were checked


def own(values: Overrides, network_zone: str) -> api.CameraOwn:
    shown: dict[str, object] = {name: getattr(values, name) for name in NAMES}
    for name in (*_POLYGON_FIELDS, "zones", "hints"):
        text = shown[name]
        shown[name] = None if text is None else json.loads(str(text))
    for name in _FLAGS:
        shown[name] = None if shown[name] is None else bool(shown[name])
    return api.CameraOwn.model_validate({**shown, "network_zone": network_zone})


def _column(name: str, value: object) -> object:
    if value is None:
        return None
    if name in _POLYGON_FIELDS:
        assert isinstance(value, list)
        return (
            json.dumps([_points(name, number, points) for number, points in enumerate(value, 1)]) if value else None
        )
    if name == "zones":
        assert isinstance(value, list)
        return _zones(value)
    if name == "hints":
        assert isinstance(value, api.CameraHints)
        return _hints(value)
    if name == "tls_pin":
        return str(value).replace(":", "").lower()
    if name in _FLAGS:
        return int(bool(value))
    if name == "device":
        return str(value).strip() or None
    return value


def _zones(zones: Sequence[api.Zone]) -> str | None:
    _refuse(polygons.zones_problem([zone.name for zone in zones]), "zones", 0)
    made = [{"name": zone.name, "points": _points("zones", n, zone.points)} for n, zone in enumerate(zones, 1)]
    return json.dumps(made, ensure_ascii=False) if made else None


def _hints(hints: api.CameraHints) -> str | None:
    said = hints.model_dump(exclude_none=True)
    if hints.shelf_roi is not None:
        said["shelf_roi"] = _points("shelf_roi", 0, hints.shelf_roi)
    return json.dumps(said) if said else None


def unknown_hints(said: api.CameraHints | None, vocabulary: Vocabulary) -> list[str]:
    """Names that nothing is called by, as far as is known here. Another analyzer may know more."""
    if said is None:
        return []
    hints = Hints(
        excluded=frozenset(said.excluded_objects or ()),
        expected=frozenset(said.expected_objects or ()),
        thresholds=said.thresholds or {},
    )
    return list(unknown_names(hints, COCO80, vocabulary))


def preset_of(own: Overrides) -> str | None:
    """The kind of place that a camera was said to look at."""
    said: dict[str, object] = json.loads(own.hints) if own.hints else {}
    preset = said.get("preset")
    return None if preset is None else str(preset)


def _points(name: str, number: int, points: Sequence[Sequence[float]]) -> list[list[float]]:
    _refuse(polygons.problem(points), name, number)
    return [list(point) for point in polygons.rounded(points)]


def _check_total(asked: api.CameraValues) -> None:
    drawn = [*(asked.ignore_masks or ()), *(asked.privacy_masks or ()), *(zone.points for zone in asked.zones or ())]
    _refuse(polygons.total_problem(sum(map(len, drawn))), "masks", 0)


def _refuse(problem: Problem | None, field: str, number: int) -> None:
    """`number` counts from 1; 0 means all of them."""
    if problem is None:
        return
    place = f"{field} {number}" if number else field
    raise BadInput(f"{place}: {problem.text}; correct it", reason=problem.code, field=field, place=place)
