"""Sheets that are files, of each kind: read, filled, and never written over what a person did."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from camserver.base.clock import StoreClock
from camserver.clients.sheets import file_places
from camserver.clients.sheets.file_sheet import FileSheet
from camserver.clients.sheets.opening import open_file
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.sheet_layout import Problem, SheetLayout
from camserver.domain.sheet_rows import FINAL, Outcome, RowOutcome, RowScores, SheetRow
from tests.clients.sheets.tables import KINDS, Cells, load, save, table

LAYOUT = SheetLayout()


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"sheet.{request.param}"


async def opened(path: Path, layout: SheetLayout = LAYOUT, **more: Path) -> FileSheet:
    return await open_file(path, layout, StoreClock(), settle_sec=0, **more)  # type: ignore[arg-type]


async def all_rows(sheet: FileSheet, first: int = 1, last: int | None = None) -> list[SheetRow]:
    return [row async for page in sheet.rows(first, last) for row in page]


async def flushed(sheet: FileSheet, scores: Sequence[RowScores]) -> list[RowOutcome]:
    staged = await sheet.write(scores)
    assert {one.outcome for one in staged} == {Outcome.STAGED}
    return [one async for page in sheet.flush(final=True) for one in page]


def scored(row: SheetRow, *scores: float | None, first: int = 0) -> RowScores:
    return RowScores(row.row, row.identity, first, scores)


@pytest.fixture
async def sheet(path: Path) -> AsyncIterator[FileSheet]:
    save(path, table(["good morning", "where is my parcel", "おはよう", "thanks"]))
    sheet = await opened(path)
    yield sheet
    await sheet.close()


async def test_reads_categories_and_rows(sheet: FileSheet) -> None:
    check = await sheet.check()
    assert check.ok, check.findings
    assert [category.name for category in await sheet.categories()] == ["category 0", "category 1"]
    assert check.categories[0].definition == "about category 0"
    assert (check.texts, check.distinct_texts, check.last_row, check.filled_cells) == (4, 4, 8, 0)
    rows = await all_rows(sheet)
    assert [(row.row, row.text) for row in rows] == [
        (5, "good morning"),
        (6, "where is my parcel"),
        (7, "おはよう"),
        (8, "thanks"),
    ]
    assert [row.row for row in await all_rows(sheet, 6, 7)] == [6, 7]


async def test_writes_scores_and_leaves_the_rest(sheet: FileSheet, path: Path) -> None:
    before = load(path)
    rows = await all_rows(sheet)
    outcomes = await flushed(sheet, [scored(rows[0], 0.85, None), scored(rows[2], 0.05, 1.0)])
    assert [one.outcome for one in outcomes] == [Outcome.WRITTEN] * 2
    after = load(path)
    assert after[4][3:] == ["0.85", ""]
    assert after[6][3:] == ["0.05", "1.00"]
    assert [row[:3] for row in after] == [row[:3] for row in before]
    assert after[:4] == before[:4]
    assert [row.filled for row in await all_rows(sheet)] == [0b01, 0, 0b11, 0]
    assert not [name for name in os.listdir(path.parent) if name != path.name]


async def test_leaves_what_a_person_typed(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    edit(path, lambda cells: put(cells, 4, 3, "by hand"))
    outcomes = await flushed(sheet, [scored(rows[0], 0.85, 0.2), scored(rows[1], 0.3, 0.4)])
    assert [(one.outcome, one.kept) for one in outcomes] == [(Outcome.WRITTEN, (0,)), (Outcome.WRITTEN, ())]
    assert load(path)[4][3:] == ["by hand", "0.20"]
    (again,) = await flushed(sheet, [scored(rows[0], 0.85)])
    assert again.outcome is Outcome.KEPT
    assert again.reason


async def test_scores_that_stand_there_already_count_as_written(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    await flushed(sheet, [scored(rows[0], 0.85, 0.2)])
    made = inode(path)
    other = await opened(path)
    (outcome,) = await flushed(other, [scored(rows[0], 0.85, 0.2)])
    await other.close()
    assert (outcome.outcome, outcome.kept) == (Outcome.WRITTEN, ())
    assert inode(path) == made, "nothing was to be written"


async def test_finds_rows_that_were_sorted_or_inserted_meanwhile(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    edit(path, lambda cells: [*cells[:4], ["0", "someone", "a new one", "", ""], *reversed(cells[4:])])
    outcomes = await flushed(sheet, [scored(row, 0.1 * row.row, None) for row in rows])
    assert [(one.outcome, one.row, one.now_row) for one in outcomes] == [
        (Outcome.WRITTEN, 5, 9),
        (Outcome.WRITTEN, 6, 8),
        (Outcome.WRITTEN, 7, 7),
        (Outcome.WRITTEN, 8, 6),
    ]
    assert [(row[2], row[3]) for row in load(path)[4:]] == [
        ("a new one", ""),
        ("thanks", "0.80"),
        ("おはよう", "0.70"),
        ("where is my parcel", "0.60"),
        ("good morning", "0.50"),
    ]


async def test_says_which_texts_were_edited_or_removed(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    edit(path, lambda cells: put(cells, 4, 2, "good evening")[:-1])
    outcomes = await flushed(sheet, [scored(row, 0.5, 0.5) for row in rows])
    expected = [Outcome.CHANGED, Outcome.WRITTEN, Outcome.WRITTEN, Outcome.CHANGED]
    assert [one.outcome for one in outcomes] == expected
    assert "row 5" in outcomes[0].reason
    assert load(path)[4][3:] == ["", ""]


async def test_equal_texts_get_a_score_each(path: Path) -> None:
    save(path, table(["same", "other", "same"]))
    sheet = await opened(path)
    rows = await all_rows(sheet)
    edit(path, lambda cells: [*cells[:4], ["0", "someone", "a new one", "", ""], *cells[4:]])
    outcomes = await flushed(sheet, [scored(row, 0.5, 0.25) for row in rows])
    await sheet.close()
    assert {one.outcome for one in outcomes} == {Outcome.WRITTEN}
    assert sorted(one.now_row for one in outcomes) == [6, 7, 8]
    assert [row[3:] for row in load(path)[4:]] == [["", ""], *[["0.50", "0.25"]] * 3]


@given(
    before=st.lists(st.sampled_from("abcde"), min_size=1, max_size=12),
    after=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12),
    blocks=st.integers(1, 2),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_was_sorted_inserted_or_removed(
    tmp_path: Path, before: list[str], after: list[str], blocks: int
) -> None:
    """As many rows of a text are filled as there were and still are, and no other; each with both blocks."""

    async def fill() -> None:
        path = tmp_path / "any.csv"
        save(path, table(before))
        sheet = await opened(path, SheetLayout(block_size=3 - blocks))
        await sheet.categories()
        scores = [scored(row, *[0.5] * (3 - blocks), first=n) for row in await all_rows(sheet) for n in range(blocks)]
        save(path, table(after))
        outcomes = await flushed(sheet, scores)
        await sheet.close()
        filled = Counter(row[2] for row in load(path)[4:] if row[3:5] == ["0.50", "0.50"])
        assert filled == Counter(before) & Counter(after)
        assert all(row[3:5] in (["0.50", "0.50"], [], ["", ""]) for row in load(path)[4:])
        written = sum(one.outcome is Outcome.WRITTEN for one in outcomes)
        assert written >= blocks * filled.total()

    asyncio.run(fill())


async def test_an_id_column_tells_equal_texts_apart(path: Path) -> None:
    save(path, table(["same", "same"]))
    sheet = await opened(path, SheetLayout(id_column="A"))
    first, second = await all_rows(sheet)
    assert first.identity != second.identity
    edit(path, lambda cells: [*cells[:4], cells[5], cells[4]])
    await flushed(sheet, [scored(first, 0.1, 0.1), scored(second, 0.9, 0.9)])
    await sheet.close()
    assert [(row[0], row[3]) for row in load(path)[4:]] == [("2", "0.90"), ("1", "0.10")]


async def test_stops_when_categories_moved(sheet: FileSheet, path: Path) -> None:
    await sheet.categories()
    rows = await all_rows(sheet)
    await sheet.write([scored(rows[0], 0.85, 0.2)])
    edit(path, lambda cells: [[*row[:3], "new", *row[3:]] for row in cells])
    with pytest.raises(SheetError, match="D2 was 'category 0' when the run began and is 'new' now") as caught:
        [page async for page in sheet.flush(final=True)]
    assert caught.value.kind is SheetTrouble.LAYOUT
    edit(path, lambda cells: [[*row[:3], *row[4:]] for row in cells])
    (outcome,) = [one async for page in sheet.flush(final=True) for one in page]
    assert outcome.outcome is Outcome.WRITTEN
    assert load(path)[4][3:] == ["0.85", "0.20"]


@pytest.mark.parametrize("mark", ["~${}", ".~lock.{}#"])
async def test_waits_while_a_program_has_it_open(sheet: FileSheet, path: Path, mark: str) -> None:
    rows = await all_rows(sheet)
    held = path.with_name(mark.format(path.name))
    held.touch()
    assert Problem.LOCKED in {finding.problem for finding in (await sheet.check()).findings}
    await sheet.write([scored(rows[0], 0.85, 0.2)])
    with pytest.raises(SheetError, match=r"is open in Excel") as caught:
        [page async for page in sheet.flush(final=True)]
    assert caught.value.kind is SheetTrouble.LOCKED
    held.unlink()
    assert [one.outcome async for page in sheet.flush(final=True) for one in page] == [Outcome.WRITTEN]


async def test_a_flush_that_is_not_due_costs_nothing(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    before = content(path)
    await sheet.write([scored(rows[0], 0.85, 0.2)])
    assert [page async for page in sheet.flush()] == []
    assert content(path) == before


async def test_an_output_leaves_the_file_alone(path: Path) -> None:
    save(path, table(["one", "two"]))
    before, output = content(path), path.with_stem("scored")
    for number in range(2):
        sheet = await opened(path, output=output)
        row = (await all_rows(sheet))[number]
        await flushed(sheet, [scored(row, 0.5, 0.5)])
        await sheet.close()
    assert content(path) == before
    assert [row[3:] for row in load(output)[4:]] == [["0.50", "0.50"]] * 2


async def test_says_what_is_wrong_before_a_run(path: Path) -> None:
    cells = table(["one", "", "three"], categories=3)
    cells[1][3:] = ["", "twice", "Twice"]
    cells[6][4] = "0.5"
    sheet = await opened(save(path, cells))
    check = await sheet.check()
    await sheet.close()
    assert not check.ok
    assert {(one.problem, one.where) for one in check.findings} == {
        (Problem.NAME_MISSING, "D2"),
        (Problem.NAME_TWICE, "F2"),
        (Problem.TEXT_MISSING, "C6"),
        (Problem.ALREADY_FILLED, ""),
    }


async def test_a_file_that_is_gone(sheet: FileSheet, path: Path) -> None:
    rows = await all_rows(sheet)
    os.unlink(path)
    await sheet.write([scored(rows[0], 0.85, 0.2)])
    with pytest.raises(SheetError) as caught:
        [page async for page in sheet.flush(final=True)]
    assert caught.value.kind is SheetTrouble.GONE


async def test_no_sheet_of_its_kind(path: Path) -> None:
    spoil(path)
    sheet = await opened(path)
    with pytest.raises(SheetError) as caught:
        await sheet.check()
    await sheet.close()
    assert caught.value.kind is SheetTrouble.BROKEN


async def test_thousands_of_rows_in_many_flushes(path: Path) -> None:
    texts = [f"text {number}" for number in range(1100)]
    save(path, table(texts, categories=3))
    sheet = await opened(path, SheetLayout(block_size=2))
    async for page in sheet.rows(5):
        await sheet.write([scored(row, 0.5, 0.25) for row in page])
        if page[0].row > 500:
            assert {one.outcome async for some in sheet.flush(True) for one in some} <= {Outcome.WRITTEN}
        await sheet.write([scored(row, row.row % 100 / 100, first=2) for row in page])
    outcomes = [one async for some in sheet.flush(True) for one in some]
    assert all(one.outcome in FINAL for one in outcomes)
    await sheet.close()
    found = load(path)
    assert [row[2] for row in found[4:]] == texts
    assert all(row[3:] == ["0.50", "0.25", f"{number % 100 / 100:.2f}"] for number, row in enumerate(found[4:], 5))


def inode(path: Path) -> int:
    return path.stat().st_ino


def content(path: Path) -> bytes:
    return path.read_bytes()


def spoil(path: Path) -> None:
    path.write_bytes(b"\x81\x00\xff\xff nothing of the kind")


def put(cells: Cells, row: int, column: int, value: str) -> Cells:
    cells[row][column] = value
    return cells


def edit(path: Path, change: Callable[[Cells], Cells]) -> None:
    """As a person does it in a program: another file in its place."""
    cells = change(load(path))
    draft = path.with_stem("edited")
    save(draft, cells)
    draft.replace(path)


async def test_what_a_pass_wrote_is_not_read_again(
    sheet: FileSheet, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads just when a pass of ours has put the file in place waits for it: it has the rows already."""
    rows = await all_rows(sheet)
    scans: list[Path] = []
    in_place, is_awaited = threading.Event(), threading.Event()
    scan, put, wait = sheet._form.scan, file_places.put_in_place, FileSheet._await_pass

    def counted(*args: Any) -> Any:
        scans.append(path)
        return scan(*args)

    def put_and_linger(*args: Any) -> Any:
        made = put(*args)
        in_place.set()
        is_awaited.wait(20)
        return made

    def awaited(self: FileSheet) -> None:
        is_awaited.set()
        wait(self)

    monkeypatch.setattr(sheet._form, "scan", counted)
    monkeypatch.setattr(file_places, "put_in_place", put_and_linger)
    monkeypatch.setattr(FileSheet, "_await_pass", awaited)
    writing = asyncio.create_task(flushed(sheet, [scored(rows[0], 0.5, 0.25)]))
    await asyncio.to_thread(in_place.wait, 20)
    again = await all_rows(sheet)
    assert [one.outcome for one in await writing] == [Outcome.WRITTEN]
    assert [row.filled for row in again] == [3, 0, 0, 0]
    assert not scans
    assert (await sheet.check()).distinct_texts == 4
