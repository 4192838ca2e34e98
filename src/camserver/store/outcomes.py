"""Applying outcomes: everything a job changes, in one transaction, under its fence and its camera's version.

A hot path: outcomes come in batches, and each step is one statement for all of them where the database allows.
Cameras are locked in their order, so that batches never deadlock on each other.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from operator import attrgetter

import uuid_utils

from camserver.domain.facts import EventAction, FrameFacts, Still
from camserver.domain.outcomes import Outcome
from camserver.domain.retention import Retention
from camserver.store.sql import Sql
from camserver.store.tx import Tx

# All of a still's values in their order. `astuple` gives the same, but copies each value deeply.
_STILL_VALUES = attrgetter(*(field.name for field in fields(Still)))


class Applied(StrEnum):
    DONE = "done"
    FENCE_LOST = "fence_lost"  # the job is somebody else's now: drop the result
    STATE_MOVED = "state_moved"  # the camera's state changed since: read it again and decide again


@dataclass(frozen=True, slots=True)
class Finished:
    """A decided job. `tag_groups` pairs each of the analysis' tags with its group."""

    job_id: int
    token: str
    outcome: Outcome
    tag_groups: tuple[tuple[str, str], ...]
    result_json: str


@dataclass(slots=True)
class Work:
    """A finished job on its way through the steps, which fill in the keys they make."""

    job: Finished
    event_id: int | None = None
    incident_id: int | None = None

    @property
    def outcome(self) -> Outcome:
        return self.job.outcome


async def apply(tx: Tx, jobs: tuple[Finished, ...], now_ms: int) -> tuple[Applied, ...]:
    """Applies each job's outcome or says why not; the answers are in the order of `jobs`."""
    answers = await _admitted(tx, jobs)
    works = [Work(job) for job, answer in zip(jobs, answers, strict=True) if answer is Applied.DONE]
    if works:
        works.sort(key=lambda work: work.outcome.frame.camera_key)
        await _finish_jobs(tx, works, now_ms)
        await write_results(tx, works, now_ms)
    return tuple(answers)


