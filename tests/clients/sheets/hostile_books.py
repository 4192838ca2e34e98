"""Workbooks that no spreadsheet program writes, made part by part."""

import zipfile
from pathlib import Path

TYPES = b"<Types/>"
ROOT = b'<Relationships><Relationship Id="r1" Target="xl/workbook.xml"/></Relationships>'
TABS = b'<workbook><sheets><sheet name="a" r:id="s1"/></sheets><calcPr calcId="1"/></workbook>'
RELATIONS = (
    b'<Relationships><Relationship Id="s1" Target="worksheets/s.xml"/>'
    b'<Relationship Id="s2" Target="sharedStrings.xml"/></Relationships>'
)
SHEET = "xl/worksheets/s.xml"


def sheet(rows: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
    return b"<worksheet>" + before + b"<sheetData>" + rows + b"</sheetData>" + after + b"</worksheet>"


def texts(*values: str, first_row: int = 5) -> bytes:
    return b"".join(
        b'<row r="%d"><c r="C%d" t="inlineStr"><is><t>%b</t></is></c></row>' % (row, row, value.encode())
        for row, value in enumerate(values, first_row)
    )


def save(path: Path, rows: bytes, strings: bytes = b"<sst/>", tabs: bytes = TABS, packing: int = 8) -> Path:
    """`rows` is the whole part of the sheet."""
    parts = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": ROOT,
        "xl/workbook.xml": tabs,
        "xl/_rels/workbook.xml.rels": RELATIONS,
        SHEET: rows,
        "xl/sharedStrings.xml": strings,
    }
    with zipfile.ZipFile(path, "w", packing) as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return path
