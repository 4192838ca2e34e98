"""Search: what events are walked along by, hours in cells, and the tokens of notes and memos."""

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from camserver.domain.texts import comparable, tokens_of

revision = "0009"
down_revision = "0008"

BATCH = 500


def upgrade() -> None:
    op.add_column("events", sa.Column("unknown_flag", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("hourly_stats", sa.Column("cells", sa.String(length=36), nullable=True))
    _create_search()
    _mark_unknown()
    for name, columns in (
        ("ix_events_site_id_start_at", ["site_id", "start_at", "event_id"]),
        ("ix_events_primary_event", ["tenant_id", "primary_event", "start_at", "event_id"]),
        ("ix_events_severity_max", ["tenant_id", "severity_max", "start_at", "event_id"]),
        ("ix_events_unknown_flag", ["tenant_id", "unknown_flag", "start_at", "event_id"]),
    ):
        op.create_index(name, "events", columns, unique=False)
    _index_texts("memo", "SELECT r.event_id, r.tenant_id, e.start_at, r.memo FROM llm_reviews r "
                 "JOIN events e ON e.event_id = r.event_id WHERE r.memo <> '' AND r.event_id > :after "
                 "ORDER BY r.event_id LIMIT 500")  # fmt: skip
    _index_texts("note", "SELECT note_id, tenant_id, created_at, body FROM case_notes WHERE note_id > :after "
                 "ORDER BY note_id LIMIT 500")  # fmt: skip


def _create_search() -> None:
    op.create_table(
        "search_tokens",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("token", sa.String(length=8), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("object_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "kind", "token", "at", "object_id"),
        sqlite_with_rowid=False,
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_search_tokens_object_id", "search_tokens", ["object_id", "kind"], unique=False)
    op.create_table(
        "search_texts",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("object_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("compared", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "object_id"),
        sqlite_with_rowid=False,
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )


def _mark_unknown() -> None:
    # By camera and time: there is no index of frames by their event.
    op.execute(
        """
        UPDATE events SET unknown_flag = 1 WHERE EXISTS (
          SELECT 1 FROM frames f WHERE f.camera_key = events.camera_key
            AND f.captured_at BETWEEN events.start_at AND events.last_seen_at
            AND f.event_id = events.event_id AND f.unknown_flag = 1)"""
    )


def _index_texts(kind: str, select: str) -> None:
    """Splits what is there by the rule of this program, as it does with what comes later."""
    connection = op.get_bind()
    for rows in _batches(connection, select):
        values = [{"kind": kind, "id": row[0], "tenant": row[1], "at": row[2], "text": row[3]} for row in rows]
        connection.execute(
            sa.text(
                "INSERT INTO search_texts (kind, object_id, tenant_id, compared) VALUES (:kind, :id, :tenant, :text)"
            ),
            [{**value, "text": comparable(value["text"])} for value in values],
        )
        tokens = [{**value, "token": token} for value in values for token in sorted(tokens_of(value["text"]))]
        if tokens:
            connection.execute(
                sa.text(
                    "INSERT INTO search_tokens (tenant_id, kind, token, at, object_id) "
                    "VALUES (:tenant, :kind, :token, :at, :id)"
                ),
                tokens,
            )


def _batches(connection: sa.Connection, select: str) -> Iterator[Sequence[Any]]:
    after = 0
    while rows := connection.execute(sa.text(select), {"after": after}).fetchall():
        yield rows
        after = rows[-1][0]
