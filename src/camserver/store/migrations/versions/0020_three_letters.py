"""Texts are found by three letters that follow each other, too, where they are written without spaces."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from camserver.domain.texts import tokens_of

revision = "0020"
down_revision = "0019"

BATCH = 500


def upgrade() -> None:
    connection = op.get_bind()
    for kind in ("memo", "note"):
        for rows in _batches(connection, kind):
            missing = _missing(connection, kind, {row[0]: (row[1], row[2]) for row in rows})
            if missing:
                connection.execute(
                    sa.text(
                        "INSERT INTO search_tokens (tenant_id, kind, token, at, object_id) "
                        "VALUES (:tenant_id, :kind, :token, :at, :object_id)"
                    ),
                    missing,
                )


def _batches(connection: sa.Connection, kind: str) -> Iterator[Sequence[Any]]:
    select = sa.text(
        "SELECT object_id, tenant_id, compared FROM search_texts WHERE kind = :kind AND object_id > :after "
        f"ORDER BY object_id LIMIT {BATCH}"
    )
    after = 0
    while rows := connection.execute(select, {"kind": kind, "after": after}).fetchall():
        yield rows
        after = rows[-1][0]


def _missing(connection: sa.Connection, kind: str, texts: dict[int, tuple[int, str]]) -> list[dict[str, object]]:
    """The tokens that texts are not found by yet, at the time of those that they are found by. What is compared is
    the text itself, folded, so it falls into the same tokens."""
    select = sa.text(
        "SELECT object_id, at, token FROM search_tokens WHERE kind = :kind AND object_id IN :object_ids"
    ).bindparams(sa.bindparam("object_ids", expanding=True))
    known: dict[int, set[str]] = {}
    at: dict[int, int] = {}
    for object_id, token_at, token in connection.execute(select, {"kind": kind, "object_ids": list(texts)}):
        known.setdefault(object_id, set()).add(token)
        at[object_id] = token_at
    return [
        {"tenant_id": texts[one][0], "kind": kind, "token": token, "at": at[one], "object_id": one}
        for one, tokens in known.items()
        for token in sorted(tokens_of(texts[one][1]) - tokens)
    ]
