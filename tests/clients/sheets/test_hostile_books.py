"""Workbooks made to take all the time, memory or disk there is, or to end whoever reads them, are read or refused.

Where a file would have taken hours, that it is answered at all is what is tested.
"""

import io
import re
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.base.errors import CamError
from camserver.clients.sheets import bounds, xlsx_tags
from camserver.clients.sheets.file_sheet import FileSheet
from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Snapshot
from camserver.clients.sheets.xlsx_format import XlsxFormat, _Around
from camserver.domain.sheet_layout import COLUMNS_MAX, SheetLayout
from tests.clients.sheets.hostile_books import SHEET, save, sheet, texts
from tests.rig.clock import ManualClock
from tests.rig.effort import times

LAYOUT = SheetLayout()
MANY = 1_000_000


def scanned(path: Path) -> list[FileRow]:
    return list(XlsxFormat().scan(path, LAYOUT, []))


def fill(snapshot: Snapshot, path: Path, held: list[int] | None = None) -> None:
    """`held` gets the characters that were in memory after each row."""
    for row in XlsxFormat().scan(path, LAYOUT, []):
        snapshot.add(row)
        if held is not None:
            held.append(sum(len(one[1]) for one in snapshot._page))


def refused(path: Path) -> str:
    with pytest.raises(SheetError) as told:
        scanned(path)
    assert told.value.kind is SheetTrouble.BROKEN
    return told.value.message


def test_a_cell_without_an_end_is_named(tmp_path: Path) -> None:
    rows = b'<row r="7">' + b"<c>" * MANY + b"</row>"
    assert f"{SHEET}, row 7 holds a cell without an end" in refused(save(tmp_path / "a.xlsx", sheet(rows)))


@pytest.mark.parametrize(
    "strings",
    [b"<rPh>" * MANY, b"<t " * MANY + b">", b"<t>" * MANY, b"<t>one</t>" + b"<rPh " * MANY],
    ids=["aloud", "tags", "texts", "aloud tags"],
)
def test_texts_without_ends_are_read_once(tmp_path: Path, strings: bytes) -> None:
    path = save(tmp_path / "a.xlsx", sheet(texts("here")), b"<sst><si>" + strings + b"</si></sst>")
    assert [row.text for row in scanned(path)] == ["here"]


@pytest.mark.parametrize(
    "row",
    [
        b"<row " + b"a" * 60_000 + b"></row>",
        b"<row" + b" " * 60_000 + b"></row>",
        b"<row>" + b"<c " * MANY + b"</row>",
        b"<row><c>" + b"<v " * MANY + b"</c></row>",
        b"<row><c>" + b"<v>" * MANY + b"</c></row>",
        b"<row><c " + b"a" * 60_000 + b"/></row>",
        b"<row>" + b"</" * MANY + b"</row>",
    ],
    ids=["letters", "blanks", "cells", "values", "empty values", "cell of letters", "ends"],
)
def test_rows_of_tags_without_ends_are_read_once(tmp_path: Path, row: bytes) -> None:
    path = save(tmp_path / "a.xlsx", sheet(row + texts("here")))
    assert [found.text for found in scanned(path)] == ["", "here"]
    draft = tmp_path / "draft.xlsx"
    XlsxFormat().rewrite(path, draft, LAYOUT, lambda row: {0: 0.5})
    assert [found.filled for found in scanned(draft)] == [1, 1]


def test_the_rest_of_a_sheet_and_its_book_is_read_once(tmp_path: Path) -> None:
    bad = b"<col " * 100_000 + b"<sheetData " * 100_000 + b"<mergeCell " * 100_000 + b"<sheetProtection " * 100_000
    tabs = b"<workbook>" + b"<sheet " * 100_000 + b"<calcPr " * 100_000 + b'<sheet name="a" r:id="s1"/></workbook>'
    path = save(tmp_path / "a.xlsx", sheet(texts("here"), bad, bad), tabs=tabs)
    assert [found.text for found in scanned(path)] == ["here"]
    draft = tmp_path / "draft.xlsx"
    XlsxFormat().rewrite(path, draft, LAYOUT, lambda row: {0: 0.5})
    assert [found.filled for found in scanned(draft)] == [1]


