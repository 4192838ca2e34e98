"""Sheets for tests: a table of cells, written as a file of each kind and read back."""

import csv
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table
from arro3.io import read_parquet, write_parquet
from openpyxl import Workbook, load_workbook

KINDS = ("csv", "xlsx", "parquet")
Cells = list[list[str]]


def table(texts: list[str], categories: int = 2, width: int = 0) -> Cells:
    """A sheet as decision 48 has it, with these texts and no scores."""
    names = [f"category {number}" for number in range(categories)]
    head = [
        ["no", "who", "text", *(f"column {number}" for number in range(categories))],
        ["", "", "", *names],
        ["", "", "", *(f"about {name}" for name in names)],
        ["", "", "", *("" for _ in names)],
    ]
    rows = [[str(number), "someone", text, *("" for _ in names)] for number, text in enumerate(texts, 1)]
    return [row + [""] * (width - len(row)) for row in head + rows]


def save(path: Path, cells: Cells) -> Path:
    match path.suffix:
        case ".csv":
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(cells)
        case ".xlsx":
            book = Workbook()
            sheet: Any = book.active
            for row in cells:
                sheet.append([value or None for value in row])
            book.save(path)
        case _:
            columns = [Array(list(column), type=DataType.string()) for column in zip(*cells[1:], strict=True)]
            write_parquet(Table.from_arrays(columns, names=cells[0]), str(path))
    return path


def load(path: Path) -> Cells:
    match path.suffix:
        case ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                return [list(row) for row in csv.reader(file)]
        case ".xlsx":
            sheet: Any = load_workbook(path).worksheets[0]
            return [[_shown(value) for value in row] for row in sheet.iter_rows(values_only=True)]
        case _:
            made = read_parquet(str(path)).read_all()
            columns = [column.to_numpy().tolist() for column in made.columns]
            return [
                list(made.column_names),
                *([_shown(value) for value in row] for row in zip(*columns, strict=True)),
            ]


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)
