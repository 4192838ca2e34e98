"""Events of camera issues: one open one for each camera and kind, beside the one of what the camera sees.

`events.subject` tells them apart and `issue_key` keeps them single, as `open_key` does for the other. So a person
before the camera and a camera that fails neither merge nor close one another; nor do two issues. Their incidents are
their own, too: `camera_state` knows nothing of them, so the event rules never continue one. See docs/adr/0005.
"""

from dataclasses import dataclass

import uuid_utils

from camserver.domain.change_kinds import ChangeKind
from camserver.domain.health import CAMERA_ISSUE, ISSUES, Issue
from camserver.domain.incidents import IncidentPolicy
from camserver.domain.notices import DeliveryPolicy, NotifyPolicy, back_reason, issue_reason
from camserver.domain.retention import Retention
from camserver.domain.suspicions import Suspicion
from camserver.domain.vocabulary import NOTIFY_SAFE
from camserver.store.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class IssueTerms:
    incidents: IncidentPolicy
    notify: NotifyPolicy
    deliveries: DeliveryPolicy


@dataclass(frozen=True, slots=True)
class Issues:
    """What is wrong with one camera now."""

    camera_key: int
    tenant_id: int
    site_id: int
    told: tuple[tuple[Issue, Suspicion], ...]
    had_some: bool  # whether events may be open; else nobody looks for them
    cause: str  # why its looks fail
    picture_frame_id: int | None  # the newest look with a picture
    last_at: int  # captured_at of the newest look: what is over ended there
    gap_ms: int  # issues of one kind no further apart are one incident
    # Whether the camera itself shows that what is over is over. People who switch it off, or change it, end its
    # issues too, and then nobody is told that it works again.
    is_proven: bool = True


@dataclass(frozen=True, slots=True)
class OpenIssue:
    kind: str
    since: int
    event_uuid: str


async def apply_issues(tx: Tx, issues: Issues, now_ms: int, terms: IssueTerms) -> tuple[OpenIssue, ...]:
    """Brings the camera's open events in line; those that are open afterwards. The camera's health is locked."""
    if not issues.told and not issues.had_some:
        return ()
    rows = await tx.all(_OPEN, issue_keys=[_key(issues.camera_key, issue) for issue in Issue])
    opened = {Issue(row["subject"]): row for row in rows}
    told = dict(issues.told)
    for issue, row in opened.items():
        # One that ended and began again between two sweeps is another one.
        if issue not in told or told[issue].since != row["start_at"]:
            await _close(tx, issues, row, now_ms, terms)
    found = []
    for issue, suspicion in told.items():
        same = opened.get(issue)
        if same is not None and same["start_at"] == suspicion.since:
            await _extend(tx, issues, same, suspicion, now_ms)
            found.append(OpenIssue(issue.value, suspicion.since, same["event_uuid"]))
        else:
            event_uuid = await _begin(tx, issues, issue, suspicion, now_ms, terms)
            found.append(OpenIssue(issue.value, suspicion.since, event_uuid))
    return tuple(found)


def _key(camera_key: int, issue: Issue) -> str:
    return f"{camera_key}:{issue.value}"


async def _begin(tx: Tx, issues: Issues, issue: Issue, suspicion: Suspicion, now_ms: int, terms: IssueTerms) -> str:
    kind = ISSUES[issue]
    incident_id, is_new = await _incident(tx, issues, issue, suspicion, now_ms, terms.incidents)
    event_uuid = str(uuid_utils.uuid7())
    # A camera that is not seen has no picture of it; the last one it gave shows what is not watched.
    is_unseen = issue in (Issue.OFFLINE, Issue.UNATTENDED)
    frame_id = issues.picture_frame_id if is_unseen else suspicion.frame_id
    event_id = await tx.insert(
        _INSERT_EVENT,
        event_uuid=event_uuid,
        tenant_id=issues.tenant_id,
        site_id=issues.site_id,
        camera_key=issues.camera_key,
        incident_id=incident_id,
        issue_key=_key(issues.camera_key, issue),
        subject=issue.value,
        cause=_cause(issues, issue),
        primary_event=CAMERA_ISSUE,
        start_at=suspicion.since,
        last_seen_at=suspicion.last_at,
        severity=kind.severity,
        frame_id=frame_id,
        retention_class=Retention.QUARANTINE.value,
        looks=suspicion.looks,
        now_ms=now_ms,
    )
    await tx.run(
        "UPDATE incidents SET last_event_id = :event_id WHERE incident_id = :incident_id",
        event_id=event_id,
        incident_id=incident_id,
    )
    await tx.run(
        _INSERT_TAG,
        event_id=event_id,
        tag_id=kind.tag_id,
        tenant_id=issues.tenant_id,
        tag_group=NOTIFY_SAFE,
        camera_key=issues.camera_key,
        start_at=suspicion.since,
    )
    if issue is Issue.MOVED:
        await _forget_places(tx, issues, now_ms)
    reason = issue_reason(kind.tag_id, kind.severity, is_new, terms.notify)
    if issue is Issue.UNATTENDED and await _is_told_of_site(tx, issues, suspicion, terms.notify):
        reason = None
    await _tell(tx, issues, reason, frame_id, event_id, incident_id, now_ms, terms)
    _changed(tx, issues, "event", event_id, now_ms)
    _changed(tx, issues, "incident", incident_id, now_ms)
    return event_uuid


