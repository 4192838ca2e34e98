"""Parquet files. Row 1 is the columns' names, so the first record is row 2, as in a CSV file with a header.

Columns have types. Where names and definitions stand in rows 2 to 4, the columns of categories hold texts, and scores
are written as texts; where categories are the names of columns (name_row 1, first_data_row 2), they hold numbers.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from camserver.clients.sheets.bounds import check_room, comes_to_max_bytes
from camserver.clients.sheets.formats import Change, FileRow
from camserver.clients.sheets.parquet_trial import Tried, try_reading
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Signature
from camserver.domain.sheet_layout import (
    CATEGORIES_MAX,
    ROWS_MAX,
    Finding,
    Problem,
    Severity,
    SheetLayout,
    column_name,
)
from camserver.domain.sheet_rows import cell_text, score_text

if TYPE_CHECKING:
    from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema

# What is collected in memory before it is written.
ROW_GROUP_ROWS: Final = 50_000
ROW_GROUP_BYTES: Final = 256_000_000
COMPRESSION: Final = "snappy"
FIRST_RECORD_ROW: Final = 2
MAGIC: Final = b"PAR1"


class ParquetFormat:
    def __init__(self) -> None:
        # The file that was tried last, and how it can be read.
        self._tried: tuple[Signature, Tried] | None = None

    def scan(self, path: Path, layout: SheetLayout, found: list[Finding]) -> Iterator[FileRow]:
        reader = _opened(path, self._try(path))
        names = reader.schema.names
        found.extend(_findings(reader.schema, layout))
        yield _file_row(1, list(names), layout)
        row = FIRST_RECORD_ROW
        for batch in _batches(reader, path):
            for values in _values(batch, layout):
                yield _file_row(row, values, layout)
                row += 1

    def rewrite(self, path: Path, draft: Path, layout: SheetLayout, change: Change) -> None:
        from arro3.core import RecordBatchReader
        from arro3.io import write_parquet

        tried = self._try(path)
        reader = _opened(path, tried)
        schema = _target_schema(reader.schema, layout)
        failed: list[Exception] = []

        def changed() -> "Iterator[RecordBatch]":
            try:
                change(_file_row(1, list(schema.names), layout))
                row = FIRST_RECORD_ROW
                for batch in _batches(reader, path):
                    check_room(draft, batch.nbytes)
                    yield _changed(batch, schema, row, layout, change)
                    row += batch.num_rows
            except Exception as error:
                failed.append(error)  # the library makes an error of its own of it
                raise

        try:
            write_parquet(
                RecordBatchReader.from_batches(schema, changed()),
                str(draft),
                compression=COMPRESSION,
                max_row_group_size=max(min(ROW_GROUP_BYTES // (tried.row_max_bytes or 1), ROW_GROUP_ROWS), 1),
                key_value_metadata=_notes(schema),
            )
        except BaseException as error:
            raise failed[0] if failed else error if isinstance(error, OSError) else _blamed(draft, error) from None
        # What was read with so many rows at a time is what was written.
        self._tried = (Signature.of(draft), tried)

    def _try(self, path: Path) -> Tried:
        _check_magic(path)
        signature = Signature.of(path)
        if self._tried is None or self._tried[0] != signature:
            bytes_max = comes_to_max_bytes(signature.size_bytes)
            tried = try_reading(path, ROWS_MAX, bytes_max)
            if tried is None:
                message = (
                    f"{path.name} takes too much memory to be read; shorten its cells, or save it in another way"
                )
                raise SheetError(SheetTrouble.BROKEN, message)
            if not tried.is_whole:
                message = f"{path.name} has more than {ROWS_MAX} rows, or they come to more than {bytes_max} bytes"
                raise SheetError(SheetTrouble.BROKEN, f"{message}; split it")
            self._tried = (signature, tried)
        return self._tried[1]


def _check_magic(path: Path) -> None:
    with path.open("rb") as file:
        begins = file.read(len(MAGIC))
        file.seek(0, os.SEEK_END)
        file.seek(max(file.tell() - len(MAGIC), 0))
        if begins != MAGIC or file.read() != MAGIC:
            raise SheetError(SheetTrouble.BROKEN, f"{path.name} is no Parquet file, or an encrypted one")


def _opened(path: Path, tried: Tried) -> "RecordBatchReader":
    from arro3.io import read_parquet

    try:
        return read_parquet(str(path), batch_size=tried.batch_rows)
    except BaseException as error:
        raise _blamed(path, error) from None


def _batches(reader: "RecordBatchReader", path: Path) -> "Iterator[RecordBatch]":
    while True:
        try:
            batch = next(reader)
        except StopIteration:
            return
        except BaseException as error:
            raise _blamed(path, error) from None
        yield batch


def _blamed(path: Path, error: BaseException) -> BaseException:
    """What the library says, or panics with, is the file's fault: nothing else is given to it."""
    if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
        return error
    return SheetError(SheetTrouble.BROKEN, f"{path.name} is damaged and can't be read: {error}")


