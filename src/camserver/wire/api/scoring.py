"""Runs that score the rows of a sheet. Money is in millionths of a US dollar."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.domain.scoring_sheets import (
    CONDITIONS_MAX,
    EVENT_CATEGORIES_MAX,
    EVENTS_MAX,
    INSTRUCTIONS_MAX_CHARS,
)
from camserver.wire.api.names import NAME
from camserver.wire.api.shapes import MOMENT_MAX_MS, UUID_PATTERN, Answer, Asked

ScoringState = Literal["running", "paused", "completed", "failed", "cancelled"]
ScoringChunkState = Literal["pending", "running", "writing", "completed", "failed"]


ScoringSheetKind = Literal["file", "google", "folder", "events"]
ScoringSheetState = Literal["coming", "waiting", "looked", "refused"]
Column = Annotated[str, Field(pattern=r"^[A-Za-z]{1,3}$")]
HeaderRow = Annotated[int, Field(ge=0, le=1000)]


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


class ScoringMetrics(Answer):
    processing_ms: int  # of all processes together
    hit_share: float  # of what was answered: without asking
    refused_share: float  # of the calls: 429s
    limit: float | None  # questions in flight at most, as found out
    write_delay_ms: int | None  # how long the sheet took for what it was last given


class ScoringBrought(Answer):
    """The sheet of a run that was asked for on the web."""

    sheet_uuid: str
    kind: ScoringSheetKind
    name: str


class ScoringRun(Answer):
    run_uuid: str
    sheet: str
    brought: ScoringBrought | None  # null: begun by `camserver score`, or the sheet was removed
    has_result: bool  # a filled file can be downloaded
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
    metrics: ScoringMetrics


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


# ---------------------------------------------------------------------------------------------------------------
# Sheets that are brought on the web
# ---------------------------------------------------------------------------------------------------------------


class ScoringOffer(Answer):
    """Whether sheets can be scored here, and within which bounds."""

    is_configured: bool
    provider: str
    model: str
    upload_max_bytes: int
    part_bytes: int  # pieces that a file is sent in
    kept_max_bytes: int  # room for all sheets of the tenant
    endings: list[str]  # of names of files
    has_google: bool  # a key for Google Sheets is configured
    files: list[str]  # of the server's folder, for people who may use it
    running: int  # runs


class ScoringLayout(Asked):
    """Where a sheet holds what; what is left out is as the settings say. A row of 0: none."""

    text_column: Column | None = None
    first_category_column: Column | None = None
    id_column: Annotated[str, Field(pattern=r"^[A-Za-z]{0,3}$")] | None = None
    name_row: Annotated[int, Field(ge=1, le=1000)] | None = None
    definition_row: HeaderRow | None = None
    detail_row: HeaderRow | None = None
    first_data_row: Annotated[int, Field(ge=2, le=1001)] | None = None
    block_size: Annotated[int, Field(ge=1, le=50)] | None = None
    tab: Annotated[str, Field(max_length=100)] | None = None


class ScoringWishes(Asked):
    """What is asked for beside the settings; left out: as they say."""

    layout: ScoringLayout | None = None
    model: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    form: Literal["numeric", "anchors"] | None = None
    instructions: Annotated[str, Field(max_length=INSTRUCTIONS_MAX_CHARS)] = ""


class ScoringSheetAsked(ScoringWishes):
    """`file`: its name and size, the file itself is sent in pieces; `google`: its link; `folder`: a name of the
    server's folder."""

    kind: Literal["file", "google", "folder"]
    name: Annotated[str, Field(min_length=1, max_length=255)]
    size_bytes: Annotated[int, Field(ge=0, lt=2**40)] = 0


class ScoringSearch(Asked):
    """The events that are scored: as the search has them."""

    from_ms: Annotated[int, Field(ge=0, lt=MOMENT_MAX_MS)] | None = None
    to_ms: Annotated[int, Field(ge=0, lt=MOMENT_MAX_MS)] | None = None
    sites: list[Annotated[str, Field(min_length=1, max_length=128)]] = Field(default_factory=list, max_length=50)
    camera_ids: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list, max_length=50)
    primary_events: list[Annotated[str, Field(max_length=32)]] = Field(default_factory=list, max_length=50)
    tags: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list, max_length=10)
    severity_min: Annotated[int, Field(ge=0, le=3)] = 0
    unknown: bool | None = None
    case: Annotated[str, Field(pattern=UUID_PATTERN)] | None = None
    text: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    scores: list[Annotated[str, Field(max_length=220)]] = Field(default_factory=list, max_length=CONDITIONS_MAX)


class ScoringCategory(Asked):
    name: Annotated[str, Field(min_length=1, max_length=200), NAME]
    definition: Annotated[str, Field(max_length=2000)] = ""


class ScoringEventsAsked(Asked):
    """Events of a search, newest first, against categories; each with its picture."""

    name: Annotated[str, Field(min_length=1, max_length=255), NAME]
    search: ScoringSearch
    categories: Annotated[list[ScoringCategory], Field(min_length=1, max_length=EVENT_CATEGORIES_MAX)]
    most: Annotated[int, Field(ge=1, le=EVENTS_MAX)] = 1000
    model: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    form: Literal["numeric", "anchors"] | None = None
    instructions: Annotated[str, Field(max_length=INSTRUCTIONS_MAX_CHARS)] = ""


class ScoringFinding(Answer):
    severity: Literal["error", "warning"]
    problem: str
    where: str  # a cell, row or column; empty: the sheet as a whole
    message: str


class ScoringCheck(Answer):
    """What a sheet holds. `ok`: it can be scored."""

    ok: bool
    rows: int
    distinct_rows: int
    empty_rows: int
    filled_cells: int
    last_row: int
    categories: int
    findings: list[ScoringFinding]  # the first ones


class ScoringEstimate(Answer):
    rows: int
    tasks: int
    unique_calls: int  # that have to be asked
    cache_hits: int
    same: int  # equal to another one of the sheet
    filled: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None  # null: nobody knows the price
    seconds: float
    is_time_measured: bool


class ScoringSheet(Answer):
    sheet_uuid: str
    kind: ScoringSheetKind
    name: str
    state: ScoringSheetState
    message: str | None  # why it is refused
    model: str | None  # that would be asked, once it was looked at
    categories: list[str]
    check: ScoringCheck | None
    estimate: ScoringEstimate | None
    is_priced: bool  # a budget can be kept
    size_bytes: int
    received_bytes: int
    created_at: int
    updated_at: int


class ScoringSheetPage(Answer):
    sheets: list[ScoringSheet]
    next_before: str | None


class ScoringRunAsked(Asked):
    """`budget_micro`: most that it may cost, in millionths of a US dollar; it pauses before that is exceeded."""

    budget_micro: Annotated[int, Field(ge=1, le=10**12)] | None = None