def test_no_search_goes_through_more_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search holds all threads until it ends; a tag at the edge of a window is found all the same."""
    tag = re.compile(rb"<c [^<>]*+>")
    for before in (0, 1, xlsx_tags.WINDOW_BYTES - 1, xlsx_tags.WINDOW_BYTES - 3, 3 * xlsx_tags.WINDOW_BYTES):
        for length in (1, 100, xlsx_tags.TAG_MAX_BYTES - 4):
            found = xlsx_tags.find(tag, b"x" * before + b"<c " + b"y" * length + b">" + b"z" * 1000)
            assert found is not None
            assert found.span() == (before, before + length + 4)
    asked: list[int] = []

    class Counted:
        def search(self, data: bytes, begin: int, end: int) -> None:
            asked.append(end - begin)

    xlsx_tags.find(Counted(), b"<c " * MANY)  # type: ignore[arg-type]  # only its search is used
    assert max(asked) <= xlsx_tags.WINDOW_BYTES
    assert sum(asked) < 2 * 3 * MANY


def test_a_tag_too_long_to_be_one_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", sheet(b'<row r="' + b"1" * 200_000 + b'"></row>'))
    assert f"{SHEET} holds a tag longer than" in refused(path)


def test_more_rows_cells_and_texts_than_a_sheet_can_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.xlsx"
    assert "row 1 holds more than 16384 cells" in refused(save(path, sheet(b"<row>" + b"<c/>" * MANY + b"</row>")))
    assert "more than 1048576 rows" in refused(save(path, sheet(b'<row r="1048577"></row>')))
    monkeypatch.setattr("camserver.clients.sheets.xlsx_format.ROWS_MAX", 1000)
    assert "more than 1000 rows" in refused(save(path, sheet(b'<row r="1"></row>' * 1001)))
    monkeypatch.setattr("camserver.clients.sheets.xlsx_book.SHARED_TEXTS_MAX", 1000)
    assert "more than 1000 texts" in refused(save(path, sheet(b""), b"<sst>" + b"<si/>" * 1001 + b"</sst>"))


def test_styles_of_columns_are_looked_for_and_not_laid_out() -> None:
    wide = b'<cols><col min="1" max="16384" style="%d"/></cols>'
    around = _Around(before=b"".join(wide % number for number in range(400_000)))
    assert [around.column_style(column) for column in (0, 3, 16_383, 16_384)] == [b"16383", b"16383", b"16383", b""]
    assert len(around.ranges or ()) == COLUMNS_MAX
    assert len(around.styles) == 4
    odd = _Around(before=b'<col min="\xc2\xb2" max="9" style="1"/><col min="2" max="%b" style="2"/>' % (b"9" * 5000))
    assert odd.column_style(3) == b""


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ('<row r="²"><c r="C1"><v>1</v></c></row>'.encode(), ["1"]),
        (b'<row r="5"><c r="C5" t="s"><v>' + b"9" * 5000 + b"</v></c></row>", [""]),
        ('<row r="5"><c r="C5" t="s"><v>²</v></c></row>'.encode(), [""]),
        (texts("a_xD800_b", "_xD83D__xDE00_", "&#xD800;&#0;&#9999999;", "_x0000_"), ["a�b", "😀", "���", "�"]),
    ],
    ids=["row", "index", "odd index", "characters"],
)
def test_odd_numbers_and_characters(tmp_path: Path, rows: bytes, shown: list[str]) -> None:
    merged = b'<mergeCells><mergeCell ref="D5:ZZ' + b"9" * 5000 + b'"/></mergeCells>'
    path = save(tmp_path / "a.xlsx", sheet(rows, after=merged))
    assert [row.text for row in scanned(path)] == shown


def marked(path: Path, offset: int, value: int) -> Path:
    """The file with a field of two bytes changed in all its parts' headers, where it is 2 bytes earlier."""
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x01\x02", offset), (b"PK\x03\x04", offset - 2)):
        at = data.find(mark)
        while at >= 0:
            struct.pack_into("<H", data, at + place, value)
            at = data.find(mark, at + 4)
    path.write_bytes(data)
    return path


