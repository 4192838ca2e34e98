"""A storm over a house: rounds of kills and cuts, then peace, an orderly end, and the checker's verdict."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from camserver.base.errors import Unavailable
from camserver.base.secrets import Secret
from camserver.store import open_store
from camserver.store.check import check
from tests.chaos.checker import Evidence, violations
from tests.chaos.company import PATIENCE_SEC
from tests.chaos.house import House
from tests.chaos.plan import WORKERS, CutOff, Round
from tests.chaos.records import fetch
from tests.rig.polling import poll_async

Say = Callable[[str], None]


@dataclass(slots=True)
class Report:
    """What happened, and what is wrong."""

    rounds: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    cut_offs: int = 0
    takeovers: int = 0
    acknowledged: int = 0
    repeated: int = 0  # acknowledged again, because the worker was killed before it dropped the look
    frames: int = 0
    late: int = 0
    lost: int = 0
    jobs: int = 0
    events: int = 0
    changes: int = 0
    generations: int = 0
    came_back: int = 0
    violations: list[str] = field(default_factory=list)

    def summary(self) -> str:
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items()))
        return (
            f"{self.rounds} rounds ({kills}), {self.cut_offs} cut-offs, {self.generations} leases; "
            f"{self.acknowledged} looks acknowledged ({self.repeated} again), {self.frames} frames "
            f"({self.late} late), {self.jobs} jobs, {self.events} events, {self.changes} changes; "
            f"{self.lost} looks in flight lost, {self.came_back} restarts for want of a database; "
            f"{len(self.violations)} violations"
        )


class Storm:
    def __init__(self, house: House, say: Say) -> None:
        self.house = house
        self.report = Report()
        self._say = say
        self._cut: CutOff | None = None
        # What the worker held when it was cut off.
        self._awaited: frozenset[str] = frozenset()

    async def rage(self, rounds: Iterable[Round]) -> None:
        for one in rounds:
            self._say(f"{self.house.kind}: {one}")
            await self._round(one)
            self.report.rounds += 1

    async def _round(self, one: Round) -> None:
        house = self.house
        await self._looks(one.after_looks)
        if self._taken_over():
            await self._end_cut_off()
        if one.cut_off is not None and self._cut is None:
            self._begin_cut_off(one.cut_off)
        if one.snap is not None and (self._cut is None or self._cut.worker != one.snap.worker):
            house.nets[one.snap.worker].cut_after(one.snap.after_bytes, one.snap.way)
        # Not waiting for anything: the kill shall fall at any moment between two looks.
        await asyncio.sleep(one.settle_sec)
        house.kill(one.kill)
        self.report.kills[one.kill] += 1
        if one.stop is not None:
            if one.stop in house.running:
                await house.stop_one(one.stop)
            house.start(one.stop)
        await asyncio.sleep(one.away_sec)
        await house.revive(one.kill)

    async def _looks(self, more: int) -> None:
        wanted = self.house.ledger.catch_up() + more
        what = f"{more} more acknowledged looks (of {wanted})"
        await self.house.until(lambda: self.house.ledger.catch_up() >= wanted, what)

    def _begin_cut_off(self, cut: CutOff) -> None:
        if not self.house.ledger.held_by(cut.worker):
            # It stopped lately and the other one has all cameras.
            cut = replace(cut, worker=next(worker for worker in WORKERS if worker != cut.worker))
        self._cut = cut
        self._awaited = self.house.ledger.held_by(cut.worker)
        self.house.cut_off(cut.worker, cut.loss)
        self.report.cut_offs += 1

    def _taken_over(self) -> bool:
        """Whether the other worker was acknowledged for a camera of the one that is cut off."""
        return self._cut is not None and not self._awaited <= self.house.ledger.held_by(self._cut.worker)

    def _catch_up_and_see(self) -> bool:
        self.house.ledger.catch_up()
        return self._taken_over()

    async def _end_cut_off(self) -> None:
        assert self._cut is not None
        cut, self._cut = self._cut, None
        await self.house.heal(cut.worker, cut.loss)
        self.report.takeovers += 1

    async def calm(self) -> None:
        """Heals everything, lets all looks and jobs through, and stops every process in order."""
        house = self.house
        if self._cut is not None:
            await house.until(self._catch_up_and_see, "somebody takes the cameras of the worker that is cut off")
            await self._end_cut_off()
        await self._looks(1)
        for worker in WORKERS:
            await house.drain(worker)
        await poll_async(self._no_unfinished_jobs, "end of every job", PATIENCE_SEC)
        await house.stop_reading()
        for name in list(house.running):
            await house.stop_one(name)

    async def _no_unfinished_jobs(self) -> bool:
        self.house.tend()
        try:
            return await self.house.unfinished_jobs() == 0
        except Unavailable:
            return False  # web was killed last, and is starting

    async def judge(self) -> Report:
        """Compares what was promised with what is there. The house has been stopped."""
        house, report = self.house, self.report
        store = await open_store(house.url)
        try:
            records = await fetch(store, house.objects)
            findings = await check(store, Secret(house.url))
        finally:
            await store.close()
        house.ledger.catch_up()
        assert house.feed is not None
        evidence = Evidence(
            records,
            house.ledger.acknowledged,
            house.feed.notes,
            frozenset(house.feed.events_seen),
            house.worker_kills,
        )
        report.violations += violations(evidence)
        report.violations += [f"camserver db check: {finding.message}" for finding in findings]
        report.violations += [f"a look was given up: {line}" for line in house.ledger.given_up]
        report.violations += [f"{worker} set {name} aside" for worker in WORKERS for name in house.set_aside(worker)]
        report.violations += [f"a secret is in {name}" for name in house.leaked_secrets()]
        report.violations += house.tracebacks()
        report.acknowledged = len({one.identity for one in house.ledger.acknowledged})
        report.repeated = len(house.ledger.acknowledged) - report.acknowledged
        report.frames, report.jobs = len(records.frames), len(records.jobs)
        report.late = sum(row["late"] for row in records.frames)
        report.lost = sum(row["last_seq"] - row["first_seq"] + 1 for row in records.gaps)
        report.events, report.changes = len(records.events), len(records.changes)
        report.generations, report.came_back = len(records.leases), house.came_back
        return report
