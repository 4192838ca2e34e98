"""What is told of a run to others: its report, its chunks and what the sheet has. Who asks has read the rows."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from camserver.domain.scoring import ChunkPlan, RunSpec

# What others know: a chunk that is being written is still running.
_SEEN_FROM_OUTSIDE = {"writing": "running"}
# What is in the journal with scores.
_ANSWERED = ("written", "away", "scored", "refused", "moved")


def share(part: int, whole: int) -> float:
    return round(part / whole, 5) if whole else 0.0


def metrics(run: Mapping[str, Any], answered: int) -> dict[str, Any]:
    """How a run went, in the figures that operators watch. `answered` are tasks with scores."""
    return {
        "processing_ms": run["busy_ms"],  # of all processes together
        "hit_share": share(run["cache_hits"] + run["same_hits"], answered),
        "refused_share": share(run["refused"], run["calls"]),  # 429s
        "limit": run["places"],  # questions in flight at most, as found out
        "write_delay_ms": run["write_delay_ms"],  # of the sheet, the last time
    }


def report(
    run: Mapping[str, Any],
    spec: RunSpec,
    totals: Mapping[str, int],
    states: Mapping[str, int],
    notes: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What became of a run, in figures and with a note for each row that is not in the sheet."""
    over_ms = run["finished_at"] or run["updated_at"]
    found = metrics(run, sum(states.get(name, 0) for name in _ANSWERED))
    return {
        **{name: run[name] for name in ("run_uuid", "sheet", "status", "reason", "message")},
        "provider": spec.provider,
        "model": spec.model,
        "categories": len(spec.categories),
        **{name: run[name] for name in ("last_row", "passes")},
        "totals": dict(totals),
        "results": dict(states),
        "calls": run["calls"],
        "refused_429": run["refused"],
        "refused_share": found["refused_share"],
        **{name: run[name] for name in ("cache_hits", "same_hits")},
        "hit_share": found["hit_share"],
        **{name: run[name] for name in ("tokens_in", "tokens_out")},
        "cost_usd": run["cost_micro"] / 1_000_000,
        "budget_usd": None if run["budget_micro"] is None else run["budget_micro"] / 1_000_000,
        "began_at": moment(run["created_at"]),
        "seconds": round((over_ms - run["created_at"]) / 1000, 3),
        "processing_seconds": round(found["processing_ms"] / 1000, 3),
        "limit": found["limit"],
        "write_delay_sec": None if found["write_delay_ms"] is None else found["write_delay_ms"] / 1000,
        "notes": [dict(one) for one in notes],
    }


def chunk_meta(chunk: Mapping[str, Any]) -> dict[str, Any]:
    plan = ChunkPlan(chunk["number"], chunk["row_start"], chunk["row_end"])
    return {
        "chunk_id": plan.name,
        "row_start": plan.row_start,
        "row_end": plan.row_end,
        "status": _SEEN_FROM_OUTSIDE.get(chunk["status"], chunk["status"]),
        "retry_count": chunk["retry_count"],
        "last_error": chunk["last_error"],
        "updated_at": moment(chunk["updated_at"]),
    }


def block_name(row: int, first_category: int, block_size: int) -> str:
    """row:block, as people number rows and from block 0 on."""
    return f"{row}:{first_category // block_size}"


def moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
