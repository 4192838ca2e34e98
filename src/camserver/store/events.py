"""Closing events whose time is up (decisions 19 and 22). Opening and merging are `outcomes.apply`."""

from camserver.domain.events import CLOSE_MARGIN_MS, EventPolicy, close_after_ms, close_due
from camserver.store.jobs import event_facts
from camserver.store.outcomes import CLOSE_EVENT
from camserver.store.tx import Row, Tx

CLOSE_BATCH = 500


async def close_stale(tx: Tx, now_ms: int, policy: EventPolicy, default_interval_ms: int) -> int:
    """Closes the open events that nothing can join any more, each from where it was last seen."""
    rows = await tx.all(
        _OPEN_EVENTS,
        now_ms=now_ms,
        seen_before=now_ms - close_after_ms(policy, 0),
        default_interval_sec=default_interval_ms / 1000,
    )
    closed = 0
    for row in rows:
        closed += await _close_if_due(tx, row, now_ms, policy, default_interval_ms)
    return closed


async def _close_if_due(tx: Tx, row: Row, now_ms: int, policy: EventPolicy, default_interval_ms: int) -> int:
    interval_sec = row["polling_interval_sec"]
    interval_ms = default_interval_ms if interval_sec is None else round(interval_sec * 1000)
    # The camera's row is locked before the event is looked at again: a dispatcher may be merging into it.
    await tx.one(
        "SELECT version FROM camera_state WHERE camera_key = :camera_key FOR UPDATE", camera_key=row["camera_key"]
    )
    fresh = await tx.one(_EVENT, event_id=row["event_id"])
    waiting = await tx.one(_OLDEST_UNFINISHED, camera_key=row["camera_key"])
    if fresh is None or fresh["state"] != "open":
        return 0
    oldest = waiting["captured_at"] if waiting is not None else None
    end_at = close_due(event_facts(fresh), now_ms, interval_ms, oldest, policy)
    if end_at is None:
        return 0
    await tx.run(CLOSE_EVENT, event_id=row["event_id"], end_at=end_at, now_ms=now_ms)
    await tx.run(
        """
        UPDATE camera_state SET version = version + 1, open_event_id = NULL, updated_at = :now_ms
        WHERE camera_key = :camera_key AND open_event_id = :event_id""",
        now_ms=now_ms,
        camera_key=row["camera_key"],
        event_id=row["event_id"],
    )
    tx.changed(
        tenant_id=fresh["tenant_id"],
        kind="event",
        at_ms=now_ms,
        site_id=fresh["site_id"],
        camera_key=row["camera_key"],
        object_id=row["event_id"],
    )
    return 1


# Those that can't close yet are left out here, so that many of them never hide one that can; `close_due` decides.
_OPEN_EVENTS = f"""
SELECT e.event_id, e.camera_key, o.polling_interval_sec
FROM events e LEFT JOIN camera_overrides o ON o.camera_key = e.camera_key
WHERE e.open_key IS NOT NULL AND e.last_seen_at < :seen_before
  AND e.last_seen_at + {CLOSE_MARGIN_MS} + 1500 * COALESCE(o.polling_interval_sec, :default_interval_sec) < :now_ms
  AND NOT EXISTS (
    SELECT 1 FROM inference_jobs j WHERE j.camera_key = e.camera_key AND j.status IN ('queued','delayed','running')
      AND j.captured_at <= e.last_seen_at)
ORDER BY e.camera_key LIMIT {CLOSE_BATCH}"""
_EVENT = """
SELECT event_id, tenant_id, site_id, incident_id AS own_incident_id, primary_event, state, start_at, last_seen_at,
  severity_max, confidence_max, retention_class, best_score FROM events WHERE event_id = :event_id"""
_OLDEST_UNFINISHED = """
SELECT min(captured_at) AS captured_at FROM inference_jobs
WHERE camera_key = :camera_key AND status IN ('queued','delayed','running')"""