async def _incident(
    tx: Tx, issues: Issues, issue: Issue, suspicion: Suspicion, now_ms: int, policy: IncidentPolicy
) -> tuple[int, bool]:
    """The incident of a new event, and whether it is new: an issue that comes and goes is one for a while."""
    before = await tx.one(
        _NEWEST_INCIDENT,
        camera_key=issues.camera_key,
        subject=issue.value,
        seen_since=suspicion.since - issues.gap_ms,
        started_since=suspicion.since - policy.cut_min * 60_000,
    )
    if before is not None:
        await tx.run(
            _GROW_INCIDENT,
            incident_id=before["incident_id"],
            last_seen_at=suspicion.last_at,
            added=1,
            now_ms=now_ms,
        )
        return before["incident_id"], False
    incident_id = await tx.insert(
        _INSERT_INCIDENT,
        incident_uuid=str(uuid_utils.uuid7()),
        tenant_id=issues.tenant_id,
        site_id=issues.site_id,
        camera_key=issues.camera_key,
        start_at=suspicion.since,
        last_seen_at=suspicion.last_at,
        severity=ISSUES[issue].severity,
        now_ms=now_ms,
    )
    return incident_id, True


async def _extend(tx: Tx, issues: Issues, row: Row, suspicion: Suspicion, now_ms: int) -> None:
    """An issue that goes on is no news: no line in the feed."""
    if suspicion.last_at <= row["last_seen_at"]:
        return
    await tx.run(
        _EXTEND,
        event_id=row["event_id"],
        last_seen_at=suspicion.last_at,
        looks=suspicion.looks,
        cause=_cause(issues, Issue(row["subject"])),
        now_ms=now_ms,
    )
    await tx.run(
        _GROW_INCIDENT,
        incident_id=row["incident_id"],
        last_seen_at=suspicion.last_at,
        added=0,
        now_ms=now_ms,
    )


async def _is_told_of_site(tx: Tx, issues: Issues, suspicion: Suspicion, policy: NotifyPolicy) -> bool:
    """A worker or a line that fails leaves many cameras at once: one message tells of all of a site."""
    row = await tx.one(
        _TOLD_OF_SITE,
        tenant_id=issues.tenant_id,
        site_id=issues.site_id,
        subject=Issue.UNATTENDED.value,
        since=suspicion.since - policy.cooldown_sec * 1000,
    )
    return row is not None


async def _close(tx: Tx, issues: Issues, row: Row, now_ms: int, terms: IssueTerms) -> None:
    issue = Issue(row["subject"])
    # No look shows that somebody looks again; it is so from now on.
    end_at = now_ms if issue is Issue.UNATTENDED else max(issues.last_at, row["last_seen_at"])
    await tx.run(_CLOSE, event_id=row["event_id"], end_at=end_at, now_ms=now_ms)
    kind = ISSUES[issue]
    reason = back_reason(kind.tag_id, kind.severity, terms.notify) if issues.is_proven else None
    if issue is Issue.UNATTENDED and await tx.one(_TOLD_OF_EVENT, event_id=row["event_id"]) is None:
        reason = None
    await _tell(tx, issues, reason, None, row["event_id"], row["incident_id"], now_ms, terms)
    _changed(tx, issues, "event", row["event_id"], now_ms)


async def _forget_places(tx: Tx, issues: Issues, now_ms: int) -> None:
    """What stays where it is stands elsewhere in the picture now."""
    await tx.run(_FORGET_PLACES, camera_key=issues.camera_key, now_ms=now_ms)


