"""Delegation: pins, labels that cameras need, drains, loads, quotas and feature flags."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    zero = sa.text("0")
    added: dict[str, list[sa.Column[object]]] = {
        "tenants": [sa.Column("cameras_running_max", sa.BigInteger(), nullable=True)],
        "cameras": [
            sa.Column("pinned_worker_key", sa.BigInteger(), nullable=True),
            sa.Column("needs_labels", JSON, nullable=True),
        ],
        "workers": [sa.Column("drain_wanted", sa.SmallInteger(), server_default=zero, nullable=False)],
        "camera_sessions": [
            sa.Column("wanted_worker_key", sa.BigInteger(), nullable=True),
            sa.Column("load_cpu", sa.Double(), server_default=zero, nullable=False),
            sa.Column("load_gpu", sa.Double(), server_default=zero, nullable=False),
            sa.Column("load_mem", sa.Double(), server_default=zero, nullable=False),
        ],
    }
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "feature_flags",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.String(length=64), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "site_id", "name"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
