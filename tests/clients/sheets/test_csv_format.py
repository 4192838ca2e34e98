"""CSV files keep every byte that is not a score."""

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.clients.sheets.csv_format import CsvFormat, find_dialect, split
from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.sheet import SheetError
from camserver.domain.sheet_layout import SheetLayout

LAYOUT = SheetLayout()
HEAD = 'no,who,"text ",column\r\n,,,angry\r\n,,,"much, very"\r\n,,,\r\n'


def rewritten(path: Path, scores: dict[int, dict[int, float]]) -> bytes:
    draft = path.with_name("draft")
    CsvFormat().rewrite(path, draft, LAYOUT, lambda row: scores.get(row.row, {}))
    return draft.read_bytes()


def scanned(path: Path) -> list[FileRow]:
    return list(CsvFormat().scan(path, LAYOUT, []))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_encodings_quotes_and_line_ends_stay(tmp_path: Path, encoding: str, end: str) -> None:
    lines = [
        "no,who,text,column",
        ",,,怒り",
        ",,,",
        ",,,",
        '1,"山田 ""太郎""","表示\r\n能力, ソ",',
        "2,x,次,",
        '3,x,"3"" pipe",""',
    ]
    path = tmp_path / "sheet.csv"
    path.write_bytes(end.join(lines).encode(encoding))
    rows = scanned(path)
    assert [row.text for row in rows[4:]] == ["表示\r\n能力, ソ", "次", '3" pipe']
    assert rewritten(path, {}) == path.read_bytes()
    lines[4:] = [lines[4] + "0.85", lines[5], '3,x,"3"" pipe","0.50"']
    assert rewritten(path, {5: {0: 0.85}, 7: {0: 0.5}}) == end.join(lines).encode(encoding)


def test_characters_that_shift_jis_has_twice_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    content = HEAD.encode("cp932") + b"1,x,\xfa\x4a \x81\x7c|,\r\n"
    assert content.decode("cp932").encode("cp932") != content
    path.write_bytes(content)
    assert rewritten(path, {5: {0: 1.0}}) == content[:-2] + b"1.00\r\n"


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiters(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(HEAD.replace(",", delimiter) + delimiter.join(["1", "x", "a, text", ""]), newline="")
    assert find_dialect(path).delimiter.decode() == delimiter
    assert scanned(path)[4].text == "a, text" if delimiter != "," else True


def test_short_rows_are_filled_up(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(HEAD + "1,x,text", newline="")
    assert rewritten(path, {5: {1: 0.5}}).endswith(b"1,x,text,,0.50")


@given(content=st.text(alphabet='ab,"\r\n;\tあ ', max_size=60), is_marked=st.booleans())
def test_any_file_stays_as_it_is(tmp_path_factory: pytest.TempPathFactory, content: str, is_marked: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes((codecs.BOM_UTF8 if is_marked else b"") + content.encode())
    assert rewritten(path, {}) == path.read_bytes()


@given(
    st.lists(st.text(alphabet='ab,"\n', max_size=6).map(lambda text: '"' + text.replace('"', '""') + '"'), min_size=1)
)
def test_quoted_fields_are_split_where_they_end(fields: list[str]) -> None:
    record = ",".join(fields).encode()
    assert split(record + b"\r\n", b",") == ([field.encode() for field in fields], b"\r\n")


@pytest.mark.parametrize("content", [b"\x81\xff\xfe\n", b"a\0b\n", codecs.BOM_UTF16_LE + b"\x00\xd8\x00"])
def test_no_text_at_all(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)
    with pytest.raises(SheetError):
        scanned(path)


def test_a_quote_that_is_never_closed_takes_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.clients.sheets.csv_format.RECORD_MAX_BYTES", 1000)
    path = tmp_path / "sheet.csv"
    path.write_text(HEAD + '1,x,"text\n' + "2,x,other,\n" * 200, newline="")
    with pytest.raises(SheetError, match=r"row 5 .* never closed"):
        scanned(path)
