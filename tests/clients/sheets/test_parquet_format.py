"""Parquet files keep their types, and what others noted in them."""

from pathlib import Path

from arro3.core import Array, DataType, Field, Schema, Table
from arro3.io import read_parquet, write_parquet

from camserver.clients.sheets.parquet_format import ParquetFormat
from camserver.domain.sheet_layout import Finding, Problem, SheetLayout

LAYOUT = SheetLayout(
    text_column="B", first_category_column="C", name_row=1, definition_row=0, detail_row=0, first_data_row=2
)


def saved(path: Path) -> Path:
    columns = [
        Array([1, 2, 3], type=DataType.int64()),
        Array(["one", None, "three"], type=DataType.string()),
        Array([None, None, float("nan")], type=DataType.float64()),
        Array([None] * 3, type=DataType.float32()),
        Array([1, None, 2], type=DataType.int32()),
    ]
    names = ["id", "text", "angry", "glad", "count"]
    fields = [Field(name, column.type, nullable=True) for name, column in zip(names, columns, strict=True)]
    schema = Schema(fields, metadata={"pandas": "{}"})
    write_parquet(Table.from_arrays(columns, schema=schema), str(path), key_value_metadata={"pandas": "{}"})
    return path


def test_columns_of_numbers_get_numbers(tmp_path: Path) -> None:
    path = saved(tmp_path / "sheet.parquet")
    draft = tmp_path / "draft.parquet"
    scores = {2: {0: 0.85, 1: 0.5}, 4: {0: 0.25}}
    ParquetFormat().rewrite(path, draft, LAYOUT, lambda row: scores.get(row.row, {}))
    made = read_parquet(str(draft)).read_all()
    assert made.column_names == ["id", "text", "angry", "glad", "count"]
    assert made.column("angry").combine_chunks().to_pylist() == [0.85, None, 0.25]
    assert made.column("glad").combine_chunks().to_pylist() == [0.5, None, None]
    assert made.column("count").combine_chunks().to_pylist() == [1, None, 2]
    assert made.column("id").type == DataType.int64()
    assert made.schema.metadata_str["pandas"] == "{}"


def test_columns_that_hold_no_scores_are_found(tmp_path: Path) -> None:
    found: list[Finding] = []
    rows = list(ParquetFormat().scan(saved(tmp_path / "sheet.parquet"), LAYOUT, found))
    assert [(one.problem, one.where) for one in found] == [(Problem.READ_ONLY, "E")]
    assert [row.text for row in rows] == ["text", "one", "", "three"]
    assert [row.filled for row in rows[1:]] == [0b100, 0, 0b100]
