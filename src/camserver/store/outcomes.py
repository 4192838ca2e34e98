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

from camserver.base.records import record
from camserver.domain.change_kinds import ChangeKind
from camserver.domain.facts import EventAction, FrameFacts, Still
from camserver.domain.outcomes import Outcome
from camserver.domain.retention import Retention
from camserver.store import search_texts
from camserver.store.sql import Sql
from camserver.store.tx import Tx

# All of a still's values in their order. `astuple` gives the same, but copies each value deeply.
_STILL_VALUES = attrgetter(*(field.name for field in fields(Still)))


class Applied(StrEnum):
    DONE = "done"
    FENCE_LOST = "fence_lost"  # the job is somebody else's now: drop the result
    STATE_MOVED = "state_moved"  # the camera's state changed since: read it again and decide again


@record
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
    was_analyzed: bool = True  # its frame, before; where that is not known, it may have been

    @property
    def outcome(self) -> Outcome:
        return self.job.outcome


async def apply(tx: Tx, jobs: tuple[Finished, ...], now_ms: int) -> tuple[Applied, ...]:
    """Applies each job's outcome or says why not; the answers are in the order of `jobs`."""
    answers, analyzed = await _admitted(tx, jobs)
    works = [
        Work(job, was_analyzed=job.job_id in analyzed)
        for job, answer in zip(jobs, answers, strict=True)
        if answer is Applied.DONE
    ]
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


async def _admitted(tx: Tx, jobs: Sequence[Finished]) -> tuple[list[Applied], set[int]]:
    """Locks the cameras, then the jobs, and checks versions and fences. A camera is admitted once a batch.

    Also answers which of the jobs are about a frame that was analyzed before.
    """
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
        SELECT job_id, locked_token,
          (SELECT f.analyzed FROM frames f WHERE f.frame_id = inference_jobs.frame_id) AS analyzed
        FROM inference_jobs WHERE job_id IN (:job_ids...) AND status = 'running' ORDER BY job_id FOR UPDATE""",
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
    return answers, {row["job_id"] for row in held if row["analyzed"]}


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
    opening: list[Work] = []
    opened, grown = [], []
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
            opening.append(work)
            opened.append({"incident_uuid": str(uuid_utils.uuid7()), **_place(frame), **values})
        else:
            work.incident_id = change.incident_id
            grown.append({"incident_id": change.incident_id, "added": int(change.adds_event), **values})
    for work, incident_id in zip(opening, await tx.insert_many(_INSERT_INCIDENT, opened), strict=True):
        work.incident_id = incident_id
    await tx.by_key(_GROW_INCIDENT, grown)


def _place(frame: FrameFacts) -> dict[str, object]:
    return {"tenant_id": frame.tenant_id, "site_id": frame.site_id, "camera_key": frame.camera_key}


async def _write_events(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    closed = [
        {"event_id": work.outcome.event.close_event_id, "end_at": work.outcome.event.close_end_at, "now_ms": now_ms}
        for work in works
        if work.outcome.event.close_event_id is not None
    ]
    await tx.by_key(CLOSE_EVENT, closed)
    beginning = [work for work in works if work.outcome.event.action not in (EventAction.NONE, EventAction.MERGE)]
    begun = [_new_event(work, now_ms) for work in beginning]
    for work, event_id in zip(beginning, await tx.insert_many(_INSERT_EVENT, begun), strict=True):
        work.event_id = event_id
    await _merge_events(tx, [work for work in works if work.outcome.event.action is EventAction.MERGE], now_ms)
    await tx.by_key(
        "UPDATE incidents SET last_event_id = :event_id WHERE incident_id = :incident_id",
        [
            {"event_id": work.event_id, "incident_id": work.incident_id}
            for work in works
            if work.outcome.incident is not None and work.outcome.incident.adds_event
        ],
    )


async def _merge_events(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    merged, moved = [], {}
    for work in works:
        change = work.outcome.event
        work.event_id = change.event_id
        own = {"is_best": int(change.is_best_frame), "own_class": work.outcome.retention.value}
        merged.append({"event_id": change.event_id, **own, **_event_values(work, now_ms)})
        if change.start_moved and change.event_id is not None:
            moved[change.event_id] = change.start_at
    await tx.by_key(_MERGE_EVENT, merged)
    await search_texts.move_events(tx, moved)


def _new_event(work: Work, now_ms: int) -> dict[str, object]:
    change, frame = work.outcome.event, work.outcome.frame
    is_open = change.action is EventAction.OPEN
    return {
        "event_uuid": str(uuid_utils.uuid7()),
        **_place(frame),
        "incident_id": work.incident_id,
        "open_key": frame.camera_key if is_open else None,
        "state": "open" if is_open else "closed",
        "end_at": None if is_open else change.last_seen_at,
        "primary_event": change.primary_event,
        **_event_values(work, now_ms),
    }


def _event_values(work: Work, now_ms: int) -> dict[str, object]:
    change = work.outcome.event
    return {
        "start_at": change.start_at,
        "last_seen_at": change.last_seen_at,
        "severity_max": change.severity_max,
        "confidence_max": change.confidence_max,
        "retention_class": change.retention.value,
        "best_score": change.best_score,
        "unknown_flag": int(work.outcome.analysis.unknown_flag),
        "frame_id": work.outcome.frame.frame_id,
        "now_ms": now_ms,
    }


async def _write_frames(tx: Tx, works: Sequence[Work]) -> None:
    await tx.by_key(
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
    again = [work.outcome.frame.frame_id for work in works if work.was_analyzed]
    if again:
        await tx.run("DELETE FROM frame_tags WHERE frame_id IN (:frame_ids...)", frame_ids=again)
    frame_tags, event_tags = [], []
    for work in works:
        frame = work.outcome.frame
        own = [_tag(frame, tag_id, tag_group) for tag_id, tag_group in work.job.tag_groups]
        frame_tags += [{"frame_id": frame.frame_id, **row} for row in own]
        if work.event_id is not None:
            place = {"camera_key": frame.camera_key, "start_at": work.outcome.event.start_at}
            added = [_tag(frame, tag_id, tag_group) for tag_id, tag_group in work.outcome.event_tags]
            event_tags += [{"event_id": work.event_id, **place, **row} for row in (*own, *added)]
    await tx.at_once(_INSERT_FRAME_TAG, frame_tags)
    await tx.at_once(_INSERT_EVENT_TAG, event_tags)


def _tag(frame: FrameFacts, tag_id: str, tag_group: str) -> dict[str, object]:
    return {"tag_id": tag_id, "tag_group": tag_group, "tenant_id": frame.tenant_id}


async def _write_deliveries(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    await tx.at_once(
        _INSERT_DELIVERY,
        [
            {
                "delivery_uuid": str(uuid_utils.uuid7()),
                **_place(work.outcome.frame),
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
    """Raises the version of every camera whose events or state change; of a late frame's only its newest incident
    may change besides."""
    await tx.by_key(
        _UPDATE_STATE,
        [
            {
                "camera_key": work.outcome.frame.camera_key,
                "touches": int(work.outcome.touches_state),
                "opened": int(work.outcome.touches_state and work.outcome.event.action is EventAction.OPEN),
                "event_id": work.event_id,
                "stills": json.dumps([_STILL_VALUES(still) for still in work.outcome.stills]),
                "detected": int(work.outcome.analysis.detected),
                "captured_at": work.outcome.frame.captured_at,
                "has_incident": int(work.outcome.incident is not None),
                "incident_id": work.incident_id,
                "last_seen_at": 0 if work.outcome.incident is None else work.outcome.incident.last_seen_at,
                "now_ms": now_ms,
            }
            for work in works
            if work.outcome.touches_state or work.event_id is not None
        ],
    )


def _note_changes(tx: Tx, works: Sequence[Work], now_ms: int) -> None:
    for work in works:
        frame, incident = work.outcome.frame, work.outcome.incident
        named: list[tuple[ChangeKind, int]] = [("frame", frame.frame_id)]
        if work.outcome.event.close_event_id is not None:
            named.append(("event", work.outcome.event.close_event_id))
        if work.event_id is not None:
            named.append(("event", work.event_id))
        is_other = incident is not None and (incident.adds_event or incident.severity_rose)
        if is_other and work.incident_id is not None:
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
  1, :now_ms, :now_ms) RETURNING incident_id, incident_uuid"""
