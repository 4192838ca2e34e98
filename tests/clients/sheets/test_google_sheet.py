"""Google Sheets: busy, cut off, protected, and edited by people at the worst moment."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from camserver.base.clock import Clock, StoreClock
from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.clients.sheets.google_api import google_address
from camserver.clients.sheets.google_sheet import GoogleSheet
from camserver.clients.sheets.opening import open_sheet
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.domain.sheet_layout import Problem, SheetLayout
from camserver.domain.sheet_rows import Outcome, RowOutcome, RowScores, SheetRow
from tests.clients.sheets.tables import table
from tests.fakes.sheets import Answer, Cut, FakeSheets, Formula, Unheard

TEXTS = ["good morning", "where is my parcel", "おはよう", "thanks", "a ladder stands there"]


@pytest.fixture
async def google() -> AsyncIterator[FakeSheets]:
    async with FakeSheets(list(table(TEXTS)), title="It's mine") as google:
        yield google


class LeapingClock(StoreClock):
    """Every pause is over at once, and as much time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.slept_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.slept_ms

    def boot_ms(self) -> int:
        return super().boot_ms() + self.slept_ms

    async def sleep(self, seconds: float) -> None:
        self.slept_ms += round(seconds * 1000)
        await asyncio.sleep(0)


async def opened(google: FakeSheets, layout: SheetLayout | None = None, clock: Clock | None = None) -> GoogleSheet:
    sheet = await open_sheet(
        google.address,
        layout or SheetLayout(),
        clock or StoreClock(),
        credentials=Secret(google.key_file),
        google_url=google.url,
    )
    assert isinstance(sheet, GoogleSheet)
    return sheet


@pytest.fixture
async def sheet(google: FakeSheets) -> AsyncIterator[GoogleSheet]:
    sheet = await opened(google)
    await sheet.categories()
    yield sheet
    await sheet.close()


async def all_rows(sheet: GoogleSheet) -> list[SheetRow]:
    return [row async for page in sheet.rows(1) for row in page]


async def settled(sheet: GoogleSheet) -> list[RowOutcome]:
    return [one async for page in sheet.flush(final=True) for one in page]


async def put(sheet: GoogleSheet, rows: Sequence[SheetRow]) -> list[RowOutcome]:
    await sheet.write([scored(row) for row in rows])
    return sorted(await settled(sheet), key=lambda one: one.row)


def scores_of(text: str) -> tuple[float, float]:
    """Every text has scores of its own, so that none can stand beside another unseen."""
    number = random.Random(text).randrange(1, 100)
    return number / 100, (100 - number) / 100


def scored(row: SheetRow) -> RowScores:
    return RowScores(row.row, row.identity, 0, scores_of(row.text))


def assert_right(google: FakeSheets, texts: Sequence[str] = TEXTS) -> None:
    expected = {text: list(scores_of(text)) for text in texts}
    assert {text: cells for text, cells in google.scores().items() if text in expected} == expected
    strangers = {text: cells for text, cells in google.scores().items() if text not in expected}
    assert all(set(cells) == {""} for cells in strangers.values()), strangers


async def test_reads_and_writes(google: FakeSheets, sheet: GoogleSheet) -> None:
    check = await sheet.check()
    assert check.ok, check.findings
    assert [category.definition for category in check.categories] == ["about category 0", "about category 1"]
    assert (check.texts, check.last_row) == (5, 9)
    rows = await all_rows(sheet)
    assert [(row.row, row.text) for row in rows] == list(enumerate(TEXTS, 5))
    outcomes = await put(sheet, rows)
    assert {one.outcome for one in outcomes} == {Outcome.WRITTEN}
    assert_right(google)
    assert google.asked.count("update") == 1, "rows that follow each other are one request"
    assert [row.filled for row in await all_rows(sheet)] == [0b11] * 5


async def test_failed_cells_stay_empty(google: FakeSheets, sheet: GoogleSheet) -> None:
    row = (await all_rows(sheet))[0]
    await sheet.write([RowScores(row.row, row.identity, 0, (None, 0.5))])
    assert [one.outcome for one in await settled(sheet)] == [Outcome.WRITTEN]
    assert google.cells[4][3:] == ["", 0.5]


