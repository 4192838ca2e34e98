"""Carries out what `domain.assignment` decides: takes free cameras, and asks holders to let go of those that move.

Every control process decides on the same rows for the sites it has workers of, and takes only for its own workers;
what is meant for a worker of another process is that one's to take. If it does not within seconds (it has died),
the workers here are asked in its place.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from camserver.base import figures
from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.domain.assignment import decide, lopsided
from camserver.domain.assignment_styles import SPREAD, STYLES, Style
from camserver.domain.assignment_types import (
    AssignmentPolicy,
    CameraNeed,
    Decision,
    Kind,
    Plan,
    Site,
    Snapshot,
    WorkerOffer,
)
from camserver.domain.leases import LeasePolicy
from camserver.services.control.connections import Connections
from camserver.store import Store
from camserver.store.assignment import (
    SHADOW_FLAG,
    STYLE_FLAG,
    Assigning,
    Move,
    assigning,
    begin_moves,
    flags_of_sites,
    offers,
    rebalancing,
)
from camserver.store.leases import Want, take_all

log = get_logger(__name__)

# Leases taken in one transaction: small enough that it holds few rows for long.
TAKES_MAX = 64
# A camera that another process should have taken by then is given to a worker here. It counts from the first plan
# that meant it for that one: in a storm it may have waited long for its turn, and that was nobody's fault.
PATIENCE_MS = 5_000
# Differences of a shadow that are named in the log; the others are counted.
NAMED_MAX = 10


class Assigner:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        connections: Connections,
        leases: LeasePolicy,
        policy: AssignmentPolicy,
        interval_sec: float,
    ) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._leases = leases
        self._policy = policy
        self._interval_sec = interval_sec
        self._missed_ms = leases.missed_heartbeats * leases.heartbeat_sec * 1000
        self._waits_told: dict[str, int] = {}
        # By camera, of those that the last plan meant for others: when a plan first did.
        self._left_since_boot_ms: dict[int, int] = {}
        # (style in shadow, same or different): decisions since the start.
        self.shadow_counts: Counter[tuple[str, str]] = Counter()

    async def assign(self) -> None:
        """Gives free cameras to workers of their site, and begins the moves that people asked for."""
        here = self._present()
        if not here:
            return
        now_ms = self._clock.now_ms()
        found = await self._store.read(
            assigning, self._connections.site_ids(), now_ms - self._missed_ms, self._interval_sec, now_ms
        )
        if found is None:
            self._left_since_boot_ms = {}
            return
        found = self._as_seen_here(found, here)
        plan = self._plan(found)
        await self._take(found.snapshot, self._to_take(found, plan, here))
        await self._carry_out(found, plan, here)

    async def rebalance(self) -> None:
        """Moves a few cameras from workers that are much fuller than others of their site."""
        here = self._present()
        if not here:
            return
        now_ms = self._clock.now_ms()
        site_ids, seen_since = self._connections.site_ids(), now_ms - self._missed_ms
        workers = _overridden(await self._store.read(offers, site_ids, seen_since), here)
        flags = Assigning(Snapshot(now_ms, workers, ()), await self._store.read(flags_of_sites, site_ids))
        keys = lopsided(workers, self._policy, chosen_styles(flags))
        if not keys:
            return
        found = await self._store.read(rebalancing, site_ids, keys, seen_since, self._interval_sec, now_ms)
        found = self._as_seen_here(found, here)
        await self._carry_out(found, self._plan(found), here)

    def _present(self) -> dict[int, bool]:
        return self._connections.present(self._clock.boot_ms() - self._missed_ms)

    def _as_seen_here(self, found: Assigning, here: Mapping[int, bool]) -> Assigning:
        """A socket knows better than a row whether its worker is there."""
        return replace(found, snapshot=replace(found.snapshot, workers=_overridden(found.snapshot.workers, here)))

    def _plan(self, found: Assigning) -> Plan:
        return decide(found.snapshot, self._policy, chosen_styles(found))

    async def _carry_out(self, found: Assigning, plan: Plan, here: Mapping[int, bool]) -> None:
        """All of a plan but what it takes."""
        await self._move(found.snapshot, plan.of_kind(Kind.MOVE), here)
        self._tell_waits(plan)
        self._compare(found, plan)

    def _to_take(self, found: Assigning, plan: Plan, here: Mapping[int, bool]) -> list[Decision]:
        """What the plan means for workers here, and what was left to other processes for too long."""
        boot_ms, before = self._clock.boot_ms(), self._left_since_boot_ms
        takes = plan.of_kind(Kind.TAKE)
        mine = [one for one in takes if one.worker_key in here]
        since = {one.camera_key: before.get(one.camera_key, boot_ms) for one in takes if one.worker_key not in here}
        self._left_since_boot_ms = since
        late = tuple(
            need for need in found.snapshot.cameras if since.get(need.camera_key, boot_ms) <= boot_ms - PATIENCE_MS
        )
        return [*mine, *self._again(found, late, mine, here)] if late else mine

    def _again(
        self, found: Assigning, late: tuple[CameraNeed, ...], mine: Iterable[Decision], here: Mapping[int, bool]
    ) -> tuple[Decision, ...]:
        """Gives cameras that others did not take to workers here."""
        taken = Counter(one.worker_key for one in mine)
        workers = tuple(
            replace(offer, used=offer.used + taken[offer.worker_key])
            for offer in found.snapshot.workers
            if offer.worker_key in here
        )
        log.warning("cameras that another process did not take", count=len(late))
        again = replace(found, snapshot=replace(found.snapshot, workers=workers, cameras=late))
        return self._plan(again).of_kind(Kind.TAKE)

    async def _take(self, snapshot: Snapshot, decisions: list[Decision]) -> None:
        if not decisions:
            return
        needs = {need.camera_key: need for need in snapshot.cameras}
        reasons = {one.camera_key: one.reason for one in decisions}
        wants = [
            Want(one.camera_key, one.worker_key, one.expected_generation, needs[one.camera_key].load)
            for one in decisions
            if one.worker_key is not None
        ]
        for start in range(0, len(wants), TAKES_MAX):
            batch = tuple(wants[start : start + TAKES_MAX])
            figures.assign_attempts.inc(len(batch))
            leases = await self._store.write(take_all, batch, self._leases.ttl_sec * 1000, snapshot.now_ms)
            figures.assign_success.inc(len(leases))
            for lease in leases:
                log.info(
                    "assignment_decision",
                    tenant_id=lease.tenant_id,
                    site_id=lease.site_id,
                    worker_id=self._connections.name_of(lease.worker_key),
                    worker_key=lease.worker_key,
                    camera_id=lease.camera_id,
                    camera_key=lease.camera_key,
                    generation=lease.generation,
                    intent_id=lease.intent_id,
                    why=reasons[lease.camera_key].why.value,
                )
            if len(leases) < len(batch):
                log.info("some cameras were taken by others first", count=len(batch) - len(leases))

    async def _move(self, snapshot: Snapshot, decisions: Iterable[Decision], here: Mapping[int, bool]) -> None:
        holders = {need.camera_key: need.holder_key for need in snapshot.cameras}
        moves = tuple(
            Move(
                one.camera_key, holder_key, one.expected_generation, one.worker_key, f"moved: {one.reason.why.value}"
            )
            for one in decisions
            # Whoever has the holder's socket tells it to stop.
            if (holder_key := holders[one.camera_key]) in here
            and holder_key is not None
            and one.worker_key is not None
        )
        if not moves:
            return
        begun = await self._store.write(begin_moves, moves, snapshot.now_ms)
        figures.assign_moves.inc(len(begun))
        figures.reclaims.labels("soft").inc(len(begun))
        if begun:
            # STOP goes out at once.
            self._connections.wake.set()
        for move in begun:
            log.info(
                "assignment_move",
                camera_key=move.camera_key,
                worker_key=move.holder_key,
                target_worker_key=move.target_key,
                generation=move.generation,
                why=move.reason,
            )

    def _tell_waits(self, plan: Plan) -> None:
        """Once, not every second: whenever the numbers change."""
        waits = dict(Counter(one.reason.why.value for one in plan.of_kind(Kind.WAIT)))
        if waits != self._waits_told:
            log.info("assignment_waits", reasons=waits)
            self._waits_told = waits

    def _compare(self, found: Assigning, plan: Plan) -> None:
        """What a style in shadow would have done otherwise. It is logged and counted, and nothing else."""
        styles, shadows = chosen_styles(found), _styles(found, SHADOW_FLAG)
        sites = {site for site, style in shadows.items() if style is not styles.get(site, SPREAD)}
        if not sites:
            return
        other = decide(found.snapshot, self._policy, {**styles, **{site: shadows[site] for site in sites}})
        site_of = {need.camera_key: need.site for need in found.snapshot.cameras}
        named: list[dict[str, object]] = []
        counts: Counter[tuple[str, str]] = Counter()
        for ours, theirs in zip(plan.decisions, other.decisions, strict=True):
            site = site_of[ours.camera_key]
            if site not in sites:
                continue
            is_same = (ours.kind, ours.worker_key) == (theirs.kind, theirs.worker_key)
            counts[shadows[site].name, "same" if is_same else "different"] += 1
            if not is_same and len(named) < NAMED_MAX:
                named.append({"camera_key": ours.camera_key, "ours": ours.worker_key, "shadow": theirs.worker_key})
        self.shadow_counts += counts
        if named:
            log.info(
                "assignment_shadow",
                counts={f"{style} {what}": count for (style, what), count in sorted(counts.items())},
                totals={f"{style} {what}": count for (style, what), count in sorted(self.shadow_counts.items())},
                differences=named,
            )


def _overridden(workers: tuple[WorkerOffer, ...], here: Mapping[int, bool]) -> tuple[WorkerOffer, ...]:
    return tuple(
        replace(offer, is_present=here[offer.worker_key]) if offer.worker_key in here else offer for offer in workers
    )


def chosen_styles(found: Assigning) -> dict[Site, Style]:
    """The styles that cameras are given out by, where it is not the usual one."""
    return _styles(found, STYLE_FLAG)


def _styles(found: Assigning, name: str) -> dict[Site, Style]:
    """The sites that have a style set by a flag; a name that nobody knows counts as none."""
    sites = {offer.site for offer in found.snapshot.workers}
    chosen = {site: STYLES.get(found.flag(site, name) or "") for site in sites}
    return {site: style for site, style in chosen.items() if style is not None}
