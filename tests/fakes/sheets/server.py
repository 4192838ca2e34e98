"""The fake Google Sheets' server: one book with one tab of cells, and how it answers."""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.fakes.drive.faults import Answer, Fault
from tests.fakes.drive.server import EMAIL, FakeDrive

BOOK_ID = "book-of-the-fake-google-sheets-1"
GID = 17
_RANGE = re.compile(r"'((?:[^']|'')+)'!([A-Z]+)(\d+):([A-Z]+)(\d+)")
Value = Any  # what JSON can hold in a cell


@dataclass(frozen=True, slots=True)
class Formula:
    """A cell with a formula, and what it comes to."""

    entered: str
    shown: Value


class FakeSheets(FakeDrive):
    """What is asked (`tabs`, `values`, `update`, `get` of Drive, `token`) is in `asked`. Rows are numbered from 1."""

    def __init__(self, cells: list[list[Value]], title: str = "Scores", rows: int | None = None) -> None:
        super().__init__()
        self.columns = max(len(row) for row in cells)
        self.cells = [self._row(row) for row in cells]
        self.cells += [self._row([]) for _ in range((rows or 0) - len(cells))]
        self.title = title
        self.protected: list[dict[str, Any]] = []
        self.merges: list[dict[str, Any]] = []
        self.can_edit = True
        self.shared = True
        self.writes: list[tuple[int, int, Value]] = []  # row, column (from 0), value
        # Cells that a write took something away from that was not empty, and not the fake's own person.
        self.overwritten: list[tuple[int, int, Value, Value]] = []
        self.quota: int | None = None  # requests that are answered before 429
        self._before: dict[str, list[Callable[[], None]]] = defaultdict(list)

    @property
    def address(self) -> str:
        return f"https://docs.google.com/spreadsheets/d/{BOOK_ID}/edit?usp=sharing#gid={GID}"

    def before(self, step: str, *actions: Callable[[], None]) -> None:
        """Somebody does this just before the next request of a step is done, one action a request."""
        self._before[step].extend(actions)

    # What people do. -----------------------------------------------------------------------------------------------

    def sort(self, first_row: int, column: int = 2) -> None:
        head, rows = self.cells[: first_row - 1], self.cells[first_row - 1 :]
        rows.sort(key=lambda row: (row[column] in ("", None), str(row[column])))
        self.cells = head + rows

    def insert(self, row: int, cells: list[Value]) -> None:
        self.cells.insert(row - 1, self._row(cells))

    def delete(self, row: int) -> None:
        del self.cells[row - 1]

    def insert_column(self, column: int, name_row: int, name: str) -> None:
        for number, row in enumerate(self.cells, 1):
            row.insert(column, name if number == name_row else "")
        self.columns += 1

    def type(self, row: int, column: int, value: Value) -> None:
        self.cells[row - 1][column] = value

    def protect(self, first_row: int, last_row: int, first_column: int, last_column: int) -> None:
        """Columns from 0; all inclusive."""
        area = {"startRowIndex": first_row - 1, "endRowIndex": last_row}
        area |= {"startColumnIndex": first_column, "endColumnIndex": last_column + 1}
        self.protected.append({"range": {"sheetId": GID, **area}, "requestingUserCanEdit": False})

    def scores(self, first_column: int = 3) -> dict[str, list[Value]]:
        """What stands beside each text; equal texts may not be there."""
        return {row[2]: row[first_column:] for row in self.cells[4:] if row[2]}

    # How it answers. -----------------------------------------------------------------------------------------------

    def _route(self, app: web.Application) -> None:
        super()._route(app)
        book = f"/v4/spreadsheets/{BOOK_ID}"
        app.router.add_get(book, self._step("tabs", self._guarded("tabs", self._tabs)))
        app.router.add_get(f"{book}/values:batchGet", self._step("values", self._guarded("values", self._values)))
        app.router.add_post(f"{book}/values:batchUpdate", self._step("update", self._guarded("update", self._update)))

    def _guarded(self, step: str, handle: Any) -> Any:
        async def handled(request: web.Request, fault: Fault | None) -> web.Response:
            if self._before[step]:
                self._before[step].pop(0)()
            if self.quota is not None:
                self.quota -= 1
                if self.quota < 0:
                    return refused(429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Write requests'")
            if not self.shared:
                return refused(403, "PERMISSION_DENIED", "The caller does not have permission")
            answer: web.Response = await handle(request)
            return answer

        return handled

    async def _get(self, request: web.Request, fault: Fault | None) -> web.Response:
        if request.match_info["id"] != BOOK_ID:
            return await super()._get(request, fault)
        return web.json_response({"capabilities": {"canEdit": self.can_edit}})

    async def _tabs(self, request: web.Request) -> web.Response:
        grid = {"rowCount": len(self.cells), "columnCount": self.columns}
        shown = {
            "properties": {"sheetId": GID, "title": self.title, "sheetType": "GRID", "gridProperties": grid},
            "protectedRanges": self.protected,
            "merges": self.merges,
        }
        other = {"properties": {"sheetId": 1, "title": "Chart", "sheetType": "OBJECT"}}
        return web.json_response({"sheets": [other, shown]})

    async def _values(self, request: web.Request) -> web.Response:
        is_entered = request.query["valueRenderOption"] == "FORMULA"
        found = []
        for name in request.query.getall("ranges"):
            area = self._area(name)
            if isinstance(area, str):
                return refused(400, "INVALID_ARGUMENT", area)
            first_row, last_row, first, last = area
            values = [
                _trimmed([_rendered(value, is_entered) for value in row[first : last + 1]], "")
                for row in self.cells[first_row - 1 : last_row]
            ]
            found.append({"range": name, "majorDimension": "ROWS", "values": _trimmed(values, [])})
        return web.json_response({"spreadsheetId": BOOK_ID, "valueRanges": found})

    async def _update(self, request: web.Request) -> web.Response:
        body = await request.json()
        assert body["valueInputOption"] == "RAW"
        if not self.can_edit:
            return refused(403, "PERMISSION_DENIED", "The caller does not have permission")
        written: list[tuple[int, int, Value]] = []
        for one in body["data"]:
            area = self._area(one["range"])
            if isinstance(area, str):
                return refused(400, "INVALID_ARGUMENT", area)
            first_row, last_row, first, last = area
            assert len(one["values"]) == last_row - first_row + 1
            for row, values in enumerate(one["values"], first_row):
                assert len(values) == last - first + 1
                written += [(row, column, value) for column, value in enumerate(values, first)]
        if any(self._is_protected(row, column) for row, column, _ in written):
            said = "You are trying to edit a protected cell or object. Please contact the spreadsheet owner."
            return refused(400, "INVALID_ARGUMENT", said)
        for row, column, value in written:
            before = self.cells[row - 1][column]
            if before not in ("", None, value):
                self.overwritten.append((row, column, before, value))
            self.cells[row - 1][column] = value
        self.writes += written
        return web.json_response({"spreadsheetId": BOOK_ID, "totalUpdatedCells": len(written)})

    def _is_protected(self, row: int, column: int) -> bool:
        return any(
            one["range"]["startRowIndex"] <= row - 1 < one["range"]["endRowIndex"]
            and one["range"]["startColumnIndex"] <= column < one["range"]["endColumnIndex"]
            for one in self.protected
        )

    def _area(self, name: str) -> tuple[int, int, int, int] | str:
        """First and last row and column of a range, or what Google says of it."""
        found = _RANGE.fullmatch(name)
        if found is None or found[1].replace("''", "'") != self.title:
            return f"Unable to parse range: {name}"
        area = int(found[3]), int(found[5]), _column(found[2]), _column(found[4])
        if area[1] > len(self.cells) or area[3] >= self.columns:
            return f"Range ({name}) exceeds grid limits. Max rows: {len(self.cells)}, max columns: {self.columns}"
        return area

    def _row(self, cells: list[Value]) -> list[Value]:
        return [*cells, *[""] * (self.columns - len(cells))]


def refused(status: int, kind: str, message: str) -> web.Response:
    return web.json_response({"error": {"code": status, "status": kind, "message": message}}, status=status)


def _column(name: str) -> int:
    number = 0
    for letter in name:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _rendered(value: Value, is_entered: bool) -> Value:
    if isinstance(value, Formula):
        return value.entered if is_entered else value.shown
    return value


def _trimmed(values: list[Any], empty: Any) -> list[Any]:
    """Without the empty ones at the end, as Google answers."""
    count = len(values)
    while count and values[count - 1] in (empty, None):
        count -= 1
    return values[:count]


__all__ = ["BOOK_ID", "EMAIL", "Answer", "FakeSheets", "Formula"]
