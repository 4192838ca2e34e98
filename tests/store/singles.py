"""One thing at a time, where the store's operations take many: what most tests say."""

from camserver.store.camera_sessions import ensure_sessions
from camserver.store.intents import acked_all
from camserver.store.leases import Claim, Lease, Want, take_all
from camserver.store.starts import set_all_active
from camserver.store.tx import Tx
from camserver.store.workers import Beat, Heard, Registered, heartbeats


async def take(tx: Tx, want: Want, ttl_ms: int, now_ms: int) -> Lease | None:
    leases = await take_all(tx, (want,), ttl_ms, now_ms)
    return leases[0] if leases else None


async def acked(tx: Tx, worker_key: int, intent_id: str, now_ms: int) -> bool:
    (is_known,) = await acked_all(tx, ((worker_key, intent_id),), now_ms)
    return is_known


async def set_active(tx: Tx, claim: Claim, now_ms: int) -> bool:
    (is_holder,) = await set_all_active(tx, (claim,), now_ms)
    return is_holder


async def ensure_session(tx: Tx, camera_key: int, now_ms: int) -> None:
    await ensure_sessions(tx, (camera_key,), now_ms)


async def heartbeat(
    tx: Tx,
    worker: Registered,
    connected_epoch: int,
    status: str,
    held: tuple[tuple[str, int], ...],
    verdicts_since: int,
    ttl_ms: int,
    now_ms: int,
) -> Beat:
    heard = Heard(worker, status, held, verdicts_since)
    (beat,) = await heartbeats(tx, (heard,), connected_epoch, ttl_ms, now_ms)
    return beat
