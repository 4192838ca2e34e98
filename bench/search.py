"""What people wait for: the wall, searches, facets, a day, a deep page, text; on each database, few rows and many.

5 million looks and 500,000 events of 200 cameras (`QUICK=1`: a tenth), the newest tenth first: what is asked of it is
asked again of all. The aims are a p95 in milliseconds, and that ten times the rows take no longer. That is judged by
CPU time, of this program and the database together: where other programs run, times of the clock tell of them. In
a quick run it is not judged: the fewer looks are of four hours, and questions about a day find more in more.

Nor is it judged by kinds of a question that find more in more: a rare word is in five memos of the fewer and fills
a page of all, which takes longer because ten times as much is answered. Judged are the kinds that found a whole page,
or nothing, in the fewer, and as much in all; what all kinds took is told beside it.

    BENCH_ARGS="SQLite" make bench-search    one of the databases, or several
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields
from typing import Any

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
PAGE = 50
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
    found: Callable[[Any], int] | None = None  # how much of an answer was found, where kinds may find more in more
    whole: int = 0  # that much is all that is answered


def questions(mine: ScopedStore, deep: str) -> dict[str, Question]:
    chance = random.Random(5)

    def some_cameras(count: int) -> tuple[str, ...]:
        return tuple(f"cam_{chance.randrange(filling.CAMERAS)}" for _ in range(count))

    def search(*filters: SearchFilter, before: str | None = None) -> Question:
        return Question(
            lambda kind: mine.read(event_search.search, filters[kind], before, PAGE),
            tuple(map(_named, filters)),
            lambda page: len(page.found),
            PAGE,
        )

    def facets(*filters: SearchFilter) -> Question:
        return Question(
            lambda kind: mine.read(event_search.facets, filters[kind]),
            tuple(map(_named, filters)),
            lambda answer: answer.counted,
            event_search.FACETS_MAX,
        )

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
        # A long one, and two that are frequent but never together.
        "白いトラック 傘をさした人物 配達員",
        "自転車 umbrella",
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
    found: tuple[int, ...]  # by kind
    judged: tuple[int, ...]  # the kinds that are compared with those of other looks
    judged_cpu_ms: float


async def measure(
    base: Database, store: Store, house: House, looks: int, few: dict[str, Took] | None
) -> dict[str, Took]:
    """With `few`, what the same took of fewer looks, the same kinds are judged."""
    mine = store.as_(Principal(house.scene.tenant_id, 1, Role.TENANT_ADMIN))
    # Nine tenths into the past of what there is.
    deep = f"{NOW_MS - looks * 9 // 10 // filling.CAMERAS * filling.MINUTE_MS}.1"
    took: dict[str, Took] = {}
    for name, question in questions(mine, deep).items():
        count = len(question.kinds)
        found = tuple([_found(question, await question.ask(kind)) for kind in range(count)])
        for number in range(10):
            await question.ask(number % count)
        judged = tuple(range(count)) if few is None else few[name].judged
        if few is None and question.found is not None:
            judged = tuple(kind for kind in judged if found[kind] in (0, question.whole))
        times, cpu_ms = await _asked(base, question, tuple(range(count)))
        judged_cpu_ms = cpu_ms if len(judged) == count else (await _asked(base, question, judged))[1]
        took[name] = Took(percentile(times, 0.95), percentile(times, 0.5), cpu_ms, found, judged, judged_cpu_ms)
        if len(judged) < count:
            others = (f"{found[kind]} {question.kinds[kind]}" for kind in range(count) if kind not in judged)
            say(f"  {base.name}, {looks:,} looks, {name}, found by kinds that are not judged: {'; '.join(others)}")
        if count > 1:
            each = sorted((percentile(times[kind::count], 0.5), question.kinds[kind]) for kind in range(count))
            dearest = "; ".join(f"{median:.1f} ms {kind}" for median, kind in each[-3:])
            say(f"  {base.name}, {looks:,} looks, {name}, medians of the dearest: {dearest}")
    return took


def _found(question: Question, answer: object) -> int:
    return 0 if question.found is None else question.found(answer)


async def _asked(base: Database, question: Question, kinds: tuple[int, ...]) -> tuple[list[float], float]:
    """How long each took, and the CPU of one, in ms; the kinds in turn."""
    times = []
    before = base.cpu()
    for number in range(TIMES):
        started = time.perf_counter()
        await question.ask(kinds[number % len(kinds)])
        times.append((time.perf_counter() - started) * 1000)
    return times, (base.cpu() - before).total / TIMES * 1000


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
                took[name, last] = await measure(bases[name], store, house, last, took.get((name, FEW)))
        for store, _ in houses.values():
            await store.close()
    for name in names:
        few, many = took[name, FEW], took[name, MANY]
        for what, one in many.items():
            aim_ms = AIMS_MS.get((name, what), AIM_MS)
            label = f"{name}, {what}"
            rows.append(less_is_better(f"{label}, p95", one.p95_ms, aim_ms, "ms are the aim", "ms", 1.0))
            rows.append(figure(f"{label}, median", one.median_ms, "ms"))
            is_alike = all(one.found[kind] == few[what].found[kind] for kind in one.judged)
            if not is_alike:
                say(f"  {label} can't be judged: found {few[what].found} of {FEW:,} looks, {one.found} of {MANY:,}")
            flat_aim = FLAT_AIM if is_alike and not QUICK else None
            of_few = f"of {FEW:,}"
            rows.append(
                less_is_better(f"{label}, CPU", one.judged_cpu_ms, few[what].judged_cpu_ms, of_few, "ms", flat_aim)
            )
            if len(one.judged) < len(one.found):
                rows.append(
                    less_is_better(
                        f"{label}, CPU with kinds that find more", one.cpu_ms, few[what].cpu_ms, of_few, "ms"
                    )
                )
    rows.append(figure("looks in each database", MANY, "rows"))
    report("search", rows)


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or NAMES
    if unknown := set(chosen) - set(NAMES):
        raise SystemExit(f"there is no database {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    uvloop.run(main(chosen))
