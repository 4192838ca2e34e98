"""A claimed job with everything that asking about it and deciding on it takes, read for many jobs at once.

Claiming itself is in jobs.py.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.records import record
from camserver.domain import health
from camserver.domain.events import EventPolicy, merge_gap_ms
from camserver.domain.facts import CameraView, EventFacts, FrameFacts, IncidentFacts, Still
from camserver.domain.jobs import JobPolicy
from camserver.domain.retention import Retention
from camserver.store.questions import Background
from camserver.store.sql import Dialect
from camserver.store.tx import Row, Tx

# How long before a late frame the event that it joins may have begun; an open one is found however long it is.
COVERING_MS = 86_400_000
# Frames whose events one statement looks for. SQLite has no way to and fro that could be saved.
COVERED_AT_ONCE = {Dialect.SQLITE: 1, Dialect.POSTGRES: 1_000, Dialect.MARIADB: 16}


@dataclass(frozen=True, slots=True)
class ClaimTerms:
    """What a claim needs to know besides the rows."""

    policy: JobPolicy
    events: EventPolicy
    default_interval_ms: int
    previous_max_age_ms: int | None = None  # None: no look before is searched for


@record
class ClaimedJob:
    """A job under a fence, with everything that deciding on it takes."""

    job_id: int
    token: str
    attempt: int
    created_at: int
    frame_uuid: str
    camera_id: str
    epoch_id: int | None
    frame: FrameFacts
    view: CameraView
    background: Background | None = None  # only with a fresh claim: by later, the question was asked


async def claimed(
    tx: Tx, job_ids: tuple[int, ...], tokens: tuple[str, ...], terms: ClaimTerms
) -> tuple[ClaimedJob, ...]:
    """The jobs among these that are still held under one of the tokens, with their cameras' state as it is now."""
    rows = await tx.all(
        f"""{JOB_FACTS}
        WHERE j.job_id IN (:job_ids...) AND j.locked_token IN (:tokens...) AND j.status = 'running'""",
        job_ids=list(job_ids),
        tokens=list(tokens),
    )
    return await jobs_with_facts(tx, rows, terms)


async def jobs_with_facts(
    tx: Tx, rows: Sequence[Row], terms: ClaimTerms, known: dict[int, Background] | None = None
) -> tuple[ClaimedJob, ...]:
    """Jobs from rows of JOB_FACTS; `known` are their backgrounds, by frame."""
    frames = [_frame(row, terms) for row in rows]
    behind = [frame for row, frame in zip(rows, frames, strict=True) if _is_behind(row, frame)]
    covering = await _covering(tx, behind, terms.events)
    backgrounds = known or {}
    return tuple(
        [
            ClaimedJob(
                job_id=row["job_id"],
                token=row["locked_token"],
                attempt=row["attempt"],
                created_at=row["created_at"],
                frame_uuid=row["frame_uuid"],
                camera_id=row["camera_id"],
                epoch_id=row["epoch_id"],
                frame=frame,
                view=_view(row, covering.get(frame.frame_id, ())),
                background=backgrounds.get(frame.frame_id),
            )
            for row, frame in zip(rows, frames, strict=True)
        ]
    )