@pytest.mark.parametrize("typed", ["by hand", 0.5, Formula('=IF(A5,"","")', "")])
async def test_leaves_what_a_person_typed(google: FakeSheets, sheet: GoogleSheet, typed: object) -> None:
    rows = await all_rows(sheet)
    google.type(5, 3, typed)
    outcomes = await put(sheet, rows)
    assert outcomes[0].kept == (0,)
    assert "D5" in outcomes[0].reason
    assert google.cells[4][3] == typed
    assert google.cells[4][4] == scores_of(rows[0].text)[1]
    assert google.overwritten == []


async def test_a_text_that_is_a_formula_is_read_as_it_looks(google: FakeSheets) -> None:
    google.type(6, 2, Formula("=TRIM(B6)", "trimmed"))
    sheet = await opened(google)
    rows = await all_rows(sheet)
    assert rows[1].text == "trimmed"
    outcomes = await put(sheet, rows)
    await sheet.close()
    assert {one.outcome for one in outcomes} == {Outcome.WRITTEN}


PEOPLE: dict[str, Callable[[FakeSheets], None]] = {
    "sorted": lambda google: google.sort(5),
    "inserted": lambda google: google.insert(5, ["", "", "a new one"]),
    "inserted in the middle": lambda google: google.insert(7, ["", "", "a new one"]),
}


@pytest.mark.parametrize("moment", ["first values", "update", "next values"])
@pytest.mark.parametrize("did", ["sorted", "inserted", "inserted in the middle"])
async def test_people_move_rows_at_any_moment(google: FakeSheets, sheet: GoogleSheet, moment: str, did: str) -> None:
    rows = await all_rows(sheet)
    action = PEOPLE[did]
    if moment == "update":
        google.before("update", lambda: action(google))
    else:
        nothing = [lambda: None] if moment == "next values" else []
        google.before("values", *nothing, lambda: action(google))
    outcomes = await put(sheet, rows)
    assert {one.outcome for one in outcomes} == {Outcome.WRITTEN}
    assert_right(google)
    texts = {row.row: row.text for row in rows}
    assert all(google.cells[one.now_row - 1][2] == texts[one.row] for one in outcomes)


async def test_people_sort_again_and_again(google: FakeSheets) -> None:
    chance = random.Random(3)
    texts = [f"text {number}" for number in range(120)]
    async with FakeSheets(list(table(texts))) as busy:
        sheet = await opened(busy, clock=LeapingClock())  # these are more requests than Google bears in a minute
        await sheet.categories()
        rows = await all_rows(sheet)

        def shuffle() -> None:
            rest = busy.cells[4:]
            chance.shuffle(rest)
            busy.cells[4:] = rest

        for begin in range(0, len(rows), 20):
            busy.before(chance.choice(["values", "update"]), shuffle)
            await sheet.write([scored(row) for row in rows[begin : begin + 20]])
            assert {one.outcome for one in await settled(sheet)} == {Outcome.WRITTEN}
        await sheet.close()
        assert_right(busy, texts)


