"""Runs that score the rows of a sheet. Money is in millionths of a US dollar."""

from typing import Literal

from camserver.wire.api.shapes import Answer, Asked

ScoringState = Literal["running", "paused", "completed", "failed", "cancelled"]
ScoringChunkState = Literal["pending", "running", "writing", "completed", "failed"]


class ScoringTotals(Answer):
    """Of all chunks of a run. A task is one row and one block of categories; those of a chunk are known once it was
    read."""

    chunks: int
    chunks_over: int
    chunks_failed: int
    rows_read: int
    tasks: int
    done: int
    failed: int
    written: int  # that the sheet accepted


class ScoringRun(Answer):
    run_uuid: str
    sheet: str
    provider: str
    model: str
    categories: list[str]
    status: ScoringState
    wanted: Literal["run", "pause", "cancel"]
    reason: str | None  # why it is paused or failed, for programs
    message: str | None  # the same, for people
    last_row: int
    passes: int
    budget_micro: int | None
    cost_micro: int
    calls: int
    refused: int  # of the calls: 429s
    cache_hits: int
    same_hits: int  # rows that another row's call answered
    tokens_in: int
    tokens_out: int
    created_at: int
    updated_at: int
    finished_at: int | None
    totals: ScoringTotals


class ScoringRunPage(Answer):
    runs: list[ScoringRun]
    next_before: str | None


class ScoringNote(Answer):
    """Why a block of a row is not in the sheet."""

    row: int
    first_category: int
    state: Literal["failed", "refused", "moved"]
    note: str


class ScoringRunDetail(ScoringRun):
    notes: list[ScoringNote]  # the first ones


class ScoringChunk(Answer):
    number: int
    row_start: int
    row_end: int
    status: ScoringChunkState
    retry_count: int
    last_error: str | None
    tasks: int
    done: int
    failed: int
    written: int
    updated_at: int


class ScoringChunkPage(Answer):
    chunks: list[ScoringChunk]
    next_after: str | None


class ScoringControl(Asked):
    """`retry` makes what failed due again, and nothing else."""

    wanted: Literal["run", "pause", "cancel", "retry"]