def _frame(row: Row, terms: ClaimTerms) -> FrameFacts:
    interval_sec = row["polling_interval_sec"]
    return FrameFacts(
        frame_id=row["frame_id"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        captured_at=row["captured_at"],
        late=bool(row["late"]),
        blur_score=row["blur_score"],
        interval_ms=terms.default_interval_ms if interval_sec is None else round(interval_sec * 1000),
        is_watched=not row["late"] and row["structure"] is not None and row["view_hex"] is not None,
    )


def _is_behind(row: Row, frame: FrameFacts) -> bool:
    """Whether something later than the frame is known of its camera already."""
    if frame.late:
        return True
    if row["event_id"] is not None and frame.captured_at < row["last_seen_at"]:
        return True
    return row["newest_incident_id"] is not None and bool(frame.captured_at < row["newest_last_seen_at"])


def _view(row: Row, rows: Sequence[Row]) -> CameraView:
    """`rows`: the events that a frame from behind may join."""
    open_event = event_facts(row) if row["event_id"] is not None else None
    newest = _incident(row, "newest_") if row["newest_incident_id"] is not None else None
    incidents = []
    if open_event is not None and (newest is None or newest.incident_id != open_event.incident_id):
        incidents.append(_incident(row, "own_"))
    incidents += [_incident(each, "own_") for each in rows]
    stills = json.loads(row["stills"]) if row["stills"] else []
    return CameraView(
        version=row["version"],
        open_event=open_event,
        incident=newest,
        covering=tuple([event_facts(each) for each in rows]),
        stills=tuple([Still(*still) for still in stills]),
        incidents=tuple({incident.incident_id: incident for incident in incidents}.values()),
        seems_covered=bool(row["health_memory"]) and health.seems_covered(json.loads(row["health_memory"])),
    )


async def _covering(tx: Tx, frames: Sequence[FrameFacts], policy: EventPolicy) -> dict[int, list[Row]]:
    """By frame, of each kind the nearest event: what kind a frame is of, the analyzer has yet to say."""
    found: dict[int, list[Row]] = {}
    size = COVERED_AT_ONCE[tx.dialect]
    for first in range(0, len(frames), size):
        part = frames[first : first + size]
        spans = [_span(frame, merge_gap_ms(policy, frame.interval_ms)) for frame in part]
        if tx.dialect is Dialect.POSTGRES:
            columns = {f"{name}s": [span[name] for span in spans] for name in spans[0]}
            rows = await tx.all(_COVERING_POSTGRES, **columns)
        else:
            # Names with numbers, so that the text depends on how many there are and on nothing else.
            named = {f"{name}_{n}": value for n, span in enumerate(spans) for name, value in span.items()}
            rows = await tx.all(" UNION ALL ".join([_covering_one(n) for n in range(len(part))]), **named)
        for row in rows:
            found.setdefault(row["asked_frame_id"], []).append(row)
    for events in found.values():
        events.sort(key=lambda row: str(row["primary_event"]))
    return found


def _span(frame: FrameFacts, gap_ms: int) -> dict[str, int]:
    return {
        "frame_id": frame.frame_id,
        "camera_key": frame.camera_key,
        "at": frame.captured_at,
        "starts_since": frame.captured_at - COVERING_MS,
        "starts_before": frame.captured_at + gap_ms,
        "seen_since": frame.captured_at - gap_ms,
    }


def event_facts(row: Row) -> EventFacts:
    """An event from columns named as in JOB_FACTS."""
    return EventFacts(
        event_id=row["event_id"],
        incident_id=row["own_incident_id"],
        primary_event=row["primary_event"],
        start_at=row["start_at"],
        last_seen_at=row["last_seen_at"],
        severity_max=row["severity_max"],
        confidence_max=row["confidence_max"],
        retention=Retention(row["retention_class"]),
        best_score=row["best_score"],
    )


def _incident(row: Row, prefix: str) -> IncidentFacts:
    return IncidentFacts(
        incident_id=row[prefix + "incident_id"],
        start_at=row[prefix + "start_at"],
        last_seen_at=row[prefix + "last_seen_at"],
        severity_max=row[prefix + "severity_max"],
    )


# A job with its frame, its camera and that camera's state; whoever uses it adds the WHERE.
JOB_FACTS = """
SELECT j.job_id, j.locked_token, j.attempt, j.created_at, j.tenant_id, j.camera_key,
  f.frame_id, f.frame_uuid, f.site_id, f.captured_at, f.late, f.blur_score, f.epoch_id,
  f.structure, f.view_hex, h.memory AS health_memory, c.camera_id, o.polling_interval_sec, s.version, s.stills,
  e.event_id, e.incident_id AS own_incident_id, e.primary_event, e.start_at, e.last_seen_at, e.severity_max,
  e.confidence_max, e.retention_class, e.best_score,
  own.start_at AS own_start_at, own.last_seen_at AS own_last_seen_at, own.severity_max AS own_severity_max,
  i.incident_id AS newest_incident_id, i.start_at AS newest_start_at, i.last_seen_at AS newest_last_seen_at,
  i.severity_max AS newest_severity_max
FROM inference_jobs j
JOIN frames f ON f.frame_id = j.frame_id
JOIN cameras c ON c.camera_key = j.camera_key
JOIN camera_state s ON s.camera_key = j.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = j.camera_key
LEFT JOIN camera_health h ON h.camera_key = j.camera_key
LEFT JOIN events e ON e.event_id = s.open_event_id
LEFT JOIN incidents own ON own.incident_id = e.incident_id
LEFT JOIN incidents i ON i.incident_id = s.incident_id"""

_COVERING_EVENT = """e.event_id, e.incident_id AS own_incident_id, e.primary_event, e.start_at, e.last_seen_at,
    e.severity_max, e.confidence_max, e.retention_class, e.best_score,
    own.start_at AS own_start_at, own.last_seen_at AS own_last_seen_at, own.severity_max AS own_severity_max"""


def _distance(at: str) -> str:
    return f"""
      CASE WHEN e.start_at > {at} THEN e.start_at - {at} WHEN e.last_seen_at < {at} THEN {at} - e.last_seen_at
        ELSE 0 END, e.start_at DESC, e.event_id DESC"""


def _covering_one(n: int) -> str:
    return f"""
SELECT * FROM (
  SELECT :frame_id_{n} AS asked_frame_id, {_COVERING_EVENT},
    ROW_NUMBER() OVER (PARTITION BY e.primary_event ORDER BY {_distance(f":at_{n}")}) AS place
  FROM events e JOIN incidents own ON own.incident_id = e.incident_id
  WHERE e.camera_key = :camera_key_{n} AND e.start_at >= :starts_since_{n} AND e.start_at <= :starts_before_{n}
    AND e.last_seen_at >= :seen_since_{n} AND e.subject = ''
) nearest_{n} WHERE place = 1"""


_COVERING_POSTGRES = f"""
SELECT * FROM (
  SELECT q.frame_id AS asked_frame_id, {_COVERING_EVENT},
    ROW_NUMBER() OVER (PARTITION BY q.frame_id, e.primary_event ORDER BY {_distance("q.at")}) AS place
  FROM unnest(:frame_ids::bigint[], :camera_keys::bigint[], :ats::bigint[], :starts_sinces::bigint[],
      :starts_befores::bigint[], :seen_sinces::bigint[])
      AS q(frame_id, camera_key, at, starts_since, starts_before, seen_since)
  JOIN events e ON e.camera_key = q.camera_key AND e.start_at >= q.starts_since AND e.start_at <= q.starts_before
    AND e.last_seen_at >= q.seen_since AND e.subject = ''
  JOIN incidents own ON own.incident_id = e.incident_id
) nearest WHERE place = 1"""
