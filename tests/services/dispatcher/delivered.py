"""One delivery after another through a handler, as the delivery loop does it, without its loop."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from camserver.domain.deliveries import Claimed, DeliveriesPolicy, DeliveryError, Handler, after_trouble
from camserver.domain.facts import DeliveryKind
from camserver.store import Store
from camserver.store.deliveries import Wanted, claim, promote_delayed
from camserver.store.delivery_endings import Failed, Settled, settle
from tests.store.analyzing import rows

_tokens = count()


async def claimed(store: Store, kind: DeliveryKind, now_ms: int, most: int = 1) -> tuple[Claimed, ...]:
    await store.write(promote_delayed, now_ms)
    wanted = Wanted(most, ((kind, most),), 0)
    return (await store.write(claim, "d", f"t{next(_tokens)}", wanted, now_ms + 60_000)).deliveries


async def deliver(store: Store, handler: Handler, delivery: Claimed, now_ms: int) -> bool:
    """Hands it to the handler and writes how it ended; False when its fence was lost."""
    try:
        ending: Any = await handler(delivery)
    except DeliveryError as error:
        follows = after_trouble(
            error.kind,
            attempt=delivery.attempt,
            created_at=delivery.created_at,
            now_ms=now_ms,
            policy=DeliveriesPolicy(),
            jitter=0.5,
            retry_after_sec=error.retry_after_sec,
        )
        ending = Failed(follows, error.message, error.progress, error.along)
    (kept,) = await store.write(settle, (Settled(delivery.delivery_id, delivery.token, ending),), now_ms)
    return kept


async def deliver_all(store: Store, kind: DeliveryKind, handler: Handler, now_ms: int) -> int:
    """Everything of a kind that waits now; how many there were."""
    done = 0
    while found := await claimed(store, kind, now_ms):
        done += len(found)
        for delivery in found:
            await deliver(store, handler, delivery, now_ms)
    return done


async def table(store: Store, name: str, order: str) -> Sequence[dict[str, Any]]:
    return await store.read(rows, name, order)
