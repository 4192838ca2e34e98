"""A fleet suffers its troubles, two at a time, then is healed, put down in order, and judged."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field

from camserver.base.exits import Exit
from camserver.base.secrets import Secret
from camserver.store import open_store
from camserver.store.check import check
from tests.chaos.checker import Evidence, violations
from tests.chaos.company import PATIENCE_SEC
from tests.chaos.fleet import Fleet
from tests.chaos.records import fetch, longest_gaps
from tests.chaos.troubles import CONTROLS, LIES, SERVICES, SITES, WORKERS, Kind, Trouble
from tests.rig.polling import poll_async

LANES = 2
DELAY_SEC = 0.6
TEND_EVERY_SEC = 0.5
# What a lease, its reclaiming and a new start take is below half a minute, the longest trouble is 20 s, and two may
# meet; the rest is for slow machines.
GAP_MAX_MS = 180_000

Say = Callable[[str], None]
Handler = Callable[[Trouble], Awaitable[None]]


@dataclass(slots=True)
class Verdict:
    """What happened, and what is wrong."""

    troubles: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    frames: int = 0
    late: int = 0
    lost: int = 0
    jobs: int = 0
    events: int = 0
    leases: int = 0
    changes: int = 0
    came_back: int = 0
    gap_max_ms: dict[str, int] = field(default_factory=dict)  # by site
    violations: list[str] = field(default_factory=list)


class Suffering:
    def __init__(self, fleet: Fleet, say: Say) -> None:
        self.fleet = fleet
        self.verdict = Verdict()
        self._say = say
        self._locks = {group: asyncio.Lock() for group in ("worker", "control", "dispatcher", "web", "analyzer",
                                                            "database", "disk")}  # fmt: skip
        self._over = False
        self._handlers: Mapping[Kind, Handler] = {
            Kind.KILL: self._kill,
            Kind.STOP: self._stop,
            Kind.FREEZE: self._freeze,
            Kind.CUT: self._cut,
            Kind.SLOW: self._slow,
            Kind.FAR: self._far,
            Kind.DATABASE: self._database,
            Kind.FULL: self._full,
            Kind.CLOCK: self._clock,
            Kind.LIE: self._lie,
            Kind.FORGET: self._forget,
        }

    async def rage(self, planned: Iterator[Trouble], seconds: float) -> None:
        """All troubles that begin within so many seconds, two at a time."""
        deadline_sec = time.monotonic() + seconds
        self._over = False
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tend())
            lanes = [group.create_task(self._lane(planned, deadline_sec)) for _ in range(LANES)]
            await asyncio.gather(*lanes)
            self._over = True

    async def _tend(self) -> None:
        while not self._over:
            self.fleet.tend()
            await asyncio.sleep(TEND_EVERY_SEC)

    async def _lane(self, planned: Iterator[Trouble], deadline_sec: float) -> None:
        while time.monotonic() < deadline_sec:
            trouble = next(planned)
            async with self._locks[trouble.group]:
                self._say(f"{self.fleet.kind}: {trouble}")
                await self._handlers[trouble.kind](trouble)
                self.verdict.troubles[trouble.kind] += 1

    # Each from beginning to end ----------------------------------------------------------------------------------

    async def _kill(self, trouble: Trouble) -> None:
        fleet, name = self.fleet, trouble.target
        if name in fleet.analyzers:
            fleet.analyzers[name].kill()
            await asyncio.sleep(trouble.seconds)
            await fleet.analyzers[name].restart()
            return
        fleet.kill(name)
        if name in CONTROLS:
            fleet.lead_away_from(name)
        await asyncio.sleep(trouble.seconds)
        fleet.start(name)
        await self._is_back(name)

    async def _is_back(self, name: str) -> None:
        if name in CONTROLS:
            await self.fleet.until_ready(name)
            self.fleet.spread()

    async def _stop(self, trouble: Trouble) -> None:
        name = trouble.target
        if name in CONTROLS:
            self.fleet.lead_away_from(name)
        # Its database may be away at this very moment.
        await self.fleet.stop_one(name, *(() if name in WORKERS else (Exit.STORE_AWAY,)))
        await asyncio.sleep(trouble.seconds)
        self.fleet.start(name)
        await self._is_back(name)

    async def _freeze(self, trouble: Trouble) -> None:
        fleet, name = self.fleet, trouble.target
        fleet.freeze(name)
        if name in CONTROLS:
            fleet.lead_away_from(name)
        await asyncio.sleep(trouble.seconds)
        fleet.thaw(name)
        if name in CONTROLS:
            fleet.spread()

    async def _cut(self, trouble: Trouble) -> None:
        place = self.fleet.places[trouble.target]
        place.cut()
        try:
            await asyncio.sleep(trouble.seconds)
        finally:
            place.join()

    async def _slow(self, trouble: Trouble) -> None:
        net = self.fleet.nets[trouble.target]
        net.delay(DELAY_SEC)
        await asyncio.sleep(trouble.seconds)
        net.heal()

    async def _far(self, trouble: Trouble) -> None:
        net = self.fleet.database_nets[trouble.target]
        if trouble.held:
            net.hold()
        else:
            net.refuse()
            net.cut()
        await asyncio.sleep(trouble.seconds)
        net.heal()
        await net.accept()

    async def _database(self, trouble: Trouble) -> None:
        self.fleet.database.crash()
        await asyncio.sleep(trouble.seconds)
        await asyncio.to_thread(self.fleet.database.start)

    async def _full(self, trouble: Trouble) -> None:
        self.fleet.fill_disk()
        try:
            await asyncio.sleep(trouble.seconds)
        finally:
            self.fleet.empty_disk()

    async def _clock(self, trouble: Trouble) -> None:
        self.fleet.clocks.jump(trouble.target, trouble.jump_sec)
        await asyncio.sleep(trouble.seconds)
        self.fleet.clocks.jump(trouble.target, 0)

    async def _lie(self, trouble: Trouble) -> None:
        analyzer = self.fleet.analyzers[trouble.target]
        await analyzer.add_fault(LIES[trouble.lie])
        await asyncio.sleep(trouble.seconds)
        await analyzer.heal()

    async def _forget(self, trouble: Trouble) -> None:
        await self.fleet.analyzers[trouble.target].forget_vocabulary()

    # Peace -------------------------------------------------------------------------------------------------------

    async def calm(self) -> None:
        """Everything is whole: every camera is looked at, every look arrives, every job ends; then an orderly end."""
        fleet = self.fleet
        await fleet.until_looked()
        for worker in WORKERS:
            await fleet.drain(worker)
        await poll_async(self._no_unfinished_jobs, "end of every job", PATIENCE_SEC)
        await fleet.stop_reading()
        for name in SERVICES:
            await fleet.stop_one(name)

    async def _no_unfinished_jobs(self) -> bool:
        self.fleet.tend()
        return await self.fleet.unfinished_jobs() == 0

    async def judge(self) -> Verdict:
        """Compares what was promised with what is there. The fleet has been stopped."""
        fleet, verdict = self.fleet, self.verdict
        store = await open_store(fleet.url)
        try:
            records = await fetch(store, fleet.objects)
            findings = await check(store, Secret(fleet.url))
        finally:
            await store.close()
        fleet.ledger.catch_up()
        acknowledged, feed = fleet.ledger.acknowledged, fleet.feed
        seen = frozenset(feed.events_seen)
        verdict.violations += violations(Evidence(records, acknowledged, feed.notes, seen, fleet.worker_kills))
        verdict.violations += [f"camserver db check: {finding.message}" for finding in findings]
        verdict.violations += [f"a look was given up: {line}" for line in fleet.ledger.given_up]
        verdict.violations += [f"{one} set {name} aside" for one in WORKERS for name in fleet.set_aside(one)]
        verdict.violations += [f"a secret is in {name}" for name in fleet.leaked_secrets()]
        verdict.violations += fleet.tracebacks()
        gaps = longest_gaps(records)
        for site in SITES:
            verdict.gap_max_ms[site] = max(
                (gaps.get(name, GAP_MAX_MS + 1) for name in fleet.cameras[site]), default=0
            )
            if verdict.gap_max_ms[site] > GAP_MAX_MS:
                verdict.violations.append(f"a camera of {site} was not seen for {verdict.gap_max_ms[site]} ms")
        verdict.acknowledged = len({one.identity for one in acknowledged})
        verdict.frames, verdict.jobs, verdict.events = len(records.frames), len(records.jobs), len(records.events)
        verdict.late = sum(row["late"] for row in records.frames)
        verdict.lost = sum(row["last_seq"] - row["first_seq"] + 1 for row in records.gaps)
        verdict.leases, verdict.changes = len(records.leases), len(records.changes)
        verdict.came_back = fleet.came_back
        return verdict