async def write_results(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    """Writes all that outcomes change besides their jobs. The cameras are locked, one outcome each."""
    await _write_incidents(tx, works, now_ms)
    await _write_events(tx, works, now_ms)
    await _write_frames(tx, works)
    await _write_tags(tx, works)
    await _write_deliveries(tx, works, now_ms)
    await _write_state(tx, works, now_ms)
    _note_changes(tx, works, now_ms)


async def _admitted(tx: Tx, jobs: Sequence[Finished]) -> list[Applied]:
    """Locks the cameras, then the jobs, and checks versions and fences. A camera is admitted once a batch."""
    camera_keys = sorted({job.outcome.frame.camera_key for job in jobs})
    states = await tx.all(
        """
        SELECT camera_key, version FROM camera_state WHERE camera_key IN (:camera_keys...)
        ORDER BY camera_key FOR UPDATE""",
        camera_keys=camera_keys,
    )
    version_of = {row["camera_key"]: row["version"] for row in states}
    held = await tx.all(
        """
        SELECT job_id, locked_token FROM inference_jobs WHERE job_id IN (:job_ids...) AND status = 'running'
        ORDER BY job_id FOR UPDATE""",
        job_ids=sorted(job.job_id for job in jobs),
    )
    fence_of = {row["job_id"]: row["locked_token"] for row in held}
    answers = []
    for job in jobs:
        frame = job.outcome.frame
        if fence_of.get(job.job_id) != job.token:
            answers.append(Applied.FENCE_LOST)
        elif version_of.get(frame.camera_key) != job.outcome.view_version:
            answers.append(Applied.STATE_MOVED)
        else:
            answers.append(Applied.DONE)
            del version_of[frame.camera_key]
    return answers


async def _finish_jobs(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    await tx.run(
        """
        UPDATE inference_jobs SET status = 'done', finished_at = :now_ms, last_error = NULL,
          locked_by = NULL, locked_token = NULL, locked_until = NULL
        WHERE job_id IN (:job_ids...)""",
        now_ms=now_ms,
        job_ids=[work.job.job_id for work in works],
    )


async def _write_incidents(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    grown = []
    for work in works:
        change, frame = work.outcome.incident, work.outcome.frame
        if change is None:
            continue
        values = {
            "start_at": change.start_at,
            "last_seen_at": change.last_seen_at,
            "severity_max": change.severity_max,
            "now_ms": now_ms,
        }
        if change.incident_id is None:
            work.incident_id = await tx.insert(
                _INSERT_INCIDENT,
                incident_uuid=str(uuid_utils.uuid7()),
                tenant_id=frame.tenant_id,
                site_id=frame.site_id,
                camera_key=frame.camera_key,
                **values,
            )
        else:
            work.incident_id = change.incident_id
            grown.append({"incident_id": change.incident_id, "added": int(change.adds_event), **values})
    await tx.many(_GROW_INCIDENT, grown)


async def _write_events(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    closed = [
        {"event_id": work.outcome.event.close_event_id, "end_at": work.outcome.event.close_end_at, "now_ms": now_ms}
        for work in works
        if work.outcome.event.close_event_id is not None
    ]
    await tx.many(CLOSE_EVENT, closed)
    merged = []
    for work in works:
        change, frame = work.outcome.event, work.outcome.frame
        if change.action is EventAction.NONE:
            continue
        values = {
            "start_at": change.start_at,
            "last_seen_at": change.last_seen_at,
            "severity_max": change.severity_max,
            "confidence_max": change.confidence_max,
            "retention_class": change.retention.value,
            "best_score": change.best_score,
            "frame_id": frame.frame_id,
            "now_ms": now_ms,
        }
        if change.action is EventAction.MERGE:
            work.event_id = change.event_id
            merged.append(
                {
                    "event_id": change.event_id,
                    "is_best": int(change.is_best_frame),
                    "own_class": work.outcome.retention.value,
                    **values,
                }
            )
            if change.start_moved:
                await tx.run(
                    "UPDATE event_tags SET start_at = :start_at WHERE event_id = :event_id",
                    start_at=change.start_at,
                    event_id=change.event_id,
                )
            continue
        is_open = change.action is EventAction.OPEN
        work.event_id = await tx.insert(
            _INSERT_EVENT,
            event_uuid=str(uuid_utils.uuid7()),
            tenant_id=frame.tenant_id,
            site_id=frame.site_id,
            camera_key=frame.camera_key,
            incident_id=work.incident_id,
            open_key=frame.camera_key if is_open else None,
            state="open" if is_open else "closed",
            end_at=None if is_open else change.last_seen_at,
            primary_event=change.primary_event,
            **values,
        )
    await tx.many(_MERGE_EVENT, merged)
    await tx.many(
        "UPDATE incidents SET last_event_id = :event_id WHERE incident_id = :incident_id",
        [
            {"event_id": work.event_id, "incident_id": work.incident_id}
            for work in works
            if work.outcome.incident is not None and work.outcome.incident.adds_event
        ],
    )


async def _write_frames(tx: Tx, works: Sequence[Work]) -> None:
    await tx.many(
        _UPDATE_FRAME,
        [
            {
                "frame_id": work.outcome.frame.frame_id,
                "detected": int(work.outcome.analysis.detected),
                "primary_event": work.outcome.analysis.primary_event,
                "unknown_flag": int(work.outcome.analysis.unknown_flag),
                "severity": work.outcome.analysis.severity,
                "confidence": work.outcome.analysis.confidence,
                "count_hint": work.outcome.analysis.count_hint,
                "result_json": work.job.result_json,
                "tags_json": json.dumps(work.outcome.analysis.tags),
                "retention_class": work.outcome.retention.value,
                # What joins an event that is in a case is in that case, too.
                "joins_case": int(work.outcome.event.retention is Retention.CASE),
                "own_class": work.outcome.retention.value,
                "event_id": work.event_id,
            }
            for work in works
        ],
    )


async def _write_tags(tx: Tx, works: Sequence[Work]) -> None:
    # A frame that is analyzed again, after a person queued it again, loses its former tags.
    await tx.run(
        "DELETE FROM frame_tags WHERE frame_id IN (:frame_ids...)",
        frame_ids=[work.outcome.frame.frame_id for work in works],
    )
    frame_tags, event_tags = [], []
    for work in works:
        frame = work.outcome.frame
        own = [_tag(frame, tag_id, tag_group) for tag_id, tag_group in work.job.tag_groups]
        frame_tags += [{"frame_id": frame.frame_id, **row} for row in own]
        if work.event_id is not None:
            place = {"camera_key": frame.camera_key, "start_at": work.outcome.event.start_at}
            added = [_tag(frame, tag_id, tag_group) for tag_id, tag_group in work.outcome.event_tags]
            event_tags += [{"event_id": work.event_id, **place, **row} for row in (*own, *added)]
    await tx.many(_INSERT_FRAME_TAG, frame_tags)
    await tx.many(_INSERT_EVENT_TAG, event_tags)


def _tag(frame: FrameFacts, tag_id: str, tag_group: str) -> dict[str, object]:
    return {"tag_id": tag_id, "tag_group": tag_group, "tenant_id": frame.tenant_id}


async def _write_deliveries(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    await tx.many(
        _INSERT_DELIVERY,
        [
            {
                "delivery_uuid": str(uuid_utils.uuid7()),
                "tenant_id": work.outcome.frame.tenant_id,
                "site_id": work.outcome.frame.site_id,
                "camera_key": work.outcome.frame.camera_key,
                "kind": due.kind.value,
                "reason": due.reason,
                "frame_id": work.outcome.frame.frame_id,
                "event_id": work.event_id,
                "incident_id": work.incident_id,
                "now_ms": now_ms,
            }
            for work in works
            for due in work.outcome.deliveries
        ],
    )


async def _write_state(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    """Raises the version of every camera whose events or state change; a late frame changes nothing else of it."""
    await tx.many(
        _UPDATE_STATE,
        [
            {
                "camera_key": work.outcome.frame.camera_key,
                "opened": int(work.outcome.event.action is EventAction.OPEN),
                "event_id": work.event_id,
                "stills": json.dumps([_STILL_VALUES(still) for still in work.outcome.stills]),
                "detected": int(work.outcome.analysis.detected),
                "captured_at": work.outcome.frame.captured_at,
                "now_ms": now_ms,
            }
            for work in works
            if work.outcome.touches_state
        ],
    )
    late = [work for work in works if not work.outcome.touches_state and work.event_id is not None]
    if late:
        await tx.run(
            "UPDATE camera_state SET version = version + 1 WHERE camera_key IN (:camera_keys...)",
            camera_keys=[work.outcome.frame.camera_key for work in late],
        )
    await tx.many(
        _UPDATE_NEWEST_INCIDENT,
        [
            {
                "camera_key": work.outcome.frame.camera_key,
                "incident_id": work.incident_id,
                "last_seen_at": work.outcome.incident.last_seen_at,
            }
            for work in works
            if work.outcome.incident is not None
        ],
    )


def _note_changes(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    for work in works:
        frame, incident = work.outcome.frame, work.outcome.incident
        named = [("frame", frame.frame_id)]
        if work.outcome.event.close_event_id is not None:
            named.append(("event", work.outcome.event.close_event_id))
        if work.event_id is not None:
            named.append(("event", work.event_id))
        if incident is not None and work.incident_id is not None and (incident.opened or incident.severity_rose):
            named.append(("incident", work.incident_id))
        for kind, object_id in named:
            tx.changed(
                tenant_id=frame.tenant_id,
                kind=kind,
                at_ms=now_ms,
                site_id=frame.site_id,
                camera_key=frame.camera_key,
                object_id=object_id,
            )


_INSERT_INCIDENT = """
INSERT INTO incidents (incident_uuid, tenant_id, site_id, camera_key, start_at, last_seen_at, severity_max,
  event_count, created_at, updated_at)
VALUES (:incident_uuid, :tenant_id, :site_id, :camera_key, :start_at, :last_seen_at, :severity_max,
  1, :now_ms, :now_ms) RETURNING incident_id"""
_GROW_INCIDENT = """
UPDATE incidents SET start_at = :start_at, last_seen_at = :last_seen_at, severity_max = :severity_max,
  event_count = event_count + :added, updated_at = :now_ms WHERE incident_id = :incident_id"""
CLOSE_EVENT = """
UPDATE events SET state = 'closed', open_key = NULL, end_at = :end_at, updated_at = :now_ms
WHERE event_id = :event_id"""
_INSERT_EVENT = """
INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, open_key, state, primary_event,
  start_at, last_seen_at, end_at, severity_max, confidence_max, best_frame_id, best_score, retention_class,
  frame_count, created_at, updated_at)
VALUES (:event_uuid, :tenant_id, :site_id, :camera_key, :incident_id, :open_key, :state, :primary_event,
  :start_at, :last_seen_at, :end_at, :severity_max, :confidence_max, :frame_id, :best_score, :retention_class,
  1, :now_ms, :now_ms) RETURNING event_id"""
# A closed event that a frame from behind joins ends where it was last seen.
_MERGE_EVENT = """
UPDATE events SET start_at = :start_at, last_seen_at = :last_seen_at, severity_max = :severity_max,
  end_at = CASE WHEN state = 'closed' THEN :last_seen_at ELSE end_at END,
  confidence_max = :confidence_max, best_score = :best_score,
  own_class = CASE WHEN own_class = 'normal' THEN :own_class ELSE own_class END, retention_class = :retention_class,
  best_frame_id = CASE WHEN :is_best = 1 THEN :frame_id ELSE best_frame_id END,
  frame_count = frame_count + 1, updated_at = :now_ms
WHERE event_id = :event_id"""
# A frame that a person put into a case stays in it. own_class first: MariaDB reads what was assigned before it.
_UPDATE_FRAME = """
UPDATE frames SET analyzed = 1, detected = :detected, primary_event = :primary_event, unknown_flag = :unknown_flag,
  severity = :severity, confidence = :confidence, count_hint = :count_hint, result_json = :result_json,
  tags_json = :tags_json, event_id = :event_id,
  own_class = CASE WHEN retention_class = 'case' OR :joins_case = 1 THEN :own_class ELSE NULL END,
  retention_class = CASE WHEN retention_class = 'case' OR :joins_case = 1 THEN 'case' ELSE :retention_class END
WHERE frame_id = :frame_id"""
_INSERT_FRAME_TAG = """
INSERT INTO frame_tags (frame_id, tag_id, tenant_id, tag_group) VALUES (:frame_id, :tag_id, :tenant_id, :tag_group)"""
_INSERT_EVENT_TAG = Sql(
    """
INSERT INTO event_tags (event_id, tag_id, tenant_id, tag_group, camera_key, start_at)
VALUES (:event_id, :tag_id, :tenant_id, :tag_group, :camera_key, :start_at) ON CONFLICT DO NOTHING""",
    mariadb="""
INSERT INTO event_tags (event_id, tag_id, tenant_id, tag_group, camera_key, start_at)
VALUES (:event_id, :tag_id, :tenant_id, :tag_group, :camera_key, :start_at)
ON DUPLICATE KEY UPDATE event_id = event_id""",
)
_INSERT_DELIVERY = """
INSERT INTO deliveries (delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id, event_id, incident_id,
  status, available_at, created_at)
VALUES (:delivery_uuid, :tenant_id, :site_id, :camera_key, :kind, :reason, :frame_id, :event_id, :incident_id,
  'queued', :now_ms, :now_ms)"""
_UPDATE_STATE = """
UPDATE camera_state SET version = version + 1,
  open_event_id = CASE WHEN :opened = 1 THEN :event_id ELSE open_event_id END,
  stills = :stills,
  last_detected = CASE WHEN last_analyzed_at IS NULL OR last_analyzed_at <= :captured_at THEN :detected
                  ELSE last_detected END,
  last_analyzed_at = CASE WHEN last_analyzed_at IS NULL OR last_analyzed_at <= :captured_at THEN :captured_at
                     ELSE last_analyzed_at END,
  updated_at = :now_ms
WHERE camera_key = :camera_key"""
# The newest incident is the one last seen, also when a late frame made it: the next event may continue it.
_UPDATE_NEWEST_INCIDENT = """
UPDATE camera_state SET incident_id = :incident_id WHERE camera_key = :camera_key AND NOT EXISTS (
  SELECT 1 FROM incidents i WHERE i.incident_id = camera_state.incident_id AND i.last_seen_at > :last_seen_at)"""