def test_books_packed_in_other_ways_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    assert "is encrypted" in refused(marked(save(path, sheet(b"")), 8, 1))
    assert "way that Excel does not use" in refused(marked(save(path, sheet(b"")), 10, 9))
    assert "way that Excel does not use" in refused(save(path, sheet(b""), packing=zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(save(path, sheet(b"")), "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr(SHEET, b"")
    assert "way that Excel does not use" in refused(path)


def test_what_a_small_book_unpacks_to_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "a.xlsx", sheet(texts("here") + b" " * 3_000_000))
    assert len(scanned(path)) == 1
    monkeypatch.setattr(bounds, "COMES_TO_ALWAYS_BYTES", 1_000_000)
    assert "unpacks to more than 1000000 bytes" in refused(path)
    monkeypatch.setattr(bounds, "COMES_TO_RATIO", 1_000)
    assert len(scanned(path)) == 1


def test_a_directory_that_claims_to_be_huge_is_not_read(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", sheet(b""))
    data = bytearray(path.read_bytes())
    end = data.rfind(b"PK\x05\x06")
    # 40 MB of it, which are there.
    padded = bytes(data[:end]) + bytes(40_000_000) + bytes(data[end:])
    struct.pack_into("<I", data, end + 12, struct.unpack_from("<I", data, end + 12)[0] + 40_000_000)
    path.write_bytes(padded[: end + 40_000_000] + bytes(data[end:]))
    assert "no Excel workbook" in refused(path)


def test_one_text_in_many_rows_fills_neither_memory_nor_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strings = b"<sst><si><t>" + b"x" * 200_000 + b"</t></si></sst>"
    rows = b"".join(b'<row r="%d"><c r="C%d" t="s"><v>0</v></c></row>' % (row, row) for row in range(5, 2_005))
    path = save(tmp_path / "a.xlsx", sheet(rows), strings)
    snapshot = Snapshot(LAYOUT, tmp_path, None, 30_000_000)
    held: list[int] = []
    with pytest.raises(SheetError, match="come to more than 30000000 bytes") as told:
        fill(snapshot, path, held)
    assert told.value.kind is SheetTrouble.BROKEN
    assert max(held) < 5_000_000
    assert len(held) > 100
    monkeypatch.setattr(bounds, "FREE_MIN_BYTES", 1 << 60)
    with pytest.raises(SheetError, match="free some space") as told:
        fill(Snapshot(LAYOUT, tmp_path), path)
    assert told.value.kind is SheetTrouble.FULL


def test_a_cell_too_long_for_a_text_is_named(tmp_path: Path) -> None:
    path = save(tmp_path / "a.xlsx", sheet(texts("short", "x" * (bounds.CELL_MAX_CHARS + 1))))
    with pytest.raises(SheetError, match="C6 holds more than 1000000 characters"):
        fill(Snapshot(LAYOUT, tmp_path), path)


async def test_what_is_no_book_ends_a_check_with_a_refusal(tmp_path: Path) -> None:
    path = marked(save(tmp_path / "a.xlsx", sheet(b"")), 8, 1)
    opened = FileSheet(path, LAYOUT, XlsxFormat(), ManualClock(), tmp_path, 0)
    try:
        with pytest.raises(SheetError, match="encrypted"):
            await opened.check()
    finally:
        await opened.close()


@pytest.fixture(scope="module")
def whole() -> bytes:
    strings = b'<sst><si><t>one &amp; two</t></si><si><rPh sb="0"><t>a</t></rPh><t>_x0041_</t></si></sst>'
    cells = b'<c r="A5" s="1"><v>1.5</v></c><c r="C5" t="s"><v>0</v></c><c r="D5"><f>A1</f><v>3</v></c>'
    rows = b'<row r="1" spans="1:4"><c/></row><row r="5" s="2" customFormat="1">' + cells + b"</row>" + texts("b")
    merged = b'<sheetProtection sheet="1"/><mergeCells><mergeCell ref="D5:E5"/></mergeCells>'
    data = sheet(rows, b'<cols><col min="1" max="9" style="3"/></cols>', merged)
    with tempfile.TemporaryDirectory() as folder:
        return save(Path(folder) / "a.xlsx", data, strings, packing=zipfile.ZIP_STORED).read_bytes()


@settings(max_examples=times(150, 3000), deadline=None)
@given(data=st.data())
def test_whatever_is_in_a_book_only_refusals_come_out(whole: bytes, data: st.DataObject) -> None:
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed) - 1))
        piece = data.draw(
            st.one_of(
                st.binary(max_size=8),
                st.sampled_from([b"\xff\xff\xff\xff", b"<", b">", b'"', b"/", "²".encode(), b"9" * 5000, b"\0" * 8]),
            )
        )
        over = data.draw(st.sampled_from([len(piece), 0, 1, 40]))
        changed[at : at + over] = piece
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.xlsx"
        path.write_bytes(mended_sums(changed) if data.draw(st.booleans()) else changed)
        try:
            snapshot = Snapshot(LAYOUT, None)
            fill(snapshot, path)
            snapshot.finish(None)
            XlsxFormat().rewrite(path, Path(folder) / "draft.xlsx", LAYOUT, lambda row: {0: 0.5})
        except CamError as error:
            error.message.encode()


def mended_sums(data: bytearray) -> bytearray:
    """With the checksums that the parts have now, so that they are looked into."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            infos = file.infolist()
    except Exception:  # it is no book any more
        return data
    for info in infos:
        begin = info.header_offset
        if data[begin : begin + 4] != b"PK\x03\x04" or info.file_size != info.compress_size:
            continue
        name, extra = struct.unpack_from("<HH", data, begin + 26)
        content = data[begin + 30 + name + extra :][: info.file_size]
        central = data.find(struct.pack("<I", info.CRC), data.find(b"PK\x01\x02"))
        if central >= 0:
            struct.pack_into("<I", data, central, zlib.crc32(content))
    return data
