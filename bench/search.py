"""What people wait for: the wall, searches, facets, a day, a deep page, text; on each database, few rows and many.

5 million looks and 500,000 events of 200 cameras (`QUICK=1`: a tenth), and the newest tenth of them in another
database of the same server. The aims are a p95 in milliseconds, and that ten times the rows take no longer. That is
judged by CPU time, of this program and the database together: where other programs run, times of the clock tell of
them. Few and many are asked in turns, so that what else the machine does falls on both; what counts is the middle one
of the turns' ratios. In a quick run it is not judged: the fewer looks are of four hours, and questions about a day
find more in more.

Nor is it judged by kinds of a question that find more in more: a rare word is in five memos of the fewer and fills
a page of all, which takes longer because ten times as much is answered. Judged are the kinds that found a whole page,
or nothing, in the fewer, and as much in all; what all kinds took is told beside it. Two frequent words that are never
together are asked for apart: every text with the rarer one is compared, up to a bound that only all looks come near,
so their ratio is told without an aim.

    BENCH_ARGS="SQLite" make bench-search    one of the databases, or several
"""

import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from itertools import chain
from math import ceil
from typing import Any, NamedTuple

import uvloop

from bench import _search_fill as filling
from bench import _search_indexes
from bench._databases import Database, database
from bench._queue_scene import percentile
from bench._report import QUICK, Row, figure, less_is_better, report, say
from bench._search_fill import House
from camserver.domain.people import Principal, Role
from camserver.store import Store, cameras, event_search, hourly_stats, open_store, timelines
from camserver.store.core import ScopedStore
from camserver.store.event_search import SearchFilter
from camserver.store.paging import Listed, make_cursor
from camserver.store.timelines import Span, TimelineFilter
from tests.store.scenery import NOW_MS

FEW, MANY = (50_000, 500_000) if QUICK else (500_000, 5_000_000)
NAMES = ("SQLite", "PostgreSQL", "MariaDB")
TIMES = 60 if QUICK else 200
# CPU is told in hundredths of a second: a turn takes many of them.
TURNS, TURN_SEC = (1, 0.1) if QUICK else (9, 0.2)
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
    is_flat: bool = True  # whether many looks must not take longer than few

    def is_alike(self, few: int, many: int) -> bool:
        """Whether as much is answered of many looks as of few."""
        return self.found is None or (few == many and few in (0, self.whole))


def questions(store: Store, mine: ScopedStore, deep: str) -> dict[str, Question]:
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
        "白いトラック 傘をさした人物 配達員",
    )
    day = Span(HOUR - 23 * HOUR_MS, HOUR + HOUR_MS, 900_000)

    async def timeline() -> object:
        counted_to_ms = await store.read(hourly_stats.counted_to, NOW_MS)
        return await mine.read(timelines.read, TimelineFilter(), day, counted_to_ms, NOW_MS)

    async def looks() -> object:
        counted_to_ms = await store.read(hourly_stats.counted_to, NOW_MS)
        return await mine.read(timelines.looks, "cam_7", day.from_ms, day.to_ms, 60, counted_to_ms, NOW_MS)

    return {
        "latest pictures of 200 cameras": Question(lambda _: mine.read(cameras.page, "", filling.CAMERAS)),
        "filtered search": search(*filters),
        "facets": facets(*filters),
        "timeline": Question(lambda _: timeline()),
        "deep page": search(SearchFilter(), SearchFilter(tags=("count.single",)), before=deep),
        "text": search(*(SearchFilter(text=text) for text in texts)),
        "two words never together": replace(search(SearchFilter(text="自転車 umbrella")), is_flat=False),
        "looks of a camera": Question(lambda _: looks()),
    }


