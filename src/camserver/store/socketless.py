"""Workers that speak by single requests instead of a socket: they ask for cameras and for what they are to do.

Nobody can send such a worker anything, so no control process plans with it (`connected_epoch` stays empty): it is
given cameras only when it asks. Leases, generations and renewals are those of everybody else.
"""

from camserver.store.renewals import renew
from camserver.store.tx import Tx
from camserver.store.workers import Beat, Registered


async def known(tx: Tx, tenant_id: int, worker_id: str) -> Registered | None:
    """A worker that registered by a request. None: it did not, has a socket by now, or its site was removed."""
    row = await tx.one(
        """
        SELECT w.worker_key, w.site_id FROM workers w
        JOIN sites s ON s.site_id = w.site_id AND s.removed_at IS NULL
        WHERE w.tenant_id = :tenant_id AND w.worker_id = :worker_id AND w.connected_epoch IS NULL""",
        tenant_id=tenant_id,
        worker_id=worker_id,
    )
    return None if row is None else Registered(row["worker_key"], tenant_id, row["site_id"])


async def beat(
    tx: Tx, worker: Registered, status: str, held: tuple[tuple[str, int], ...], ttl_ms: int, now_ms: int
) -> Beat:
    """A sign of life and a renewal, as `workers.heartbeat` without a socket. Verdicts travel on sockets only."""
    seen = await tx.run(
        """
        UPDATE workers SET last_seen_at = :now_ms, status = :status
        WHERE worker_key = :worker_key AND connected_epoch IS NULL""",
        worker_key=worker.worker_key,
        status=status,
        now_ms=now_ms,
    )
    renewal = await renew(tx, worker.tenant_id, worker.worker_key, held, ttl_ms, now_ms)
    return Beat(renewal, (), is_replaced=not seen)


async def is_draining(tx: Tx, worker_key: int) -> bool:
    row = await tx.one(
        "SELECT drain_wanted, status FROM workers WHERE worker_key = :worker_key", worker_key=worker_key
    )
    return row is None or bool(row["drain_wanted"]) or row["status"] in ("DRAINING", "STOPPED")