_GROW_INCIDENT = """
UPDATE incidents SET start_at = :start_at, last_seen_at = :last_seen_at, severity_max = :severity_max,
  event_count = event_count + :added, updated_at = :now_ms WHERE incident_id = :incident_id"""
CLOSE_EVENT = """
UPDATE events SET state = 'closed', open_key = NULL, end_at = :end_at, updated_at = :now_ms
WHERE event_id = :event_id"""
_INSERT_EVENT = """
INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, open_key, state, primary_event,
  start_at, last_seen_at, end_at, severity_max, confidence_max, best_frame_id, best_score, retention_class,
  unknown_flag, frame_count, created_at, updated_at)
VALUES (:event_uuid, :tenant_id, :site_id, :camera_key, :incident_id, :open_key, :state, :primary_event,
  :start_at, :last_seen_at, :end_at, :severity_max, :confidence_max, :frame_id, :best_score, :retention_class,
  :unknown_flag, 1, :now_ms, :now_ms) RETURNING event_id, event_uuid"""
# A closed event that a frame from behind joins ends where it was last seen.
_MERGE_EVENT = """
UPDATE events SET start_at = :start_at, last_seen_at = :last_seen_at, severity_max = :severity_max,
  end_at = CASE WHEN state = 'closed' THEN :last_seen_at ELSE end_at END,
  confidence_max = :confidence_max, best_score = :best_score,
  unknown_flag = CASE WHEN :unknown_flag = 1 THEN 1 ELSE unknown_flag END,
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
# The newest incident is the one last seen, also when a late frame made it: the next event may continue it.
# last_detected before last_analyzed_at: MariaDB reads what was assigned before it.
_UPDATE_STATE = """
UPDATE camera_state SET version = version + 1,
  open_event_id = CASE WHEN :opened = 1 THEN :event_id ELSE open_event_id END,
  stills = CASE WHEN :touches = 1 THEN :stills ELSE stills END,
  last_detected = CASE WHEN :touches = 1 AND (last_analyzed_at IS NULL OR last_analyzed_at <= :captured_at)
                  THEN :detected ELSE last_detected END,
  last_analyzed_at = CASE WHEN :touches = 1 AND (last_analyzed_at IS NULL OR last_analyzed_at <= :captured_at)
                     THEN :captured_at ELSE last_analyzed_at END,
  incident_id = CASE WHEN :has_incident = 0 OR EXISTS (
    SELECT 1 FROM incidents i WHERE i.incident_id = camera_state.incident_id AND i.last_seen_at > :last_seen_at
  ) THEN incident_id ELSE :incident_id END,
  updated_at = CASE WHEN :touches = 1 THEN :now_ms ELSE updated_at END
WHERE camera_key = :camera_key"""
