"""Records that go by age alone: notifications, deliveries, statistics, audit; and the tally of what went."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from camserver.domain.audit import SealKey, pruned
from camserver.domain.keeping import DAY_MS, Why, suppressed_days
from camserver.domain.retention import RetentionPolicy
from camserver.store import Store, audit_seals, upkeep
from camserver.store.audit import INSTALLATION
from camserver.store.retention import Swept

# Cameras whose evidence could not be swept, as reports name them.
FAILED = "failed"
FAILED_MAX_CHARS = 200


@dataclass(slots=True)
class Tally:
    """What was deleted, by tenant, kind and reason; and what went wrong, by tenant."""

    counts: dict[tuple[int, str, str], Swept] = field(default_factory=dict)
    failures: dict[int, list[str]] = field(default_factory=dict)

    def failed(self, tenant_id: int, why: str) -> None:
        self.failures.setdefault(tenant_id, []).append(why)

    def add(self, tenant_id: int, what: str, why: str, swept: Swept) -> None:
        if swept.rows or swept.objects:
            key = (tenant_id, what, why)
            self.counts[key] = self.counts.get(key, Swept()) + swept

    def reports(self) -> tuple[upkeep.Report, ...]:
        return tuple(
            upkeep.Report(tenant_id, what, swept.rows or swept.objects, swept.bytes, why)
            for (tenant_id, what, why), swept in sorted(self.counts.items())
        ) + tuple(
            # The first of them is enough for people; the log has all.
            upkeep.Report(tenant_id, FAILED, len(whys), 0, whys[0][:FAILED_MAX_CHARS])
            for tenant_id, whys in sorted(self.failures.items())
        )


async def prune_records(
    store: Store,
    policy: RetentionPolicy,
    key: SealKey,
    now_ms: int,
    tally: Tally,
    pause: Callable[[], Awaitable[None]],
) -> None:
    """Deletes what is past its time, a page a transaction, with pauses between. `key` signs what goes of the audit
    log."""
    for tenant_id in await store.read(upkeep.tenants):
        for what in upkeep.AGED:
            cutoff = now_ms - upkeep.days_of(what, policy) * DAY_MS
            count = upkeep.PAGE
            while count == upkeep.PAGE:
                count = await store.write(upkeep.prune, what, tenant_id, cutoff)
                tally.add(tenant_id, what, Why.AGE, Swept(count))
        await _prune_audit(store, policy, key, now_ms, tally, tenant_id)
    await _prune_audit(store, policy, key, now_ms, tally, INSTALLATION)
    # Parts first, then what fanned out into them: twice.
    for status in (*upkeep.OVER, *upkeep.OVER):
        days = suppressed_days(policy) if status == "suppressed" else policy.deliveries_days
        while await store.write(upkeep.prune_deliveries, status, now_ms - days * DAY_MS) == upkeep.PAGE:
            await pause()
    before_ms = now_ms - policy.statistics_days * DAY_MS
    while await store.write(upkeep.prune_statistics, before_ms, upkeep.day_of(before_ms)):
        await pause()
    while await store.write(upkeep.prune_links, now_ms) >= upkeep.PAGE:
        await pause()


async def _prune_audit(
    store: Store, policy: RetentionPolicy, key: SealKey, now_ms: int, tally: Tally, tenant_id: int
) -> None:
    """Whole sealed batches, from the oldest on; their seals stay, so that the chain can be checked."""
    cutoff = now_ms - policy.audit_days * DAY_MS
    while found := await store.read(audit_seals.prunable, tenant_id, cutoff):
        count = await store.write(audit_seals.prune, [pruned(seal, key, now_ms) for seal in found], now_ms)
        if not count:
            return
        # The installation is nobody's, so nobody reads what is told of it; the log itself says what went.
        if tenant_id != INSTALLATION:
            tally.add(tenant_id, "audit", Why.AGE, Swept(count))