async def _tell(
    tx: Tx,
    issues: Issues,
    reason: str | None,
    frame_id: int | None,
    event_id: int,
    incident_id: int,
    now_ms: int,
    terms: IssueTerms,
) -> None:
    """Makes the notice, where there is a reason for one and somebody to be told."""
    if reason is None or not terms.deliveries.notify:
        return
    await tx.run(
        _INSERT_DELIVERY,
        delivery_uuid=str(uuid_utils.uuid7()),
        tenant_id=issues.tenant_id,
        site_id=issues.site_id,
        camera_key=issues.camera_key,
        reason=reason,
        frame_id=frame_id,
        event_id=event_id,
        incident_id=incident_id,
        now_ms=now_ms,
    )


def _cause(issues: Issues, issue: Issue) -> str:
    return issues.cause if issue is Issue.OFFLINE else ""


def _changed(tx: Tx, issues: Issues, kind: ChangeKind, object_id: int, now_ms: int) -> None:
    tx.changed(
        tenant_id=issues.tenant_id,
        kind=kind,
        at_ms=now_ms,
        site_id=issues.site_id,
        camera_key=issues.camera_key,
        object_id=object_id,
    )


_OPEN = """
SELECT event_id, event_uuid, incident_id, subject, start_at, last_seen_at FROM events
WHERE issue_key IN (:issue_keys...)"""
_INSERT_EVENT = """
INSERT INTO events (event_uuid, tenant_id, site_id, camera_key, incident_id, issue_key, subject, cause, state,
  primary_event, start_at, last_seen_at, severity_max, confidence_max, best_frame_id, best_score, retention_class,
  frame_count, created_at, updated_at)
VALUES (:event_uuid, :tenant_id, :site_id, :camera_key, :incident_id, :issue_key, :subject, :cause, 'open',
  :primary_event, :start_at, :last_seen_at, :severity, 1, :frame_id, 0, :retention_class,
  :looks, :now_ms, :now_ms) RETURNING event_id"""
_EXTEND = """
UPDATE events SET last_seen_at = :last_seen_at, frame_count = :looks, cause = :cause, updated_at = :now_ms
WHERE event_id = :event_id"""
_CLOSE = """
UPDATE events SET state = 'closed', issue_key = NULL, end_at = :end_at, updated_at = :now_ms
WHERE event_id = :event_id"""
_TOLD_OF_SITE = """
SELECT d.delivery_id FROM events e JOIN deliveries d ON d.event_id = e.event_id
WHERE e.tenant_id = :tenant_id AND e.start_at >= :since AND e.site_id = :site_id AND e.subject = :subject
  AND d.kind = 'notify' AND d.reason <> 'back' LIMIT 1"""
_TOLD_OF_EVENT = """
SELECT delivery_id FROM deliveries
WHERE event_id = :event_id AND kind = 'notify' AND reason <> 'back' LIMIT 1"""
_FORGET_PLACES = """
UPDATE camera_state SET stills = NULL, version = version + 1, updated_at = :now_ms
WHERE camera_key = :camera_key AND stills IS NOT NULL"""
_INSERT_TAG = """
INSERT INTO event_tags (event_id, tag_id, tenant_id, tag_group, camera_key, start_at)
VALUES (:event_id, :tag_id, :tenant_id, :tag_group, :camera_key, :start_at)"""
_NEWEST_INCIDENT = """
SELECT i.incident_id FROM incidents i JOIN events e ON e.event_id = i.last_event_id
WHERE i.camera_key = :camera_key AND e.subject = :subject AND i.start_at > :started_since
  AND i.last_seen_at >= :seen_since
ORDER BY i.start_at DESC LIMIT 1"""
_INSERT_INCIDENT = """
INSERT INTO incidents (incident_uuid, tenant_id, site_id, camera_key, start_at, last_seen_at, severity_max,
  event_count, created_at, updated_at)
VALUES (:incident_uuid, :tenant_id, :site_id, :camera_key, :start_at, :last_seen_at, :severity,
  1, :now_ms, :now_ms) RETURNING incident_id"""
_GROW_INCIDENT = """
UPDATE incidents SET last_seen_at = :last_seen_at, event_count = event_count + :added, updated_at = :now_ms
WHERE incident_id = :incident_id"""
_INSERT_DELIVERY = """
INSERT INTO deliveries (delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id, event_id, incident_id,
  status, available_at, created_at)
VALUES (:delivery_uuid, :tenant_id, :site_id, :camera_key, 'notify', :reason, :frame_id, :event_id, :incident_id,
  'queued', :now_ms, :now_ms)"""
