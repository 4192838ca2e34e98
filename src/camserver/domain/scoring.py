"""A run that scores the rows of a sheet against categories: its settings, states, chunks and keys.

A *task* is one row and one block of categories, which is one question. A *chunk* is a stretch of rows that one
process takes at a time. A result is made durable in the *journal* before anything else happens with it, and counts
as written only after the sheet accepted it (decision 47). Rules only; the stages that follow them are in
`services/scoring`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from camserver.domain.policy import setting
from camserver.domain.sheet_layout import Category, SheetLayout

RETRY_MAX_SEC: Final = 60.0
# Passes over a sheet whose rows people moved meanwhile; who never stops sorting is told so.
PASSES_MAX: Final = 3
ERROR_MAX_CHARS: Final = 255
ScoreForm = Literal["numeric", "anchors"]


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """How rows of a sheet are scored."""

    model: str = setting("", "Model that scores; empty: that of [llm].")
    fallback_models: tuple[str, ...] = setting(
        (), "Models of the same provider that are asked, in this order, where the answers of the first are of no use."
    )
    form: Literal["numeric", "anchors"] = setting(
        "numeric",
        "How a model says a score: numeric (0.00 to 1.00), or anchors, one of the phrases Core .95, Strong .80, "
        "Reasonable .55, Weak .25, None .05.",
    )
    temperature: float = setting(
        0.0, "Temperature of the model; those that take none are asked without.", min=0, max=2
    )
    answer_max_tokens: int = setting(
        1000, "Most tokens of one answer, a model's own thinking included.", min=50, max=100_000
    )
    chunk_rows: int = setting(500, "Rows of a chunk.", min=1, max=10_000)
    chunks_at_once: int = setting(8, "Chunks that one process works on at once.", min=1, max=64)
    chunk_retries: int = setting(3, "How often a chunk that failed is tried again.", min=0, max=100)
    concurrency_start: int = setting(
        4, "Questions in flight at first; how many more fit is found out.", min=1, max=1000
    )
    concurrency_max: int = setting(256, "Most questions in flight.", min=1, max=1000)
    cut_factor: float = setting(
        0.9, "What is left of the questions in flight after the provider refused one as too many.", min=0.1, max=0.99
    )
    clean_batches: int = setting(
        1, "So many times all questions in flight must be answered before one more is sent at once.", min=1, max=100
    )
    network_retries: int = setting(
        8, "How often a question is sent again after the network or the provider failed.", min=0, max=100
    )
    reasks: int = setting(
        2, "How often a model is asked again, with what was wrong, after an answer that is of no use.", min=0, max=10
    )
    flush_rows: int = setting(50, "Results that are given to the sheet at once, at least.", min=1, max=5000)
    flush_interval_sec: float = setting(
        2.0, "Results wait no longer than this before they are given to the sheet.", min=0.1, max=600
    )
    write_retries: int = setting(5, "How often giving results to the sheet is tried again.", min=0, max=100)
    cache_days: int = setting(30, "How long an answer is used again for the same question.", min=0, max=3650)
    cache_max: int = setting(1_000_000, "Most answers kept for that; the oldest go first.", min=0, max=100_000_000)
    runs_at_once: int = setting(2, "Runs asked for on the web that one process works on at once.", min=1, max=16)
    upload_max_bytes: int = setting(
        100_000_000, "Largest sheet that can be uploaded.", min=1_000_000, max=2_000_000_000
    )
    kept_max_bytes: int = setting(
        1_000_000_000, "Room for uploaded sheets, for each tenant.", min=1_000_000, max=1_000_000_000_000
    )
    sheet_days: int = setting(90, "How long a sheet that nobody uses is kept.", min=1, max=3650)
    folder: str = setting(
        "",
        "Folder of the server whose sheets people of the first tenant may have scored where they are; empty: none.",
    )


class RunStatus(StrEnum):
    RUNNING = "running"  # or waiting for a process that goes on with it
    PAUSED = "paused"  # by a person, or because something is in the way that only a person can remove
    COMPLETED = "completed"  # every row was seen to; single rows may have failed
    FAILED = "failed"  # chunks failed more often than they are tried again
    CANCELLED = "cancelled"


OVER: Final = frozenset({RunStatus.COMPLETED, RunStatus.CANCELLED})


class PauseReason(StrEnum):
    """Why a run is paused; stable, for machines."""

    ASKED = "asked"
    QUOTA = "quota"  # the provider's money or allowance is used up
    BUDGET = "budget"  # the run's own
    KEY = "bad_key"
    REQUEST = "bad_request"  # the provider can't use any question
    SHEET = "sheet"


class ChunkStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    WRITING = "writing"  # every row is in the journal, not every one in the sheet
    COMPLETED = "completed"
    FAILED = "failed"


class ResultState(StrEnum):
    SCORED = "scored"  # in the journal, not in the sheet
    WRITTEN = "written"
    AWAY = "away"  # written, and its row is elsewhere by now: it is looked for before the run ends
    REFUSED = "refused"  # somebody typed into the cells, or they are protected
    MOVED = "moved"  # no row holds this text any more
    FAILED = "failed"  # no model gave an answer of use; the cells stay empty


class Source(StrEnum):
    """Where a result comes from."""

    CALL = "call"
    SAME = "same"  # a row with the same question was asked in this run
    CACHE = "cache"


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    number: int  # from 1
    row_start: int
    row_end: int  # inclusive

    @property
    def name(self) -> str:
        return f"chunk-{self.number:04}"


def plan_chunks(first_row: int, last_row: int, rows: int) -> list[ChunkPlan]:
    """Stretches of `rows` rows that cover a sheet; none when it is empty."""
    return [
        ChunkPlan(number, start, min(start + rows - 1, last_row))
        for number, start in enumerate(range(first_row, last_row + 1, rows), start=1)
    ]


def retry_delay_sec(failures: int) -> float:
    """How long to wait after that many failures in a row."""
    return min(RETRY_MAX_SEC, 2.0 ** min(failures, 16))


def is_chunk_tried_again(retry_count: int, policy: ScoringPolicy) -> bool:
    return retry_count < policy.chunk_retries


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What makes two runs the same: the same command goes on with a run of the same spec."""

    provider: str
    base_url: str | None
    model: str
    fallback_models: tuple[str, ...]
    form: ScoreForm
    temperature: float
    answer_max_tokens: int
    instructions: str
    layout: SheetLayout
    categories: tuple[Category, ...]

    def as_json(self) -> str:
        return canonical(asdict(self))

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.as_json().encode()).hexdigest()

    @staticmethod
    def from_json(text: str) -> "RunSpec":
        held = json.loads(text)
        held["layout"] = SheetLayout(**held["layout"])
        held["categories"] = tuple(Category(**one) for one in held["categories"])
        held["fallback_models"] = tuple(held["fallback_models"])
        return RunSpec(**held)


def canonical(document: object) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(document, sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def question_key(
    *,
    utterance: str,
    categories: Sequence[Category],
    system: str,
    provider: str,
    model: str,
    temperature: float,
    schema: Any,
    pictures: Sequence[str] = (),
) -> str:
    """By which an answer is found again: everything that the answer may depend on. `pictures` are their digests."""
    held = {
        "utterance": utterance,
        "categories": [[one.name, one.definition, one.detail] for one in categories],
        "prompt": system,
        "provider": provider,
        "model": model,
        "temperature": temperature,
        "schema": schema,
        "pictures": list(pictures),
    }
    return hashlib.sha256(canonical(held).encode()).hexdigest()
