"""What was found out about a provider is remembered for the next process that asks it."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

MARIADB: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}


def upgrade() -> None:
    op.create_table(
        "scoring_found",
        sa.Column("key_digest", sa.String(length=64), nullable=False),
        sa.Column("places", sa.Double(), nullable=False),
        sa.Column("too_many", sa.Double(), nullable=True),
        sa.Column("pace", sa.Double(), nullable=True),
        sa.Column("latency_sec", sa.Double(), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_digest"),
        sqlite_with_rowid=False,
        **MARIADB,
    )
