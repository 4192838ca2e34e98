"""One camera's events, incidents and memory, changed by outcomes alone, as a store would keep them."""

from dataclasses import dataclass, field

from camserver.domain.analysis import Analysis
from camserver.domain.events import close_due, merge_gap_ms
from camserver.domain.facts import CameraView, EventAction, EventFacts, IncidentFacts, Still
from camserver.domain.notices import DeliveryPolicy
from camserver.domain.outcomes import Outcome, Policies, decide

from .build import MIN, frame, shipped_vocabulary

VOCABULARY = shipped_vocabulary()
POLICIES = Policies(deliveries=DeliveryPolicy(archive=True, notify=True, llm_review=True))


def away_ms(event: EventFacts, at: int) -> int:
    return max(event.start_at - at, at - event.last_seen_at, 0)


@dataclass
class Ledger:
    policies: Policies = POLICIES
    interval_ms: int = MIN
    events: dict[int, EventFacts] = field(default_factory=dict)
    incidents: dict[int, IncidentFacts] = field(default_factory=dict)
    frames: dict[int, list[int]] = field(default_factory=dict)  # event → the moments of its frames
    tags: dict[int, set[str]] = field(default_factory=dict)
    open_id: int | None = None
    stills: tuple[Still, ...] = ()
    decided: list[Outcome] = field(default_factory=list)

    def look(self, at: int, said: Analysis, late: bool = False, now_ms: int | None = None) -> Outcome:
        """A look, analyzed and applied; the sweep comes before it."""
        now_ms = at if now_ms is None else now_ms
        self.sweep(now_ms)
        a_frame = frame(at, late=late, interval_ms=self.interval_ms)
        outcome = decide(a_frame, said, self.view(at), VOCABULARY, self.policies, now_ms)
        self.apply(outcome)
        self.decided.append(outcome)
        return outcome

    def view(self, at: int) -> CameraView:
        gap_ms = merge_gap_ms(self.policies.events, self.interval_ms)
        near = [event for event in self.events.values() if away_ms(event, at) <= gap_ms]
        covering: dict[str, EventFacts] = {}
        for event in sorted(near, key=lambda e: (away_ms(e, at), -e.start_at, -e.event_id)):
            covering.setdefault(event.primary_event, event)
        newest = max(self.incidents.values(), key=lambda i: (i.last_seen_at, i.incident_id), default=None)
        open_event = None if self.open_id is None else self.events[self.open_id]
        own = {event.incident_id for event in (open_event, *covering.values()) if event}
        own -= {newest.incident_id} if newest else set()
        return CameraView(
            version=len(self.decided),
            open_event=open_event,
            incident=newest,
            covering=tuple(covering.values()),
            stills=self.stills,
            incidents=tuple(
                self.incidents[key] for key in sorted(own) if newest is None or key != newest.incident_id
            ),
        )

    def apply(self, outcome: Outcome) -> None:
        if outcome.touches_state:
            self.stills = outcome.stills
        change, incident = outcome.event, outcome.incident
        if change.action is EventAction.NONE or incident is None:
            return
        incident_id = incident.incident_id or len(self.incidents) + 1
        self.incidents[incident_id] = IncidentFacts(
            incident_id, incident.start_at, incident.last_seen_at, incident.severity_max
        )
        event_id = change.event_id or len(self.events) + 1
        self.events[event_id] = EventFacts(
            event_id=event_id,
            incident_id=incident_id,
            primary_event=change.primary_event,
            start_at=change.start_at,
            last_seen_at=change.last_seen_at,
            severity_max=change.severity_max,
            confidence_max=change.confidence_max,
            retention=change.retention,
            best_score=change.best_score,
        )
        self.frames.setdefault(event_id, []).append(outcome.frame.captured_at)
        self.tags.setdefault(event_id, set()).update(outcome.analysis.tags, (tag for tag, _ in outcome.event_tags))
        if change.action is EventAction.OPEN:
            assert change.close_event_id == self.open_id
            self.open_id = event_id

    def sweep(self, now_ms: int) -> None:
        if self.open_id is not None:
            end_at = close_due(self.events[self.open_id], now_ms, self.interval_ms, None, self.policies.events)
            self.open_id = self.open_id if end_at is None else None

    def of(self, kind: str) -> list[EventFacts]:
        return [event for event in self.events.values() if event.primary_event == kind]