def _named(asked: SearchFilter) -> str:
    """What is asked for."""
    given = ((field.name, getattr(asked, field.name)) for field in fields(asked))
    return ", ".join(f"{name}={value}" for name, value in given if value) or "everything"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two databases on a server."""

    looks: int
    database: str
    store: Store
    house: House

    def questions(self) -> dict[str, Question]:
        mine = self.store.as_(Principal(self.house.scene.tenant_id, 1, Role.TENANT_ADMIN))
        # Nine tenths into the past of what there is.
        deep_at = NOW_MS - self.looks * 9 // 10 // filling.CAMERAS * filling.MINUTE_MS
        return questions(self.store, mine, make_cursor(Listed.EVENTS, deep_at, 1))


class Cpu(NamedTuple):
    """Milliseconds of one question, of this program and the database."""

    few: float
    many: float


@dataclass(frozen=True, slots=True)
class Took:
    """Of one question."""

    p95_ms: float
    median_ms: float
    cpu: Cpu  # of all kinds
    judged: Cpu | None  # of the kinds that are judged, if there are
    flat_aim: float | None


async def measure(base: Database, few: Side, many: Side) -> dict[str, Took]:
    took: dict[str, Took] = {}
    asked_of_few = few.questions()
    for name, question in many.questions().items():
        label = f"{base.name}, {name}"
        pair = asked_of_few[name], question
        count = len(question.kinds)
        kinds = tuple(range(count))
        found_few, found = [[_found(one, await one.ask(kind)) for kind in kinds] for one in pair]
        judged = tuple(kind for kind in kinds if question.is_alike(found_few[kind], found[kind]))
        if len(judged) < count:
            others = (f"{found_few[kind]}, {found[kind]} {question.kinds[kind]}" for kind in set(kinds) - set(judged))
            say(f"  {label}, found in few and in many by kinds that are not judged: {'; '.join(others)}")
        await _asked(question, kinds, TIMES // 10)
        times = await _asked(question, kinds, TIMES)
        if count > 1:
            each = sorted((percentile(times[kind::count], 0.5), question.kinds[kind]) for kind in kinds)
            say(f"  {label}, medians of the dearest: {'; '.join(f'{ms:.1f} ms {kind}' for ms, kind in each[-3:])}")
        cpu = await in_turns(base, pair, kinds)
        judged_cpu = cpu if judged == kinds else await in_turns(base, pair, judged) if judged else None
        flat_aim = FLAT_AIM if question.is_flat and not QUICK else None
        took[name] = Took(percentile(times, 0.95), percentile(times, 0.5), cpu, judged_cpu, flat_aim)
    return took


def _found(question: Question, answer: object) -> int:
    return 0 if question.found is None else question.found(answer)


async def in_turns(base: Database, pair: tuple[Question, Question], kinds: tuple[int, ...]) -> Cpu:
    """Of the turn whose ratio is the middle one."""
    started = time.perf_counter()
    for question in pair:
        await _asked(question, kinds, len(kinds))
    count = len(kinds) * ceil(2 * TURN_SEC / (time.perf_counter() - started))
    turns: list[Cpu] = []
    for _ in range(TURNS):
        before = base.cpu().total
        await _asked(pair[0], kinds, count)
        between = base.cpu().total
        await _asked(pair[1], kinds, count)
        turns.append(Cpu((between - before) / count * 1000, (base.cpu().total - between) / count * 1000))
    return sorted(turns, key=lambda turn: turn.many / max(turn.few, 0.001))[TURNS // 2]


async def _asked(question: Question, kinds: tuple[int, ...], times: int) -> list[float]:
    """How long each took, in ms; the kinds in turn."""
    took = []
    for number in range(times):
        started = time.perf_counter()
        await question.ask(kinds[number % len(kinds)])
        took.append((time.perf_counter() - started) * 1000)
    return took


async def prepare(base: Database, looks: int, database: str) -> Side:
    store = await open_store(base.url(database), pool_size=4)
    return Side(looks, database, store, await filling.build(store))


async def fill(base: Database, *sides: Side) -> None:
    for side in sides:
        started = time.perf_counter()
        await _search_indexes.drop(side.store, filling.FILLED)
        await filling.fill(side.store, side.house, 0, side.looks, random.Random(0))
        await _search_indexes.create(side.store, filling.FILLED)
        await asyncio.to_thread(settle, base, side.database)
        say(f"  {base.name}: {side.looks:,} looks are there ({time.perf_counter() - started:.0f} s)")


def settle(base: Database, database: str) -> None:
    """What the servers do by themselves within minutes. SQLite is run without statistics."""
    if base.name == "PostgreSQL":
        base.asked("VACUUM (ANALYZE); CHECKPOINT", database)
    elif base.name == "MariaDB":
        base.asked(f"ANALYZE TABLE {', '.join(filling.FILLED)}", database)


async def main(names: tuple[str, ...]) -> None:
    rows: list[Row] = []
    with ExitStack() as stack:
        bases = {name: stack.enter_context(database(name)) for name in names}
        sides = {
            name: (await prepare(base, FEW, "search_few"), await prepare(base, MANY, "search"))
            for name, base in bases.items()
        }
        # Filling is the databases' work, side by side; measuring is done one after the other.
        await asyncio.gather(*(fill(base, *sides[name]) for name, base in bases.items()))
        for name, base in bases.items():
            for what, took in (await measure(base, *sides[name])).items():
                rows += rows_of(name, what, took)
        for side in chain.from_iterable(sides.values()):
            await side.store.close()
    rows.append(figure("looks in each database", MANY, "rows"))
    report("search", rows)


def rows_of(base: str, what: str, took: Took) -> list[Row]:
    label, of_few = f"{base}, {what}", f"of {FEW:,}"
    aim_ms = AIMS_MS.get((base, what), AIM_MS)
    rows = [
        less_is_better(f"{label}, p95", took.p95_ms, aim_ms, "ms are the aim", "ms", 1.0),
        figure(f"{label}, median", took.median_ms, "ms"),
    ]
    if took.judged is not None:
        few, many = took.judged
        rows.append(less_is_better(f"{label}, CPU", many, few, of_few, "ms", took.flat_aim))
    if took.judged != took.cpu:
        few, many = took.cpu
        rows.append(less_is_better(f"{label}, CPU with kinds that find more", many, few, of_few, "ms"))
    return rows


if __name__ == "__main__":
    chosen = tuple(sys.argv[1:]) or NAMES
    if unknown := set(chosen) - set(NAMES):
        raise SystemExit(f"there is no database {', '.join(sorted(unknown))}; there are: {', '.join(NAMES)}")
    uvloop.run(main(chosen))
