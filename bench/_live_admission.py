"""Admission decisions a second, and the slowest of a hundred, with 16 clients at once on each database.

Every client asks to watch a camera and lets go again, as fast as it is answered; there is room for 12 of them, so
some are refused. On PostgreSQL and MariaDB they ask at the desks of two processes, each with connections of its own.
`bench/live.py` takes `admission_rows`; alone: `python -m bench._live_admission`.
"""

import asyncio
import time
from dataclasses import dataclass, field

import uvloop

from bench._databases import Database, database
from bench._queue_scene import percentile
from bench._report import QUICK, Row, figure, report, say
from camserver.domain.admission import AdmissionPolicy, Kind, Quality, used
from camserver.domain.people import Principal
from camserver.services.web.admission_desk import AdmissionDesk
from camserver.store import Store, open_store, streamers, viewings
from camserver.store.admissions import Admitted, Request, Wish
from tests.store.stage import NOW_MS
from tests.store.viewing_rows import furnish
from tests.store.viewing_rows import report as check_in

CLIENTS = 16
DECISIONS = 800 if QUICK else 8_000
CAMERAS = 40
ROOM = 12
POOL = 20
POLICY = AdmissionPolicy()
# Starting a server takes longer than all that is measured then.
DATABASES = ("SQLite",) if QUICK else ("SQLite", "PostgreSQL", "MariaDB")


@dataclass(slots=True)
class Tally:
    left: int = DECISIONS
    admitted: int = 0
    took_ms: list[float] = field(default_factory=list)
    units_most: int = 0


async def client(desk: AdmissionDesk, principal: Principal, number: int, tally: Tally) -> None:
    turn = 0
    while tally.left > 0:
        tally.left -= 1
        turn += 1
        wish = Wish(f"cam_{(number + turn) % CAMERAS}", Quality.SUB, plays=frozenset({"h264"}))
        started = time.perf_counter()
        answer = await desk.ask(Request(principal, wish, "192.0.2.1", NOW_MS))
        tally.took_ms.append((time.perf_counter() - started) * 1000)
        if isinstance(answer, Admitted):
            tally.admitted += 1
            await desk.store.as_(principal).write(viewings.release, answer.lease_id)


async def watch(store: Store, tally: Tally) -> None:
    """Looks now and then how much is in use; it must never be more than there is."""
    while tally.left > 0:
        [state] = await store.read(streamers.states, NOW_MS)
        tally.units_most = max(tally.units_most, used(state.held, Kind.MODAL))
        await asyncio.sleep(0.05)


async def measure(base: Database) -> list[Row]:
    reserved = POLICY.total_stream_units - POLICY.modal_budget()
    url = base.url("admission")
    stores = [await open_store(url, pool_size=POOL)]
    if base.server is not None:
        stores.append(await open_store(url, pool_size=POOL))
    store, tally = stores[0], Tally()
    try:
        house = await furnish(store, CLIENTS, CAMERAS, units=None)
        await store.write(streamers.check_in, check_in(units=reserved + ROOM), POLICY, NOW_MS)
        desks = [AdmissionDesk(one, POLICY) for one in stores]
        before = base.cpu()
        started = time.perf_counter()
        people = [
            client(desks[number % len(desks)], person, number, tally) for number, person in enumerate(house.people)
        ]
        await asyncio.gather(watch(store, tally), *people)
        took = time.perf_counter() - started
        cpu = base.cpu() - before
    finally:
        for one in stores:
            await one.close()
    if tally.units_most > ROOM:
        raise RuntimeError(f"{tally.units_most} units were in use of {ROOM}")
    done = len(tally.took_ms)
    say(
        f"  {base.name}: {done / took:,.0f} decisions/s, {tally.admitted} of {done} admitted, CPU a decision with "
        f"its release {cpu.client / done * 1000:.2f} ms + {cpu.server / done * 1000:.2f} ms of the database"
    )
    return [
        figure(f"{base.name}: admission decisions, {CLIENTS} clients", done / took, "decisions/s"),
        figure(f"{base.name}: p99 of a decision", percentile(tally.took_ms, 0.99), "ms"),
        figure(f"{base.name}: CPU of a decision and its release", cpu.total / done * 1000, "ms"),
    ]


def admission_rows() -> list[Row]:
    rows: list[Row] = []
    for name in DATABASES:
        with database(name) as base:
            rows += uvloop.run(measure(base))
    return rows


if __name__ == "__main__":
    report("live-admission", admission_rows())
