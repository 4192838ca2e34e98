"""Makes facts for the tests of the rules; every value has a plain default."""

import json
from importlib import resources
from typing import Any

from hypothesis import strategies as st

from camserver.domain.analysis import Analysis, Box
from camserver.domain.facts import CameraView, EventFacts, FrameFacts, IncidentFacts
from camserver.domain.retention import Retention
from camserver.domain.vocabulary import SHIPPED_FILE, Vocabulary, parse_vocabulary

T0 = 1_767_225_600_000  # 2026-01-01T00:00:00Z
SEC = 1000
MIN = 60 * SEC


def shipped_document() -> dict[str, Any]:
    text = resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def shipped_vocabulary() -> Vocabulary:
    return parse_vocabulary(shipped_document())


def frame(
    captured_at: int = T0,
    *,
    late: bool = False,
    blur_score: float | None = None,
    interval_ms: int = MIN,
    is_watched: bool = False,
) -> FrameFacts:
    return FrameFacts(
        frame_id=1,
        tenant_id=1,
        site_id=1,
        camera_key=1,
        captured_at=captured_at,
        late=late,
        blur_score=blur_score,
        interval_ms=interval_ms,
        is_watched=is_watched,
    )


def analysis(primary_event: str = "human", **changes: Any) -> Analysis:
    values: dict[str, Any] = {
        "schema_version": "2025-12-28.1",
        "detected": primary_event != "none",
        "primary_event": primary_event,
        "tags": (),
        "severity": 1,
        "unknown_flag": False,
        "confidence": 0.8,
    }
    return Analysis(**{**values, **changes})


def nothing() -> Analysis:
    return analysis("none", severity=0, confidence=None)


def event(start_at: int = T0, last_seen_at: int | None = None, **changes: Any) -> EventFacts:
    values: dict[str, Any] = {
        "event_id": 10,
        "incident_id": 100,
        "primary_event": "human",
        "start_at": start_at,
        "last_seen_at": start_at if last_seen_at is None else last_seen_at,
        "severity_max": 1,
        "confidence_max": 0.5,
        "retention": Retention.NORMAL,
        "best_score": 1050.0,
    }
    return EventFacts(**{**values, **changes})


def incident(start_at: int = T0, last_seen_at: int | None = None, **changes: Any) -> IncidentFacts:
    values: dict[str, Any] = {
        "incident_id": 100,
        "start_at": start_at,
        "last_seen_at": start_at if last_seen_at is None else last_seen_at,
        "severity_max": 1,
    }
    return IncidentFacts(**{**values, **changes})


def view(**changes: Any) -> CameraView:
    values: dict[str, Any] = {"version": 7, "open_event": None, "incident": None}
    return CameraView(**{**values, **changes})


def view_of(open_event: EventFacts, **changes: Any) -> CameraView:
    """A view with an open event and the incident it belongs to."""
    own = incident(
        open_event.start_at,
        open_event.last_seen_at,
        incident_id=open_event.incident_id,
        severity_max=open_event.severity_max,
    )
    return view(**{"open_event": open_event, "incident": own, **changes})


def box(x: float = 0.1, y: float = 0.1, label: str | None = "car", size: float = 0.2) -> Box:
    return Box(x, y, x + size, y + size, label, 0.9)


boxes = st.builds(
    box,
    x=st.sampled_from([0.0, 0.02, 0.3, 0.31, 0.6]),
    y=st.sampled_from([0.0, 0.01, 0.4]),
    label=st.sampled_from(["car", "dog", "person", None]),
)