def _notes(schema: "Schema") -> dict[str, str]:
    """What other programs noted in the file, such as the types pandas had; not the writer's own."""
    return {name: value for name, value in schema.metadata_str.items() if name != "ARROW:schema"}


def _findings(schema: "Schema", layout: SheetLayout) -> Iterator[Finding]:
    for index in range(layout.first_category_index, min(len(schema), layout.first_category_index + CATEGORIES_MAX)):
        field = schema.field(index)
        if _target_type(field) is None:
            where = column_name(index + 1)
            message = f"column {where} ({field.name}) holds {field.type}, which can't hold a score; make it a number"
            yield Finding(Severity.ERROR, Problem.READ_ONLY, where, message)


def _target_type(field: "Field") -> "DataType | None":
    """The type of a column once scores stand in it; None when it can hold none."""
    from arro3.core import DataType

    given = field.type
    kept = (DataType.is_floating, DataType.is_string, DataType.is_large_string, DataType.is_string_view)
    made = {DataType.is_dictionary: DataType.string(), DataType.is_null: DataType.float64()}
    if any(test(given) for test in kept):
        return given
    return next((wanted for test, wanted in made.items() if test(given)), None)


def _target_schema(schema: "Schema", layout: SheetLayout) -> "Schema":
    for index in range(layout.first_category_index, min(len(schema), layout.first_category_index + CATEGORIES_MAX)):
        field = schema.field(index)
        wanted = _target_type(field)
        if wanted is not None and wanted != field.type:
            schema = schema.set(index, field.with_type(wanted).with_nullable(True))
    return schema


def _plain(value: Any) -> object:
    """What a cell holds; not-a-number is how numeric columns say nothing."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _list(column: "Array") -> list[Any]:
    from arro3.core import DataType

    if DataType.is_dictionary(column.type):
        column = column.cast(DataType.string())
    return list(column.to_pylist())


def _values(batch: "RecordBatch", layout: SheetLayout) -> Iterator[list[object]]:
    """Rows of a batch; columns that nobody asks for are left out."""
    wanted = {layout.text_index, *([] if layout.id_index is None else [layout.id_index])}
    first, last = layout.first_category_index, min(batch.num_columns, layout.first_category_index + CATEGORIES_MAX)
    nothing: list[Any] = [None] * batch.num_rows
    columns = [
        _list(batch.column(index)) if index in wanted or first <= index < last else nothing
        for index in range(min(batch.num_columns, last))
    ]
    for values in zip(*columns, strict=True):
        yield [_plain(value) for value in values]


def _file_row(row: int, values: list[Any], layout: SheetLayout) -> FileRow:
    def at(index: int | None) -> str:
        return cell_text(values[index]) if index is not None and index < len(values) else ""

    held = values[layout.first_category_index : layout.first_category_index + CATEGORIES_MAX]
    return FileRow(row, at(layout.text_index), at(layout.id_index), held)


def _changed(
    batch: "RecordBatch", schema: "Schema", first_row: int, layout: SheetLayout, change: Change
) -> "RecordBatch":
    from arro3.core import Array, DataType, RecordBatch

    written: dict[int, dict[int, float]] = {}
    for offset, values in enumerate(_values(batch, layout)):
        for category, score in change(_file_row(first_row + offset, values, layout)).items():
            written.setdefault(layout.first_category_index + category, {})[offset] = score
    if any(index >= batch.num_columns or _target_type(schema.field(index)) is None for index in written):
        raise SheetError(SheetTrouble.LAYOUT, "a column of the file can't hold scores; check the sheet again")
    columns: list[Array] = []
    for index in range(batch.num_columns):
        column, kind = batch.column(index), schema.field(index).type
        if index in written:
            is_number = DataType.is_floating(kind)
            items = _list(column)
            for offset, score in written[index].items():
                items[offset] = score if is_number else score_text(score)
            columns.append(Array(items, type=kind))
        elif column.type != kind:
            columns.append(Array(_list(column), type=kind))
        else:
            columns.append(column)
    return RecordBatch.from_arrays(columns, schema=schema)
