"""Excel workbooks keep everything that is not a score."""

import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook, load_workbook
from openpyxl.chart import BarChart, Reference
from openpyxl.styles import Font, PatternFill
from openpyxl.worksheet.datavalidation import DataValidation

from camserver.clients.sheets.formats import FileRow
from camserver.clients.sheets.sheet import SheetError
from camserver.clients.sheets.xlsx_format import XlsxFormat
from camserver.domain.sheet_layout import Finding, Problem, SheetLayout
from tests.clients.sheets.tables import table

LAYOUT = SheetLayout()
SHEET = "xl/worksheets/sheet1.xml"


def rewritten(path: Path, scores: dict[int, dict[int, float]], layout: SheetLayout = LAYOUT) -> Path:
    draft = path.with_name("draft.xlsx")
    XlsxFormat().rewrite(path, draft, layout, lambda row: scores.get(row.row, {}))
    return draft


def scanned(path: Path, found: list[Finding] | None = None, layout: SheetLayout = LAYOUT) -> list[FileRow]:
    return list(XlsxFormat().scan(path, layout, [] if found is None else found))


def book(texts: list[str]) -> tuple[Workbook, Any]:
    made = Workbook()
    sheet: Any = made.active
    for row in table(texts):
        sheet.append([value or None for value in row])
    return made, sheet


def patched(path: Path, part: str, change: dict[str, str]) -> None:
    """The file with other XML in one of its parts."""
    with zipfile.ZipFile(path) as old:
        parts = {info.filename: old.read(info) for info in old.infolist()}
    text = parts[part].decode()
    for before, after in change.items():
        text, count = re.subn(before, after, text)
        assert count, before
    parts[part] = text.encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, content)


def test_formats_charts_and_rules_stay(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, sheet = book(["one", "two", "three"])
    sheet["D5"].fill = PatternFill("solid", fgColor="FFFF00")
    sheet["D5"].number_format = "0.00"
    sheet["C6"].font = Font(bold=True)
    sheet.column_dimensions["E"].number_format = "0%"
    sheet["F5"] = "=AVERAGE(D5:E5)"
    sheet["F6"] = "a note"
    rule = DataValidation(type="decimal", operator="between", formula1="0", formula2="1")
    sheet.add_data_validation(rule)
    rule.add("D5:E9")
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=4, min_row=5, max_row=7))
    sheet.add_chart(chart, "H2")
    other = made.create_sheet("Other")
    other["A1"] = "left alone"
    made.save(path)
    after = rewritten(path, {5: {0: 0.85, 1: 0.5}, 7: {1: 0.25}})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(after) as new:
        assert new.testzip() is None
        assert [info.filename for info in new.infolist()] == [info.filename for info in old.infolist()]
        changed = {name for name in old.namelist() if old.read(name) != new.read(name)}
        assert changed <= {"xl/worksheets/sheet1.xml", "xl/workbook.xml"}
        assert b"fullCalcOnLoad" in new.read("xl/workbook.xml")
    read: Any = load_workbook(after)["Sheet"]
    assert (read["D5"].value, read["E5"].value, read["E7"].value, read["D7"].value) == (0.85, 0.5, 0.25, None)
    assert read["D5"].fill.fgColor.rgb == "00FFFF00"
    assert read["D5"].number_format == "0.00"
    assert read["E5"].number_format == "0%", "a new cell looks like its column"
    assert read["C6"].font.bold
    assert (read["F5"].value, read["F6"].value) == ("=AVERAGE(D5:E5)", "a note")
    assert read.data_validations.dataValidation[0].sqref


