"""What was answered and is not in the journal yet: a killed process leaves it aside for the next one."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.base.clock import StoreClock
from camserver.base.errors import StoreUnavailable
from camserver.config import load
from camserver.domain.scoring import ResultState, Source
from camserver.objects.local import LocalObjects
from camserver.services.scoring import service, spool
from camserver.services.scoring.journal import Journal
from camserver.services.scoring.spool import Spool, left_by, sweep
from camserver.store import Store, Tx, open_store, scoring_journal
from camserver.store.scoring_journal import Entry, Kept, Result, Settled, Spent
from camserver.store.scoring_runs import Run
from tests.rig.templates import SqliteTemplate
from tests.services.scoring.list_sheet import FIRST, ListSheet
from tests.services.scoring.stage import Stage

NOW_MS = 1_800_000_000_000
RUN = "0198c0de-0000-7000-8000-000000000001"


def entry(row: int, scores: tuple[float, ...] | None = (0.25, 0.5), calls: int = 1) -> Entry:
    result = Result(
        1, row, 0, f"{row:032}", scores, f"{row:064}", "small", Source.CALL, None if scores else "of no use"
    )
    kept = () if scores is None else (Kept(result.question_key, scores, "small"),)
    return Entry((result,), kept, Spent(calls, 0, 0, 0, 200, 40, 280))


def killed(one: Spool) -> None:
    """What the system does with a process that is killed."""
    os.close(one._held._lock)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "aside"


def test_what_a_killed_process_leaves_is_found_whole(folder: Path) -> None:
    assert left_by(folder, RUN) == []
    one = Spool(folder, RUN, "a")
    told = [entry(1), entry(2, None), Entry((), (), Spent(calls=3))]
    for each in told:
        one.add([each])
    assert left_by(folder, RUN) == [], "it is at work"
    killed(one)
    assert left_by(folder, "another run") == []
    assert left_by(folder, RUN) == told
    assert isinstance(left_by(folder, RUN)[0].results[0].source, Source)
    sweep(folder, RUN, NOW_MS)
    assert list(folder.iterdir()) == []


def test_a_line_that_was_cut_off_harms_no_other(folder: Path) -> None:
    one = Spool(folder, RUN, "a")
    one.add([entry(1)])
    with next(folder.glob("*/answers")).open("ab") as file:
        file.write(b'[[[1,2,0,"x",[0.1\n["odd"]\n{}\nnull\n')
    one.add([entry(2)])
    killed(one)
    assert left_by(folder, RUN) == [entry(1), entry(2)]


def test_what_is_durable_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "SIZE_MAX", 600)
    one = Spool(folder, RUN, "a")
    one.add([entry(1), entry(2)])
    one.settled([entry(2)])
    assert (folder / f"{RUN}.a" / "answers").read_bytes().count(b"\n") == 2, "little of it stays a while"
    one.add([entry(3), entry(4)])
    one.settled([entry(4)])
    one.add([entry(5)])
    killed(one)
    assert left_by(folder, RUN) == [entry(4), entry(5)]


def test_nothing_is_left_in_the_end(folder: Path) -> None:
    one = Spool(folder, RUN, "a")
    one.add([entry(1)])
    one.settled([])
    one.settled([])
    assert (folder / f"{RUN}.a" / "answers").read_bytes() == b""
    one.close()
    assert list(folder.iterdir()) == []


def test_a_full_disk_is_the_journals_matter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Spool(folder, RUN, "a")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        one.add([entry(1)])
    one.add([entry(2)])
    one.settled([])
    one.close()


def test_what_nobody_goes_on_with_is_removed_after_a_month(folder: Path) -> None:
    kept, old = Spool(folder, RUN, "a"), Spool(folder, "of long ago", "b")
    alive = Spool(folder, "of long ago", "c")
    for one in (kept, old):
        killed(one)
    for name, days in ((f"{RUN}.a", 29), ("of long ago.b", 31), ("of long ago.c", 31)):
        at_sec = NOW_MS / 1000 - days * 86_400
        os.utime(folder / name, (at_sec, at_sec))
    sweep(folder, "this run", NOW_MS)
    assert sorted(path.name for path in folder.iterdir()) == [f"{RUN}.a", "of long ago.c"]
    alive.close()


# ---------------------------------------------------------------------------------------------------------------
# The journal
# ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def store(sqlite_template: SqliteTemplate) -> AsyncIterator[Store]:
    url = sqlite_template.fresh()
    opened = await open_store(url)
    yield opened
    await opened.close()
    sqlite_template.discard(url)


class Away:
    """The store, while nothing can be written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read(self, *args: object) -> object:
        return await self._store.read(*args)  # type: ignore[arg-type]

    async def write(self, *args: object) -> object:
        raise StoreUnavailable("it is away")


