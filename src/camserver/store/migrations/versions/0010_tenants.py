"""Tenants: quotas, switching one off, and erasing one."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0007"


def upgrade() -> None:
    for name in ("cameras_max", "people_max", "sites_max", "kept_bytes_max"):
        op.add_column("tenants", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("disabled", sa.SmallInteger(), server_default=sa.text("0"), nullable=False))
    op.add_column("tenants", sa.Column("erasing_at", sa.BigInteger(), nullable=True))
    op.add_column("tenants", sa.Column("erasing_by", sa.BigInteger(), nullable=True))
    for name in ("erased_rows", "erased_objects", "erased_bytes"):
        op.add_column("tenants", sa.Column(name, sa.BigInteger(), server_default=sa.text("0"), nullable=False))
