"""Runs that score the rows of a sheet."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPTIONS: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}


def number(name: str, **options: Any) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), **{"nullable": False, **options})


def word(name: str, length: int, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length=length), nullable=nullable)


def count(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), server_default=sa.text(str(default)), nullable=False)


def upgrade() -> None:
    _runs()
    _chunks()
    _results()
    op.create_table(
        "scoring_cache",
        number("tenant_id"),
        word("question_key", 64),
        sa.Column("scores", sa.Text(), nullable=False),
        word("model", 128),
        number("created_at"),
        sa.PrimaryKeyConstraint("tenant_id", "question_key"),
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    op.create_index("ix_scoring_cache_created_at", "scoring_cache", ["created_at"])
    op.create_table(
        "scoring_limits",
        word("key_digest", 64),
        word("worker", 64),
        sa.Column("places", sa.Double(), nullable=False),
        number("until"),
        sa.PrimaryKeyConstraint("key_digest", "worker"),
        sqlite_with_rowid=False,
        **OPTIONS,
    )


def _runs() -> None:
    zero = sa.text("0")
    op.create_table(
        "scoring_runs",
        sa.Column("run_id", KEY, autoincrement=True, nullable=False),
        word("run_uuid", 36),
        number("tenant_id"),
        sa.Column("sheet", sa.Text(), nullable=False),
        word("sheet_digest", 64),
        sa.Column("spec", sa.Text(), nullable=False),
        word("spec_digest", 64),
        word("status", 16),
        word("wanted", 8),
        word("reason", 16, nullable=True),
        word("message", 255, nullable=True),
        number("last_row"),
        count("passes", 1),
        sa.Column("has_moved", sa.SmallInteger(), server_default=zero, nullable=False),
        number("budget_micro", nullable=True),
        *(
            number(name, server_default=zero)
            for name in (
                "drawn_micro", "cost_micro", "calls", "refused", "cache_hits", "same_hits", "tokens_in", "tokens_out",
            )
        ),
        word("writer_token", 36, nullable=True),
        number("writer_until", nullable=True),
        number("created_at"),
        number("updated_at"),
        number("finished_at", nullable=True),
        sa.CheckConstraint(
            "status IN ('running','paused','completed','failed','cancelled')", name=op.f("ck_scoring_runs_status")
        ),
        sa.CheckConstraint("wanted IN ('run','pause','cancel')", name=op.f("ck_scoring_runs_wanted")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_scoring_runs_tenant_id")),
        sa.PrimaryKeyConstraint("run_id"),
        sa.UniqueConstraint("run_uuid", name=op.f("uq_scoring_runs_run_uuid")),
        **OPTIONS,
    )  # fmt: skip
    op.create_index("ix_scoring_runs_sheet", "scoring_runs", ["tenant_id", "sheet_digest", "run_id"])


def _chunks() -> None:
    op.create_table(
        "scoring_chunks",
        number("run_id"),
        number("number"),
        number("tenant_id"),
        number("row_start"),
        number("row_end"),
        word("status", 16),
        count("retry_count"),
        number("available_at"),
        word("last_error", 255, nullable=True),
        count("tasks"),
        count("done"),
        count("failed"),
        count("written"),
        word("locked_by", 128, nullable=True),
        word("locked_token", 36, nullable=True),
        number("locked_until", nullable=True),
        number("updated_at"),
        sa.CheckConstraint(
            "status IN ('pending','running','writing','completed','failed')", name=op.f("ck_scoring_chunks_status")
        ),
        sa.PrimaryKeyConstraint("run_id", "number"),
        sqlite_with_rowid=False,
        **OPTIONS,
    )
    op.create_index("ix_scoring_chunks_status", "scoring_chunks", ["run_id", "status", "number"])


def _results() -> None:
    op.create_table(
        "scoring_results",
        sa.Column("result_id", KEY, autoincrement=True, nullable=False),
        number("run_id"),
        number("tenant_id"),
        number("chunk"),
        number("sheet_row"),
        count("first_category"),
        word("identity", 32),
        word("state", 8),
        sa.Column("scores", sa.Text(), nullable=True),
        word("question_key", 64),
        word("model", 128, nullable=True),
        word("source", 8),
        word("note", 255, nullable=True),
        number("created_at"),
        number("written_at", nullable=True),
        sa.PrimaryKeyConstraint("result_id"),
        sa.UniqueConstraint("run_id", "sheet_row", "first_category", "identity", name="uq_scoring_results_cell"),
        **OPTIONS,
    )
    op.create_index("ix_scoring_results_state", "scoring_results", ["run_id", "state", "result_id"])
