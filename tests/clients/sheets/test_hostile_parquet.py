"""Parquet files that hold gigabytes in some kilobytes are read a few rows at a time, or refused."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

from camserver.base.errors import CamError
from camserver.clients.sheets import bounds, parquet_trial
from camserver.clients.sheets.parquet_format import ParquetFormat
from camserver.clients.sheets.parquet_trial import Tried, try_reading
from camserver.clients.sheets.sheet import SheetError, SheetTrouble
from camserver.clients.sheets.snapshot import Snapshot
from camserver.domain.sheet_layout import ROWS_MAX, SheetLayout
from tests.clients.sheets.tables import save, table
from tests.rig.effort import times

LAYOUT = SheetLayout()
NAMES = ["a", "b", "c", "d", "e"]


def saved(path: Path, rows: int, text: str) -> Path:
    """All rows share the text, which stands in the file once."""
    schema = Schema([Field(name, DataType.string(), nullable=True) for name in NAMES])

    def batches() -> Iterator[RecordBatch]:
        for _ in range(rows // 100):
            columns = [Array([text if name == "c" else "1"] * 100, type=DataType.string()) for name in NAMES]
            yield RecordBatch.from_arrays(columns, schema=schema)

    reader = RecordBatchReader.from_batches(schema, batches())
    write_parquet(reader, str(path), compression="zstd(9)", dictionary_enabled=True, max_row_group_size=rows)
    return path


def refused(path: Path) -> str:
    with pytest.raises(SheetError) as told:
        list(ParquetFormat().scan(path, LAYOUT, []))
    assert told.value.kind is SheetTrouble.BROKEN
    return told.value.message


def test_one_text_that_rows_share_is_read_a_few_times_at_once(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.parquet", 600, "x" * 500_000)
    assert path.stat().st_size < 5_000
    tried = try_reading(path, ROWS_MAX, 1 << 40)
    assert tried is not None
    assert (tried.batch_rows, tried.rows) == (100, 600)
    assert "or they come to more than 256000000 bytes" in refused(path)


def test_what_is_read_at_once_is_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "COMES_TO_ALWAYS_BYTES", 1 << 40)
    monkeypatch.setattr(bounds, "COMES_TO_MAX_BYTES", 1 << 40)
    path = saved(tmp_path / "a.parquet", 600, "x" * 500_000)
    form = ParquetFormat()
    tries: list[Path] = []

    def noted(path: Path, rows_max: int, bytes_max: int) -> Tried | None:
        tries.append(path)
        return try_reading(path, rows_max, bytes_max)

    monkeypatch.setattr("camserver.clients.sheets.parquet_format.try_reading", noted)
    assert sum(len(row.text) for row in form.scan(path, LAYOUT, [])) == 600 * 500_000 + 1
    draft = tmp_path / "draft.parquet"
    form.rewrite(path, draft, LAYOUT, lambda row: {})
    assert sum(1 for _ in form.scan(draft, LAYOUT, [])) == 601
    assert tries == [path], "what was written need not be tried"
    monkeypatch.setattr(bounds, "FREE_MIN_BYTES", 1 << 60)
    with pytest.raises(SheetError, match="free some space"):
        form.rewrite(path, tmp_path / "other.parquet", LAYOUT, lambda row: {})


def test_cells_that_take_all_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_trial, "MEMORY_MAX_BYTES", 8_000_000)
    assert "takes too much memory" in refused(saved(tmp_path / "a.parquet", 100, "x" * 4_000_000))


def test_more_rows_than_a_sheet_can_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.clients.sheets.parquet_format.ROWS_MAX", 4_000)
    assert len(list(ParquetFormat().scan(saved(tmp_path / "a.parquet", 4_000, "x"), LAYOUT, []))) == 4_001
    assert "more than 4000 rows" in refused(saved(tmp_path / "a.parquet", 4_100, "x"))


def test_empty_columns_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores to come are packed to nothing, and are no reason to refuse a file."""
    monkeypatch.setattr(bounds, "COMES_TO_ALWAYS_BYTES", 0)
    monkeypatch.setattr(bounds, "COMES_TO_RATIO", 1)
    columns = [Array([None] * 5_000, type=DataType.float64()) for _ in NAMES]
    fields = [Field(name, DataType.float64(), nullable=True) for name in NAMES]
    path = tmp_path / "a.parquet"
    write_parquet(RecordBatch.from_arrays(columns, schema=Schema(fields)), str(path))
    assert len(list(ParquetFormat().scan(path, LAYOUT, []))) == 5_001


def test_whatever_is_in_a_file_only_refusals_come_out(tmp_path: Path) -> None:
    """Few examples: each is tried in a process of its own."""
    whole = save(tmp_path / "whole.parquet", table(["one", "two", "three"])).read_bytes()
    chance = random.Random(5)
    for _ in range(times(12, 300)):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(4, len(data) - 4)] = chance.randrange(256)
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            path = Path(folder) / "a.parquet"
            path.write_bytes(data)
            form, snapshot = ParquetFormat(), Snapshot(LAYOUT, None)
            try:
                for row in form.scan(path, LAYOUT, []):
                    snapshot.add(row)
                form.rewrite(path, Path(folder) / "draft.parquet", LAYOUT, lambda row: {0: 0.5})
            except CamError as error:
                error.message.encode()
