"""What `camserver check --fix` may do to rows: only what loses nothing that anybody could still find or use.

A repair is named like the check that finds it (check.py). What is not here is for people to judge.
"""

from typing import Final

from camserver.domain.people import Principal, Role
from camserver.store import audit
from camserver.store.tx import Scoped, Tx

ORPHANED_DETAILS: Final = {
    # Rows that only say something of another one, which is gone.
    "orphan_frame_tags": ("frame_tags", "frame_id", "frames"),
    "orphan_event_tags": ("event_tags", "event_id", "events"),
    "orphan_incident_reviews": ("incident_reviews", "incident_id", "incidents"),
    "orphan_cooldowns": ("cooldowns", "camera_key", "cameras"),
}

REPAIRS: Final[dict[str, tuple[str, ...]]] = {
    **{
        kind: (f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.{link} = {table}.{link})",)
        for kind, (table, link, parent) in ORPHANED_DETAILS.items()
    },
    "orphan_inference_jobs": (
        "DELETE FROM inference_jobs WHERE NOT EXISTS "
        "(SELECT 1 FROM frames p WHERE p.frame_id = inference_jobs.frame_id)",
    ),
    "orphan_frame_gaps": (
        "DELETE FROM frame_gaps WHERE NOT EXISTS (SELECT 1 FROM camera_leases l "
        "WHERE l.camera_key = frame_gaps.camera_key AND l.generation = frame_gaps.generation)",
    ),
    # Nobody holds the camera under it: the history says that it ended, and for what reason.
    "lease_without_session": (
        "UPDATE camera_leases SET ended_at = CASE WHEN granted_at > :now_ms THEN granted_at ELSE :now_ms END, "
        "end_reason = 'repaired' WHERE ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM camera_sessions s "
        "WHERE s.camera_key = camera_leases.camera_key AND s.generation = camera_leases.generation "
        "AND s.worker_key = camera_leases.worker_key)",
    ),
    # No history says that its worker may hold it: the camera is given anew, under a generation that nobody has had.
    "session_without_lease": (
        "UPDATE camera_sessions SET generation = generation + 1, worker_key = NULL, lease_expires_at = NULL, "
        "state = 'ORPHANED', intent_id = NULL, start_sent_at = NULL, acked_at = NULL, ready_at = NULL, "
        "stop_wanted = 0, reason = 'repaired', updated_at = :now_ms WHERE worker_key IS NOT NULL AND NOT EXISTS ("
        "SELECT 1 FROM camera_leases l WHERE l.camera_key = camera_sessions.camera_key "
        "AND l.generation = camera_sessions.generation AND l.worker_key = camera_sessions.worker_key "
        "AND l.ended_at IS NULL)",
    ),
    # Generations only grow: behind the highest that was ever given.
    "generation_behind": (
        "UPDATE camera_sessions SET generation = (SELECT max(l.generation) + 1 FROM camera_leases l "
        "WHERE l.camera_key = camera_sessions.camera_key), worker_key = NULL, lease_expires_at = NULL, "
        "state = 'ORPHANED', intent_id = NULL, start_sent_at = NULL, acked_at = NULL, ready_at = NULL, "
        "stop_wanted = 0, reason = 'repaired', updated_at = :now_ms WHERE EXISTS (SELECT 1 FROM camera_leases l "
        "WHERE l.camera_key = camera_sessions.camera_key AND l.generation > camera_sessions.generation)",
    ),
    # A job that is locked and does not run, or runs without a lock, is one that waits.
    "job_lock": (
        "UPDATE inference_jobs SET locked_token = NULL, locked_until = NULL "
        "WHERE status <> 'running' AND locked_token IS NOT NULL",
        "UPDATE inference_jobs SET status = 'queued', locked_token = NULL, locked_until = NULL "
        "WHERE status = 'running' AND (locked_token IS NULL OR locked_until IS NULL)",
    ),
    "errand_secret": (
        "UPDATE errands SET key_id = NULL, nonce = NULL, ciphertext = NULL "
        "WHERE state NOT IN ('waiting', 'sent') AND (key_id IS NOT NULL OR ciphertext IS NOT NULL)",
    ),
}


async def repair(tx: Tx, kinds: tuple[str, ...], now_ms: int) -> dict[str, int]:
    """Does these repairs; how many rows each touched. The audit log tells."""
    done: dict[str, int] = {}
    for kind in kinds:
        for statement in REPAIRS[kind]:
            params = {"now_ms": now_ms} if ":now_ms" in statement else {}
            done[kind] = done.get(kind, 0) + await tx.run(statement, **params)
    entry = audit.Entry("database_repaired", now_ms, details=dict(done))
    await audit.add_own(Scoped(tx, Principal(audit.INSTALLATION, None, Role.SYSTEM_ADMIN)), entry)
    return done