async def test_a_row_that_was_edited_or_removed(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.type(5, 2, "something else")
    google.delete(9)
    outcomes = await put(sheet, rows)
    expected = [Outcome.CHANGED, *[Outcome.WRITTEN] * 3, Outcome.CHANGED]
    assert [one.outcome for one in outcomes] == expected
    assert "row 5" in outcomes[0].reason
    assert_right(google, TEXTS[1:4])


async def test_a_column_that_was_inserted_stops_it(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.insert_column(3, 2, "new")
    with pytest.raises(SheetError, match="D2 was 'category 0'") as caught:
        await put(sheet, rows)
    assert caught.value.kind is SheetTrouble.LAYOUT
    assert google.writes == []


async def test_a_renamed_tab_is_found_again(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.title = "renamed"
    await put(sheet, rows)
    assert_right(google)


@pytest.mark.parametrize("fault", [Answer(429), Answer(500), Answer(503, retry_after="7"), Cut(), Unheard()])
@pytest.mark.parametrize("step", ["values", "update"])
async def test_goes_on_after_trouble(
    google: FakeSheets, sheet: GoogleSheet, step: str, fault: Answer | Cut | Unheard
) -> None:
    rows = await all_rows(sheet)
    await sheet.write([scored(row) for row in rows])
    # A request that only asks is sent once more by itself when its connection breaks.
    is_asked_again = step == "values" and not isinstance(fault, Answer)
    google.fail(step, *[fault] * (2 if is_asked_again else 1))
    with pytest.raises(SheetError) as caught:
        await settled(sheet)
    assert caught.value.kind is SheetTrouble.BUSY
    if isinstance(fault, Answer) and fault.retry_after:
        assert caught.value.retry_after_sec == 7
    outcomes = await settled(sheet)
    assert {one.outcome for one in outcomes} == {Outcome.WRITTEN}
    assert len(outcomes) == len(rows)
    assert_right(google)
    assert google.overwritten == []


async def test_a_used_up_quota_says_when_to_go_on(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.quota = 1
    with pytest.raises(SheetError, match="Quota exceeded") as caught:
        await put(sheet, rows)
    assert caught.value.kind is SheetTrouble.BUSY
    assert caught.value.retry_after_sec
    google.quota = None
    await settled(sheet)
    assert_right(google)


async def test_an_expired_token_is_renewed(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.expire_tokens()
    await put(sheet, rows)
    assert_right(google)


async def test_a_permission_that_was_lost(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.can_edit = False
    assert Problem.READ_ONLY in {finding.problem for finding in (await sheet.check()).findings}
    with pytest.raises(SheetError, match=r"camserver@house\.iam\.gserviceaccount\.com") as caught:
        await put(sheet, rows)
    assert caught.value.kind is SheetTrouble.DENIED
    google.can_edit = True
    assert len(await settled(sheet)) == len(rows)
    assert_right(google)


async def test_protected_cells_are_refused_and_the_rest_is_written(google: FakeSheets, sheet: GoogleSheet) -> None:
    rows = await all_rows(sheet)
    google.protect(6, 6, 4, 4)
    outcomes = await put(sheet, rows)
    expected = [Outcome.WRITTEN, Outcome.PROTECTED, *[Outcome.WRITTEN] * 3]
    assert [one.outcome for one in outcomes] == expected
    assert "row 6" in outcomes[1].reason
    finding = next(one for one in (await sheet.check()).findings if one.problem is Problem.PROTECTED)
    assert finding.where == "E6:E6"


async def test_merged_cells_are_found(google: FakeSheets, sheet: GoogleSheet) -> None:
    google.merges.append({"startRowIndex": 5, "endRowIndex": 7, "startColumnIndex": 3, "endColumnIndex": 4})
    check = await sheet.check()
    assert not check.ok
    assert [one.where for one in check.findings] == ["D6:D7"]


async def test_no_such_tab(google: FakeSheets) -> None:
    sheet = await opened(google, SheetLayout(tab="another"))
    with pytest.raises(SheetError, match="It's mine") as caught:
        await sheet.check()
    await sheet.close()
    assert caught.value.kind is SheetTrouble.GONE


async def test_many_empty_rows_cost_few_requests() -> None:
    async with FakeSheets(list(table(TEXTS)), rows=20_000) as google:
        sheet = await opened(google)
        check = await sheet.check()
        await sheet.close()
        assert check.texts == 5
        assert google.asked.count("values") < 12


async def test_needs_a_key_and_a_link(google: FakeSheets) -> None:
    with pytest.raises(BadInput, match="key file"):
        await open_sheet(google.address, SheetLayout(), StoreClock())
    with pytest.raises(BadInput, match="no link to Google Sheets"):
        await open_sheet("https://example.org/sheet.csv", SheetLayout(), StoreClock())


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://docs.google.com/spreadsheets/d/abc-DEF_0/edit#gid=12", ("abc-DEF_0", 12)),
        ("https://docs.google.com/spreadsheets/u/1/d/abc/edit?gid=3#gid=3", ("abc", 3)),
        ("https://docs.google.com/spreadsheets/d/abc", ("abc", None)),
        ("gsheet:" + "a" * 44 + "#5", ("a" * 44, 5)),
        ("gsheet:a", None),
        ("https://docs.google.com.example.org/spreadsheets/d/abc", None),
        ("http://docs.google.com/spreadsheets/d/abc", None),
        ("sheet.csv", None),
    ],
)
def test_addresses(address: str, expected: tuple[str, int | None] | None) -> None:
    found = google_address(address)
    assert (None if found is None else (found.book_id, found.gid)) == expected
