"""Results whose rows people have moved: the journal follows them, so that each row counts once and where it is.

A row that is read in one place before somebody sorts, and in another one afterwards, has two results, which the sheet
takes both. A later pass finds what is not beside its text any more (`mark`); once the pass is over the sheet is read
again, and each of these gets the row that has its scores (`claim`) or goes (`give_up`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from camserver.domain.scoring import ResultState
from camserver.store.tx import Tx

# A state that no transaction leaves behind.
_UNWANTED = "unwanted"
GONE = "no row holds this text any more"


class Place(NamedTuple):
    """Of a result in the journal."""

    row: int
    first_category: int
    identity: str


class Away(NamedTuple):
    """A result that the sheet has, and no longer in this row."""

    result_id: int
    row: int
    first_category: int
    identity: str


class Claim(NamedTuple):
    """The row where a result was found."""

    result_id: int
    row: int
    first_category: int
    identity: str


async def mark(tx: Tx, run_id: int, left: tuple[Place, ...], back: tuple[Place, ...]) -> None:
    """What stood in these rows is elsewhere, or `back`. A failure is forgotten: its row is asked anew."""
    await _turn(tx, run_id, left, ResultState.WRITTEN, ResultState.AWAY)
    await _turn(tx, run_id, back, ResultState.AWAY, ResultState.WRITTEN)
    await _turn(tx, run_id, left, ResultState.FAILED, _UNWANTED)
    await _remove_unwanted(tx, run_id)


async def _turn(tx: Tx, run_id: int, places: Sequence[Place | Claim], before: str, after: str) -> None:
    if places:
        named = [{name: getattr(one, name) for name in Place._fields} for one in places]
        await tx.at_once(
            "UPDATE scoring_results SET state = :after WHERE run_id = :run_id AND sheet_row = :row "
            "AND first_category = :first_category AND identity = :identity AND state = :before",
            [{"run_id": run_id, "before": str(before), "after": str(after), **one} for one in named],
        )


async def _remove_unwanted(tx: Tx, run_id: int) -> None:
    await tx.run(
        "DELETE FROM scoring_results WHERE run_id = :run_id AND state = :state", run_id=run_id, state=_UNWANTED
    )


async def away(tx: Tx, run_id: int, limit: int) -> tuple[Away, ...]:
    rows = await tx.all(
        "SELECT result_id, sheet_row, first_category, identity FROM scoring_results "
        "WHERE run_id = :run_id AND state = 'away' ORDER BY result_id LIMIT :limit",
        run_id=run_id,
        limit=limit,
    )
    return tuple(Away(row["result_id"], row["sheet_row"], row["first_category"], row["identity"]) for row in rows)


async def claim(tx: Tx, run_id: int, claims: tuple[Claim, ...]) -> None:
    """These are the results of those rows from now on. What was noted there of the same text before goes."""
    await _turn(tx, run_id, claims, ResultState.MOVED, _UNWANTED)
    await _remove_unwanted(tx, run_id)
    await tx.at_once(
        "UPDATE scoring_results SET sheet_row = :row, state = 'written', chunk = COALESCE((SELECT number "
        "FROM scoring_chunks c WHERE c.run_id = :run_id AND c.row_start <= :row AND c.row_end >= :row), chunk) "
        "WHERE result_id = :result_id AND state = 'away'",
        [{"run_id": run_id, "row": one.row, "result_id": one.result_id} for one in claims],
    )


async def give_up(tx: Tx, run_id: int, doubles: tuple[int, ...], gone: tuple[int, ...]) -> None:
    """`doubles`: each row of that text has its own result. `gone`: there is no such row."""
    settled = [(one, _UNWANTED, None) for one in doubles] + [(one, ResultState.MOVED.value, GONE) for one in gone]
    if settled:
        await tx.at_once(
            "UPDATE scoring_results SET state = :state, note = :note WHERE result_id = :result_id AND state = 'away'",
            [{"result_id": one, "state": state, "note": note} for one, state, note in settled],
        )
    await _remove_unwanted(tx, run_id)


async def recount(tx: Tx, run_id: int) -> None:
    """What chunks tell of themselves follows from the journal."""
    await tx.run(_RECOUNT, run_id=run_id)


_OF_CHUNK = """(
  SELECT COUNT(*) FROM scoring_results r WHERE r.run_id = scoring_chunks.run_id
    AND r.sheet_row >= scoring_chunks.row_start AND r.sheet_row <= scoring_chunks.row_end AND r.state {})"""
_RECOUNT = f"""
UPDATE scoring_chunks SET tasks = {_OF_CHUNK.format("<> 'moved'")},
  done = {_OF_CHUNK.format("IN ('scored','written','refused')")},
  failed = {_OF_CHUNK.format("= 'failed'")}, written = {_OF_CHUNK.format("= 'written'")}
WHERE run_id = :run_id AND status = 'completed'"""
