"""What people wait for: the wall, searches, facets, a day, a deep page, text; on each database, few rows and many.

5 million looks and 500,000 events of 200 cameras (`QUICK=1`: a tenth), the newest tenth first: what is asked of it is
asked again of all. The aims are a p95 in milliseconds, and that ten times the rows take no longer. That is judged by
CPU time, of this program and the database together: where other programs run, times of the clock tell of them. In
a quick run it is not judged: the fewer looks are of four hours, and questions about a day find more in more.

    BENCH_ARGS="SQLite" make bench-search    one of the databases, or several
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields

import uvloop

from bench import _search_fill as filling
from bench import _search_indexes
from bench._databases import Database, database
from bench._queue_scene import percentile
from bench._report import QUICK, Row, figure, less_is_better, report, say
from bench._search_fill import House
from camserver.domain.people import Principal, Role
from camserver.store import Store, cameras, event_search, open_store, timelines
from camserver.store.core import ScopedStore
from camserver.store.event_search import SearchFilter
from camserver.store.timelines import Span, TimelineFilter
from tests.store.scenery import NOW_MS

FEW, MANY = (50_000, 500_000) if QUICK else (500_000, 5_000_000)
DATABASE = "search"
NAMES = ("SQLite", "PostgreSQL", "MariaDB")
TIMES = 60 if QUICK else 200
HOUR_MS = 3_600_000
HOUR = NOW_MS // HOUR_MS * HOUR_MS
AIM_MS = 20.0
# MariaDB hands rows out slowly; its timeline may take longer.
AIMS_MS = {("MariaDB", "timeline"): 80.0}
# Ten times the rows may take half as long again: deeper indexes, colder caches, other programs.
FLAT_AIM = 0.66


@dataclass(frozen=True, slots=True)
class Question:
    """`kinds` are asked in turn, so that a figure is not that of one lucky query."""

    ask: Callable[[int], Awaitable[object]]  # by the number of its kind
    kinds: tuple[str, ...] = ("",)


def questions(mine: ScopedStore, deep: str) -> dict[str, Question]:
    chance = random.Random(5)

    def some_cameras(count: int) -> tuple[str, ...]:
        return tuple(f"cam_{chance.randrange(filling.CAMERAS)}" for _ in range(count))

    def search(*filters: SearchFilter, before: str | None = None) -> Question:
        return Question(
            lambda kind: mine.read(event_search.search, filters[kind], before, 50), tuple(map(_named, filters))
        )

    def facets(*filters: SearchFilter) -> Question:
        return Question(lambda kind: mine.read(event_search.facets, filters[kind]), tuple(map(_named, filters)))

    week = NOW_MS - 7 * 24 * HOUR_MS
    filters = (
        SearchFilter(camera_ids=some_cameras(1), tags=("carry.bag",), severity_min=2, from_ms=week),
        SearchFilter(tags=("count.single",)),
        SearchFilter(tags=(filling.RARE_TAG,)),
        SearchFilter(tags=("carry.bag", "top_color.red")),
        SearchFilter(camera_ids=some_cameras(10), primary_events=("human", "animal")),
        SearchFilter(severity_min=3),
        SearchFilter(severity_min=2, sites=("site-1",)),
        SearchFilter(unknown=True, from_ms=week),
        SearchFilter(primary_events=("hazard",)),
        SearchFilter(),
    )
    texts = (
        "トラック",
        "脚立",
        "赤い服 自転車",
        "red jacket",
        "stepladder",
        "DELIV",
        "赤いトラック",
        "nobody wrote it",
    )
    day = Span(HOUR - 23 * HOUR_MS, HOUR + HOUR_MS, 900_000)
    return {
        "latest pictures of 200 cameras": Question(lambda _: mine.read(cameras.page, "", filling.CAMERAS)),
        "filtered search": search(*filters),
        "facets": facets(*filters),
        "timeline": Question(lambda _: mine.read(timelines.read, TimelineFilter(), day, NOW_MS)),
        "deep page": search(SearchFilter(), SearchFilter(tags=("count.single",)), before=deep),
        "text": search(*(SearchFilter(text=text) for text in texts)),
        "looks of a camera": Question(
            lambda _: mine.read(timelines.looks, "cam_7", day.from_ms, day.to_ms, 60, NOW_MS)
        ),
    }


def _named(asked: SearchFilter) -> str:
    """What is asked for."""
    given = ((field.name, getattr(asked, field.name)) for field in fields(asked))
    return ", ".join(f"{name}={value}" for name, value in given if value) or "everything"


@dataclass(frozen=True, slots=True)
class Took:
    """Of one question."""

    p95_ms: float
    median_ms: float
    cpu_ms: float  # of this program and the database


async def measure(base: Database, store: Store, house: House, looks: int) -> dict[str, Took]:
    mine = store.as_(Principal(house.scene.tenant_id, 1, Role.TENANT_ADMIN))
    # Nine tenths into the past of what there is.
    deep = f"{NOW_MS - looks * 9 // 10 // filling.CAMERAS * filling.MINUTE_MS}.1"
    took: dict[str, Took] = {}
    for name, question in questions(mine, deep).items():
        count = len(question.kinds)
        for number in range(10):
            await question.ask(number % count)
        times = []
        before = base.cpu()
        for number in range(TIMES):
            started = time.perf_counter()
            await question.ask(number % count)
            times.append((time.perf_counter() - started) * 1000)
        cpu_ms = (base.cpu() - before).total / TIMES * 1000
        took[name] = Took(percentile(times, 0.95), percentile(times, 0.5), cpu_ms)
        if count > 1:
            each = sorted((percentile(times[kind::count], 0.5), question.kinds[kind]) for kind in range(count))
            dearest = "; ".join(f"{median:.1f} ms {kind}" for median, kind in each[-3:])
            say(f"  {base.name}, {looks:,} looks, {name}, medians of the dearest: {dearest}")
    return took


async def prepare(base: Database) -> tuple[Store, House]:
    store = await open_store(base.url(DATABASE), pool_size=4)
    house = await filling.build(store)
    return store, house


async def fill(base: Database, store: Store, house: House, first: int, last: int) -> None:
    started = time.perf_counter()
    await _search_indexes.drop(store, filling.FILLED)
    await filling.fill(store, house, first, last, random.Random(first))
    await _search_indexes.create(store, filling.FILLED)
    await asyncio.to_thread(settle, base)
    say(f"  {base.name}: {last:,} looks are there ({time.perf_counter() - started:.0f} s)")


def settle(base: Database) -> None:
    """What the servers do by themselves within minutes. SQLite is run without statistics."""
    if base.name == "PostgreSQL":
        base.asked("VACUUM (ANALYZE); CHECKPOINT", DATABASE)
    elif base.name == "MariaDB":
        base.asked(f"ANALYZE TABLE {', '.join(filling.FILLED)}", DATABASE)


async def main(names: tuple[str, ...]) -> None:
    rows: list[Row] = []
    with ExitStack() as stack:
        bases = {name: stack.enter_context(database(name)) for name in names}
        houses = {name: await prepare(base) for name, base in bases.items()}
        took: dict[tuple[str, int], dict[str, Took]] = {}
        for first, last in ((0, FEW), (FEW, MANY)):
            # Filling is the databases' work, side by side; measuring is done one after the other.
            await asyncio.gather(*(fill(bases[name], *house, first, last) for name, house in houses.items()))
            for name, (store, house) in houses.items():
                took[name, last] = await measure(bases[name], store, house, last)
        for store, _ in houses.values():
            await store.close()
    for name in names:
        few, many = took[name, FEW], took[name, MANY]
        for what, one in many.items():
            aim_ms = AIMS_MS.get((name, what), AIM_MS)
            label = f"{name}, {what}"
            rows.append(less_is_better(f"{label}, p95", one.p95_ms, aim_ms, "ms are the aim", "ms", 1.0))
            rows.append(figure(f"{label}, median", one.median_ms, "ms"))
            flat_aim = None if QUICK else FLAT_AIM
            flat = less_is_better(f"{label}, CPU", one.cpu_ms, few[what].cpu_ms, f"of {FEW:,}", "ms", flat_aim)
            rows.append(flat)
    rows.append(figure("looks in each database", MANY, "rows"))
    report("search", rows)


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or NAMES
    if unknown := set(chosen) - set(NAMES):
        raise SystemExit(f"there is no database {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    uvloop.run(main(chosen))
