"""Reads in the event loop's own thread: only short ones, whatever is asked for."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from camserver.store.opening import open_store
from camserver.store.sqlite_short_reads import AWAY_MAX_SEC, AWAY_SEC, SHORT_SEC, ShortReads, TooLong
from camserver.store.tx import Tx

# Some tenths of a second, so that it is over long before a test's own time is.
_LONG = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT COUNT(*) AS c FROM n"
)


class Clock:
    """Each look at it takes `step_sec`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.step_sec = 0.0

    def __call__(self) -> float:
        self.now += self.step_sec
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reads(tmp_path: Path, clock: Clock) -> Iterator[ShortReads]:
    made = ShortReads(str(tmp_path / "a.db"), clock=clock)
    yield made
    made.close()


async def where(tx: Tx) -> int:
    row = await tx.one("SELECT 1 AS one")
    assert row is not None
    return threading.get_ident() if row["one"] == 1 else 0


async def count_long(tx: Tx) -> tuple[int, int]:
    row = await tx.one(_LONG)
    assert row is not None
    return row["c"], threading.get_ident()


async def wrong(tx: Tx) -> None:
    await tx.one("SELECT 1 FROM nowhere")


async def test_a_long_read_is_given_up_and_made_by_a_thread(tmp_path: Path) -> None:
    store = await open_store(f"sqlite:///{tmp_path}/a.db")
    try:
        count, thread = await store.read(count_long)
        assert count == 2_000_000
        assert thread != threading.get_ident()
        # Others are none the worse for it.
        assert await store.read(where) == threading.get_ident()
    finally:
        await store.close()


async def test_a_kind_that_was_given_up_is_away_for_longer_each_time(reads: ShortReads, clock: Clock) -> None:
    away_sec = AWAY_SEC
    while away_sec <= AWAY_MAX_SEC * 2:
        clock.step_sec = SHORT_SEC
        with pytest.raises(TooLong):
            reads.run("kind", count_long, (), {})
        clock.step_sec = 0.0
        await asyncio.sleep(0)  # the turn ends
        clock.now += min(away_sec, AWAY_MAX_SEC) - 2 * SHORT_SEC
        with pytest.raises(TooLong):
            reads.run("kind", where, (), {})
        assert reads.run("another kind", where, (), {})
        clock.now += 2 * SHORT_SEC
        away_sec *= 2
    assert reads.run("kind", where, (), {})


async def test_one_that_was_short_again_begins_anew(reads: ShortReads, clock: Clock) -> None:
    for _ in range(3):
        clock.step_sec = SHORT_SEC
        with pytest.raises(TooLong):
            reads.run("kind", count_long, (), {})
        clock.step_sec = 0.0
        await asyncio.sleep(0)
        # Had it been twice as long each time, it would still be away.
        clock.now += AWAY_SEC
        assert reads.run("kind", where, (), {})


async def test_reading_without_a_pause_does_not_keep_the_loop(reads: ShortReads, clock: Clock) -> None:
    clock.step_sec = SHORT_SEC / 4
    for _ in range(5):
        reads.run("kind", where, (), {})
    with pytest.raises(TooLong):
        reads.run("another kind", where, (), {})
    await asyncio.sleep(0)
    assert reads.run("kind", where, (), {})


async def test_what_is_wrong_with_a_statement_is_told(reads: ShortReads) -> None:
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        reads.run("kind", wrong, (), {})


def test_another_loops_reads_are_not_made_here(reads: ShortReads) -> None:
    async def read() -> int:
        return reads.run("kind", where, (), {})

    assert asyncio.run(read())
    with pytest.raises(TooLong):
        asyncio.run(read())
