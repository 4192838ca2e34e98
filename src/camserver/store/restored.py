"""What a database must be told when it was put back to an earlier moment.

Workers may have gone on since that moment, under generations that this database has not given yet. So each generation
jumps ahead of what they can have, and nobody holds a camera. People sign in again: a session that was ended since
would be there again. And who follows the change feed may remember numbers that would be given a second time, for
other changes: the feed begins anew behind all of them.
"""

from camserver.domain.people import Principal, Role
from camserver.store import audit
from camserver.store.tx import Scoped, Tx

# More leases of one camera than there can have been since any backup.
GENERATIONS_AHEAD = 1_000_000
# More changes of a tenant than there can have been; where the clock went back since the numbers were times.
CHANGES_AHEAD = 100_000_000_000
REASON = "restored from a backup"


async def settle(tx: Tx, now_ms: int, taken_at: int) -> None:
    """Right after a restore, before any server runs. `taken_at` is when the backup was made."""
    await tx.run(
        "UPDATE camera_leases SET end_reason = :reason, "
        "ended_at = CASE WHEN granted_at > :now_ms THEN granted_at ELSE :now_ms END WHERE ended_at IS NULL",
        reason=REASON,
        now_ms=now_ms,
    )
    await tx.run(
        "UPDATE camera_sessions SET generation = generation + :ahead, "
        "state = CASE WHEN worker_key IS NULL THEN state ELSE 'ORPHANED' END, worker_key = NULL, reason = :reason, "
        "lease_expires_at = NULL, intent_id = NULL, start_sent_at = NULL, acked_at = NULL, ready_at = NULL, "
        "stop_wanted = 0, updated_at = :now_ms",
        ahead=GENERATIONS_AHEAD,
        reason=REASON,
        now_ms=now_ms,
    )
    # Their writers are gone; what they left without a row is swept.
    await tx.run("UPDATE epochs SET ended_at = :now_ms WHERE ended_at IS NULL", now_ms=now_ms)
    await tx.run("DELETE FROM sessions")
    # An old cursor finds no change behind it and a counter that is ahead: whoever has it reads everything anew. The
    # time as the number is ahead of all that were given, also after an earlier restore of the same backup, since no
    # tenant has a thousand changes a second on average.
    await tx.run("DELETE FROM changes")
    await tx.run(
        "UPDATE change_counters SET last_seq = CASE WHEN last_seq < :now_ms THEN :now_ms ELSE last_seq + :ahead END",
        now_ms=now_ms,
        ahead=CHANGES_AHEAD,
    )
    entry = audit.Entry("database_restored", now_ms, details={"taken_at": taken_at})
    await audit.add_own(Scoped(tx, Principal(audit.INSTALLATION, None, Role.SYSTEM_ADMIN)), entry)


# A server says that it lives many times within so long.
ALIVE_MS = 60_000


async def last_seen(tx: Tx) -> int:
    """When a server last said that it lives; 0: none did, or all have ended."""
    row = await tx.one("SELECT max(seen_at) AS seen_at FROM epochs WHERE ended_at IS NULL")
    return 0 if row is None else int(row["seen_at"] or 0)