async def begun(stage: Stage) -> Run:
    return await stage.begin(ListSheet.of([f"text {number}" for number in range(20)]))


async def states(store: Store, run: Run) -> dict[int, ResultState]:
    known = await store.read(scoring_journal.of_chunk, run.run_id, FIRST, FIRST + 100)
    return {row: state for (row, _, _), state in known.items()}


async def test_the_next_process_writes_what_the_killed_one_was_about_to(store: Store, folder: Path) -> None:
    stage = Stage(store, "http://127.0.0.1:9")
    run = await begun(stage)
    first = Journal(Away(store), StoreClock(), run, "a", folder)  # type: ignore[arg-type]
    await first.begin()
    for row in (FIRST, FIRST + 1):
        first.put(entry(row), lambda: None)
    first.put(Entry(entry(FIRST + 2).results, (), Spent(cache_hits=1)), lambda: None)
    assert first._writing is not None
    first._writing.cancel()
    await asyncio.wait([first._writing])
    assert first._spool is not None
    killed(first._spool)

    second = Journal(store, StoreClock(), run, "b", folder)
    await second.begin()
    # What cost nothing is found again for nothing.
    assert await states(store, run) == {FIRST: ResultState.SCORED, FIRST + 1: ResultState.SCORED}
    held = await store.read(scoring_journal.find_kept, run.tenant_id, [f"{FIRST:064}", f"{FIRST + 1:064}"], 0)
    assert {one.scores for one in held.values()} == {(0.25, 0.5)}
    after = await stage.run(run.run_id)
    assert (after.calls, after.cost_micro, after.tokens_in) == (2, 560, 400)
    await second.close()
    assert left_by(folder, run.run_uuid) == []


async def test_what_is_durable_is_not_counted_twice(store: Store, folder: Path) -> None:
    stage = Stage(store, "http://127.0.0.1:9")
    run = await begun(stage)
    for row in range(FIRST, FIRST + 4):
        one = entry(row, None if row == FIRST + 2 else (0.25, 0.5))
        await store.write(scoring_journal.record, run.run_id, run.tenant_id, *one, NOW_MS)
    settled = Settled(FIRST + 1, 0, f"{FIRST + 1:032}", ResultState.WRITTEN)
    await store.write(scoring_journal.settle, run.run_id, (settled,), False, NOW_MS)
    left = Spool(folder, run.run_uuid, "a")
    left.add(entry(row) for row in range(FIRST, FIRST + 3))  # the third had failed, and was asked again
    left.add([entry(FIRST + 4, None)])
    killed(left)
    for token in ("b", "c"):
        journal = Journal(store, StoreClock(), run, token, folder)
        await journal.begin()
        await journal.close()
    assert await states(store, run) == {
        FIRST: ResultState.SCORED,
        FIRST + 1: ResultState.WRITTEN,
        FIRST + 2: ResultState.SCORED,
        FIRST + 3: ResultState.SCORED,
        FIRST + 4: ResultState.FAILED,
    }
    assert (await stage.run(run.run_id)).calls == 6


async def test_without_a_folder_to_write_in_it_is_worked_all_the_same(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    run = await begun(Stage(store, "http://127.0.0.1:9"))
    journal = Journal(store, StoreClock(), run, "a", tmp_path / "file" / "aside")
    await journal.begin()
    journal.put(entry(FIRST), lambda: None)
    await journal.close()
    assert await states(store, run) == {FIRST: ResultState.SCORED}


async def test_what_is_left_of_a_run_goes_with_the_run(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FORGET_EVERY_SEC", 0)
    settings = load(None, {}, tmp_path)
    serving = service.Serving(store, LocalObjects(settings.objects.dir), StoreClock(), settings)
    await serving.forget()
    kept, aside = (await begun(Stage(store, "http://127.0.0.1:9"))).run_uuid, spool.aside_in(tmp_path)
    for run_uuid in (kept, RUN):
        killed(Spool(aside, run_uuid, "killed"))
    alive = Spool(aside, RUN, "alive")
    await serving.forget()
    assert {path.name for path in aside.iterdir()} == {f"{kept}.killed", f"{RUN}.alive"}
    alive.close()
    # As the erasure of its tenant does.
    await store.write(forget_runs)
    await serving.forget()
    assert list(aside.iterdir()) == []


async def forget_runs(tx: Tx) -> None:
    for table in ("scoring_chunks", "scoring_runs"):
        await tx.run(f"DELETE FROM {table}")
