"""Scoring that is asked for on the web: sheets, their files, events as a sheet, and what was said of events."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}
ZERO = sa.text("0")


def number(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), **{"nullable": False, **options})


def word(name: str, length: int, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), nullable=nullable)


def upgrade() -> None:
    op.add_column("scoring_runs", number("sheet_id", nullable=True))
    op.add_column("scoring_runs", number("filled_at", nullable=True))
    op.add_column("scoring_runs", number("busy_ms", server_default=ZERO))
    op.add_column("scoring_runs", sa.Column("places", sa.Double(), nullable=True))
    op.add_column("scoring_runs", number("write_delay_ms", nullable=True))
    _sheets()
    op.create_table(
        "scoring_files",
        sa.Column("file_id", KEY, autoincrement=True, nullable=False),
        number("tenant_id"),
        number("sheet_id"),
        number("run_id"),
        number("number"),
        sa.Column("is_there", sa.SmallInteger(), server_default=ZERO, nullable=False),
        word("object_key", 255),
        number("object_bytes"),
        number("created_at"),
        sa.PrimaryKeyConstraint("file_id"),
        sa.UniqueConstraint("object_key", name="uq_scoring_files_object_key"),
        **OPTIONS,
    )
    op.create_index("ix_scoring_files_sheet_id", "scoring_files", ["sheet_id", "run_id", "number"])
    op.create_table(
        "scoring_events",
        number("sheet_id"),
        number("sheet_row"),
        number("tenant_id"),
        number("event_id"),
        sa.PrimaryKeyConstraint("sheet_id", "sheet_row"),
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    op.create_table(
        "event_scores",
        number("event_id"),
        word("category", 200),
        number("tenant_id"),
        number("start_at"),
        sa.Column("score", sa.Double(), nullable=False),
        number("run_id"),
        number("scored_at"),
        sa.PrimaryKeyConstraint("event_id", "category"),
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    op.create_index("ix_event_scores_category", "event_scores", ["tenant_id", "category", "start_at", "event_id"])


def _sheets() -> None:
    op.create_table(
        "scoring_sheets",
        sa.Column("sheet_id", KEY, autoincrement=True, nullable=False),
        word("sheet_uuid", 36),
        number("tenant_id"),
        word("kind", 8),
        word("name", 255),
        word("state", 8),
        word("message", 255, nullable=True),
        sa.Column("wishes", sa.Text(), nullable=False),
        sa.Column("look", sa.Text(), nullable=True),
        sa.Column("spec", sa.Text(), nullable=True),
        number("size_bytes", server_default=ZERO),
        number("received_bytes", server_default=ZERO),
        number("created_by", nullable=True),
        word("locked_token", 36, nullable=True),
        number("locked_until", nullable=True),
        number("created_at"),
        number("updated_at"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_scoring_sheets_tenant_id")),
        sa.PrimaryKeyConstraint("sheet_id"),
        sa.UniqueConstraint("sheet_uuid", name=op.f("uq_scoring_sheets_sheet_uuid")),
        **OPTIONS,
    )
    op.create_index("ix_scoring_sheets_tenant_id", "scoring_sheets", ["tenant_id", "sheet_id"])
    op.create_index("ix_scoring_sheets_state", "scoring_sheets", ["state", "sheet_id"])