def test_nothing_to_write_changes_nothing_in_the_sheet(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book([f"text {number}" for number in range(300)])
    made.save(path)
    after = rewritten(path, {})
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(after) as new:
        assert old.read("xl/worksheets/sheet1.xml") == new.read("xl/worksheets/sheet1.xml")


def test_the_tab_is_chosen_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book(["one"])
    second: Any = made.create_sheet("二枚目 & more")
    for row in table(["other"]):
        second.append(row)
    made.save(path)
    layout = SheetLayout(tab="二枚目 & more")
    assert scanned(path, layout=layout)[4].text == "other"
    after = rewritten(path, {5: {0: 0.5}}, layout)
    read = load_workbook(after)
    assert (read.worksheets[0]["D5"].value, read.worksheets[1]["D5"].value) == (None, 0.5)
    with pytest.raises(SheetError, match="Sheet, 二枚目 & more"):
        scanned(path, layout=SheetLayout(tab="third"))


def test_texts_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, sheet = book(['<a> & "b"', "two\nlines", "x", "x", "x"])
    sheet["C7"], sheet["C8"] = 5, True
    sheet["C9"] = "=TRIM(B9)"
    made.save(path)
    computed = '<c r="C9" t="str"><f>TRIM(B9)</f><v>came to &lt;this&gt;</v></c>'
    patched(path, SHEET, {r'<c r="C9"><f>TRIM\(B9\)</f><v ?/?>(?:</v>)?</c>': computed})
    assert [row.text for row in scanned(path)[4:]] == ['<a> & "b"', "two\nlines", "5", "TRUE", "came to <this>"]


def test_shared_texts_and_how_they_are_read_aloud(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book(["placeholder", "inline", "another"])
    made.save(path)
    rich = '<r><rPr><b/></rPr><t xml:space="preserve">東京 </t></r><r><t>タワー</t></r>'
    aloud = '<rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = f'<sst xmlns="{main}" count="3"><si><t/></si><si>{rich}{aloud}</si><si><t>a &amp; b</t></si></sst>'
    with zipfile.ZipFile(path, "a") as book_file:
        book_file.writestr("xl/sharedStrings.xml", strings)
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/sharedStrings"
    rel = f'<Relationship Id="rId99" Type="{kind}" Target="sharedStrings.xml"/>'
    patched(path, "xl/_rels/workbook.xml.rels", {"</Relationships>": f"{rel}</Relationships>"})
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/>'
    patched(path, "[Content_Types].xml", {"</Types>": f"{override}</Types>"})
    inline = r'<c r="{}" t="inlineStr"><is><t>[a-z]+</t></is></c>'
    changes = {
        inline.format("C5"): '<c r="C5" s="0" t="s"><v>1</v></c><c r="D5" t="s"><v>0</v></c>',
        inline.format("C6"): '<c r="C6" t="inlineStr"><is><t>in _x0041_ line</t></is></c>',
        inline.format("C7"): '<c r="C7" t="s"><v>2</v></c>',
    }
    patched(path, SHEET, changes)
    rows = scanned(path)[4:]
    assert [row.text for row in rows] == ["東京 タワー", "in A line", "a & b"]
    assert rows[0].filled == 0, "an empty shared text is nothing"
    read: Any = load_workbook(rewritten(path, {5: {0: 0.75}})).active
    assert (read["C5"].value, read["D5"].value) == ("東京 タワー", 0.75)


def test_protected_sheets_merged_cells_and_formulas_never_computed(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, sheet = book(["one", "two"])
    sheet.protection.sheet = True
    sheet.merge_cells("D6:E6")
    sheet.merge_cells("A1:B1")
    sheet["C6"] = "=TRIM(B6)"
    made.save(path)
    found: list[Finding] = []
    scanned(path, found)
    assert {(one.problem, one.where) for one in found} == {
        (Problem.PROTECTED, ""),
        (Problem.MERGED, "D6:E6"),
        (Problem.FORMULA, "C6"),
    }


def test_a_formula_in_a_cell_of_a_score_is_somebodys(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, sheet = book(["one"])
    sheet["D5"] = '=IF(A5=1,"","")'
    made.save(path)
    assert scanned(path)[4].filled == 0b1


def test_prefixed_names_and_rows_without_numbers(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book(["one", "two"])
    made.save(path)
    changes = {r"<(/?)(?=[a-z])": r"<\1x:", r' xmlns="': r' xmlns:x="', r' r="[A-Z]*\d+"': ""}
    before = scanned(path)
    # Without names, cells must be whole rows.
    patched(path, SHEET, changes)
    assert len(scanned(path)) == len(before)
    after = rewritten(path, {5: {0: 0.5}})
    with zipfile.ZipFile(after) as new:
        assert b'<x:c r="D5"><x:v>0.50</x:v></x:c>' in new.read("xl/worksheets/sheet1.xml")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xd0\xcf\x11\xe0" + bytes(600), "password"), (b"PK\x03\x04 nothing", "no Excel workbook"), (b"", "no Excel")],
)
def test_no_workbooks(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "sheet.xlsx"
    path.write_bytes(content)
    with pytest.raises(SheetError, match=said):
        scanned(path)


def test_xml_that_excel_does_not_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book(["one"])
    made.save(path)
    patched(path, SHEET, {"<sheetData>": '<!DOCTYPE a [<!ENTITY b "c">]><sheetData>'})
    with pytest.raises(SheetError, match="Excel does not write"):
        scanned(path)


def test_a_cut_workbook_is_said_to_be_damaged(tmp_path: Path) -> None:
    path = tmp_path / "sheet.xlsx"
    made, _ = book([f"text {number}" for number in range(50)])
    made.save(path)
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as old:
        info = old.getinfo("xl/worksheets/sheet1.xml")
        begin = info.header_offset + 100
    content[begin : begin + 200] = bytes(200)
    path.write_bytes(content)
    with pytest.raises(SheetError, match="damaged"):
        scanned(path)
