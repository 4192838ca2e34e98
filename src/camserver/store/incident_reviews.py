"""Who has looked at which incident (decision 21).

A review is a person's own and holds for the incident as they saw it: a higher severity or another event makes it
unreviewed again. That is not written anywhere: `incident_pages` compares the two when it reads.
"""

from camserver.base.errors import Forbidden, NotFound
from camserver.store import audit, incident_pages
from camserver.store.incident_pages import IncidentSummary
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped


async def review(
    tx: Scoped, incident_uuid: str, seen_severity: int | None, seen_event_uuid: str | None, address: str, now_ms: int
) -> IncidentSummary:
    """Notes that the caller has looked at an incident, as it was when they saw it; without that, as it is now.

    NotFound when the event that they saw is not of this incident, or is past its retention: a review of it would say
    nothing about those that are there, and whoever reads the incident again sees which these are.
    """
    user_id = _person(tx)
    row = await _locked(tx, incident_uuid)
    seen = None if seen_event_uuid is None else await _event_id(tx, row["incident_id"], seen_event_uuid)
    await tx.run(
        _PUT,
        incident_id=row["incident_id"],
        user_id=user_id,
        severity=row["severity_max"] if seen_severity is None else min(seen_severity, row["severity_max"]),
        last_event_id=row["last_event_id"] if seen is None else seen,
        now_ms=now_ms,
    )
    _changed(tx, row, now_ms)
    await audit.add_own(tx, audit.Entry("incident_reviewed", now_ms, address, "incident", incident_uuid))
    return await incident_pages.get(tx, incident_uuid)


async def unreview(tx: Scoped, incident_uuid: str, address: str, now_ms: int) -> IncidentSummary:
    """Takes the caller's review back; without one nothing happens."""
    user_id = _person(tx)
    row = await _locked(tx, incident_uuid)
    taken = await tx.run(
        "DELETE FROM incident_reviews WHERE tenant_id = :tenant_id AND incident_id = :incident_id "
        "AND user_id = :user_id",
        incident_id=row["incident_id"],
        user_id=user_id,
    )
    if taken:
        _changed(tx, row, now_ms)
        await audit.add_own(tx, audit.Entry("incident_unreviewed", now_ms, address, "incident", incident_uuid))
    return await incident_pages.get(tx, incident_uuid)


def _person(tx: Scoped) -> int:
    if tx.principal.user_id is None:
        raise Forbidden(
            "a review is a person's, and this token belongs to none; sign in to review", reason="review_needs_person"
        )
    return tx.principal.user_id


async def _locked(tx: Scoped, incident_uuid: str) -> Row:
    """The incident, which nothing joins until this transaction is over."""
    row = await tx.one(_INCIDENT, incident_uuid=incident_uuid)
    if row is None:
        raise incident_pages.missing(incident_uuid)
    return row


async def _event_id(tx: Scoped, incident_id: int, event_uuid: str) -> int:
    """The event that was the last one when the caller looked."""
    row = await tx.one(
        "SELECT event_id FROM events WHERE tenant_id = :tenant_id AND incident_id = :incident_id "
        "AND event_uuid = :event_uuid",
        incident_id=incident_id,
        event_uuid=event_uuid,
    )
    if row is None:
        raise NotFound(
            f"this incident has no event {event_uuid}; it may be past its retention, read the incident again",
            reason="no_event",
        )
    return int(row["event_id"])


def _changed(tx: Scoped, row: Row, now_ms: int) -> None:
    tx.changed(
        kind="incident",
        at_ms=now_ms,
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        object_id=row["incident_id"],
    )


_INCIDENT = """
SELECT incident_id, site_id, camera_key, severity_max, last_event_id FROM incidents
WHERE tenant_id = :tenant_id AND IN_REACH() AND incident_uuid = :incident_uuid
FOR UPDATE"""
_VALUES = """
INSERT INTO incident_reviews (incident_id, user_id, tenant_id, severity, last_event_id, reviewed_at)
VALUES (:incident_id, :user_id, :tenant_id, :severity, :last_event_id, :now_ms)"""
_PUT = Sql(
    f"""{_VALUES}
ON CONFLICT (incident_id, user_id) DO UPDATE SET severity = excluded.severity,
  last_event_id = excluded.last_event_id, reviewed_at = excluded.reviewed_at""",
    mariadb=f"""{_VALUES}
ON DUPLICATE KEY UPDATE severity = VALUES(severity), last_event_id = VALUES(last_event_id),
  reviewed_at = VALUES(reviewed_at)""",
)
