"""Time in which a camera's looks were put off through no fault of its own, so that its gaps can be explained.

A pause begins and ends by what the camera's holder reports. One that its holder never ended is over with the lease.
"""

from collections.abc import Sequence

from camserver.domain.timeline import Pause
from camserver.store.tx import Row, Scoped, Tx


async def begin(tx: Tx, session: Row, cause: str, now_ms: int) -> None:
    """From now on, unless it has begun already. The session is locked."""
    last = await tx.one(
        "SELECT begin_at, generation, end_at FROM look_pauses WHERE camera_key = :camera_key "
        "ORDER BY begin_at DESC LIMIT 1",
        camera_key=session["camera_key"],
    )
    if last is not None and last["end_at"] is None and last["generation"] == session["generation"]:
        return
    await tx.run(
        "INSERT INTO look_pauses (camera_key, begin_at, tenant_id, generation, end_at, cause) "
        "VALUES (:camera_key, :begin_at, :tenant_id, :generation, NULL, :cause)",
        camera_key=session["camera_key"],
        begin_at=now_ms if last is None else max(now_ms, last["begin_at"] + 1),
        tenant_id=session["tenant_id"],
        generation=session["generation"],
        cause=cause,
    )


async def end(tx: Tx, camera_keys: Sequence[int], now_ms: int) -> None:
    """These are looked at again."""
    await tx.run(
        "UPDATE look_pauses SET end_at = CASE WHEN begin_at > :now_ms THEN begin_at ELSE :now_ms END "
        "WHERE camera_key IN (:camera_keys...) AND end_at IS NULL",
        camera_keys=list(camera_keys),
        now_ms=now_ms,
    )


async def within(
    tx: Scoped, camera_keys: Sequence[int], from_ms: int, to_ms: int, now_ms: int
) -> dict[int, tuple[Pause, ...]]:
    """Those that touch the time, by camera, in order."""
    rows = await tx.all(_WITHIN, camera_keys=list(camera_keys), from_ms=from_ms, to_ms=to_ms) if camera_keys else ()
    found: dict[int, list[Pause]] = {}
    for row in rows:
        end_ms = min(at for at in (row["end_at"], row["ended_at"], now_ms, to_ms) if at is not None)
        pause = Pause(max(row["begin_at"], from_ms), end_ms, row["cause"])
        if pause.end_at > pause.start_at:
            found.setdefault(row["camera_key"], []).append(pause)
    return {camera_key: tuple(pauses) for camera_key, pauses in found.items()}


async def forget(tx: Tx, camera_key: int, before_ms: int) -> int:
    return await tx.run(
        "DELETE FROM look_pauses WHERE camera_key = :camera_key AND begin_at < :before_ms",
        camera_key=camera_key,
        before_ms=before_ms,
    )


_WITHIN = """
SELECT p.camera_key, p.begin_at, p.end_at, p.cause, l.ended_at FROM look_pauses p
LEFT JOIN camera_leases l ON l.camera_key = p.camera_key AND l.generation = p.generation
WHERE p.tenant_id = :tenant_id AND p.camera_key IN (:camera_keys...) AND p.begin_at < :to_ms
  AND (p.end_at IS NULL OR p.end_at > :from_ms)
ORDER BY p.camera_key, p.begin_at"""
