"""Time in which looks were put off, and for what, is remembered."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

MARIADB: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}


def upgrade() -> None:
    op.create_table(
        "look_pauses",
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("begin_at", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=True),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("camera_key", "begin_at"),
        sqlite_with_rowid=False,
        **MARIADB,
    )
