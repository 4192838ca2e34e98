"""What notes and memos are found by: rows of tokens, written in the transaction of the text, gone with it.

The rule is `domain/texts.py`, the same for the three databases. Who may search in texts is not asked here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from camserver.domain.texts import Query, comparable, tokens_of
from camserver.store.sql import Sql
from camserver.store.tx import Scoped, Tx

MEMO, NOTE = "memo", "note"
# Texts that are looked at for one query of notes; cases and their notes are made by people, so there are few.
NOTES_MAX = 1_000
# What MariaDB's TEXT holds. A note only comes to more by signs that stand for whole words, such as ㍿.
COMPARED_MAX_BYTES = 65_535
# Up to this a token's texts are counted, to begin with the one that the fewest have.
COUNTED_MAX = 1_000
# A token with no more texts than these is followed before others are counted.
FEW = 50


async def put_memo(tx: Tx, tenant_id: int, event_id: int, memo: str) -> None:
    """A memo is found at the time its event began."""
    # Held until the memo is there: whoever finds that the event began earlier moves its words then.
    row = await tx.one("SELECT start_at FROM events WHERE event_id = :event_id FOR SHARE", event_id=event_id)
    if row is None or not memo:
        return
    await drop_memos(tx, [event_id])
    await tx.run(_INSERT_TEXT, tenant_id=tenant_id, kind=MEMO, object_id=event_id, compared=_compared(memo))
    rows = _rows(MEMO, event_id, memo, row["start_at"])
    await tx.at_once(_INSERT_TOKEN, [{"tenant_id": tenant_id, **one} for one in rows])


async def put_note(tx: Scoped, note_id: int, body: str, at_ms: int) -> None:
    await tx.run(_INSERT_TEXT, kind=NOTE, object_id=note_id, compared=_compared(body))
    await tx.many(_INSERT_TOKEN, _rows(NOTE, note_id, body, at_ms))


def _compared(text: str) -> str:
    return comparable(text).encode()[:COMPARED_MAX_BYTES].decode(errors="ignore")


def _rows(kind: str, object_id: int, text: str, at_ms: int) -> list[dict[str, object]]:
    return [{"kind": kind, "token": token, "at": at_ms, "object_id": object_id} for token in sorted(tokens_of(text))]


async def move_events(tx: Tx, starts: Mapping[int, int]) -> None:
    """After events, by their ids, were found to have begun earlier: tags, scores and words are in the order of that
    time."""
    moves = [{"event_id": event_id, "start_at": start_at} for event_id, start_at in starts.items()]
    if not moves:
        return
    for table in ("event_tags", "event_scores"):
        await tx.by_key(f"UPDATE {table} SET start_at = :start_at WHERE event_id = :event_id", moves)
    # Few events have one.
    rows = await tx.all(
        "SELECT object_id FROM search_texts WHERE kind = 'memo' AND object_id IN (:event_ids...)",
        event_ids=list(starts),
    )
    noted = {row["object_id"] for row in rows}
    await tx.many(
        "UPDATE search_tokens SET at = :start_at WHERE object_id = :event_id AND kind = 'memo'",
        [move for move in moves if move["event_id"] in noted],
    )


async def drop_memos(tx: Tx, event_ids: Sequence[int]) -> int:
    """How many rows that were."""
    count = 0
    for table in ("search_tokens", "search_texts"):
        count += await tx.run(
            f"DELETE FROM {table} WHERE kind = 'memo' AND object_id IN (:event_ids...)", event_ids=list(event_ids)
        )
    return count


_INSERT_TEXT = """
INSERT INTO search_texts (kind, object_id, tenant_id, compared) VALUES (:kind, :object_id, :tenant_id, :compared)"""
_INSERT_TOKEN = """
INSERT INTO search_tokens (tenant_id, kind, token, at, object_id)
VALUES (:tenant_id, :kind, :token, :at, :object_id)"""


@dataclass(frozen=True, slots=True)
class Condition:
    """Clauses about one text, and their parameters."""

    clauses: str
    params: dict[str, object]


def holds(kind: str, object_column: str, query: Query) -> Condition:
    """That the text of an object holds everything of the query.

    The text alone says so. Its tokens lead to it: looking one up takes as long as comparing the text, and a word of
    Japanese has several.
    """
    params: dict[str, object] = {f"part_{number}": part for number, part in enumerate(query.parts)}
    compared = " AND ".join(f"{_FIND.format(number=number)} > 0" for number in range(len(query.parts)))
    clause = (
        f" AND EXISTS (SELECT 1 FROM search_texts x WHERE x.kind = '{kind}' AND x.object_id = {object_column} "
        f"AND x.tenant_id = :tenant_id AND {compared}{ONE_BY_ONE})"
    )
    return Condition(clause, params)


# Replaced by what each database calls it.
_FIND = "INSTR(x.compared, :part_{number})"


# At the end of an EXISTS about few rows. Else PostgreSQL may take it for a join, and read all that could be joined.
ONE_BY_ONE = "/* one by one */"


@lru_cache(maxsize=512)
def portable(text: str) -> Sql:
    """PostgreSQL has another name for finding a text in a text, and a way to look rows up one by one."""
    postgres = text.replace("INSTR(", "STRPOS(").replace(ONE_BY_ONE, " OFFSET 0")
    return Sql(text.replace(ONE_BY_ONE, ""), postgres=postgres)


async def rarest(tx: Scoped, kind: str, tokens: Iterable[str]) -> tuple[str, int]:
    """The token that the fewest texts have, as far as is counted, and how many those are."""
    counted: list[tuple[int, str]] = []
    for token in tokens:
        row = await tx.one(
            "SELECT COUNT(*) AS texts FROM (SELECT 1 AS one FROM search_tokens WHERE tenant_id = :tenant_id "
            f"AND kind = :kind AND token = :token LIMIT {COUNTED_MAX}) q",
            kind=kind,
            token=token,
        )
        counted.append((0 if row is None else int(row["texts"]), token))
        if counted[-1][0] <= FEW:
            break
    texts, token = min(counted)
    return token, texts


async def cases_noted(tx: Scoped, query: Query) -> tuple[dict[int, str], bool]:
    """Cases with a note that holds the query, each with its newest such note; and whether there may be more."""
    token, texts = await rarest(tx, NOTE, query.tokens)
    condition = holds(NOTE, "w.object_id", query)
    rows = await tx.all(
        portable(
            "SELECT n.case_id, n.body FROM (SELECT at, object_id FROM search_tokens WHERE tenant_id = :tenant_id "
            f"AND kind = 'note' AND token = :token ORDER BY at DESC, object_id DESC LIMIT {NOTES_MAX}) w "
            f"JOIN case_notes n ON n.note_id = w.object_id WHERE n.tenant_id = :tenant_id{condition.clauses} "
            "ORDER BY w.at DESC, w.object_id DESC"
        ),
        token=token,
        **condition.params,
    )
    found: dict[int, str] = {}
    for row in rows:
        found.setdefault(row["case_id"], row["body"])
    return found, texts >= NOTES_MAX
