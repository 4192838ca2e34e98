"""Shares: addresses that open an event or a frame to whoever has them; and answers kept for repeated requests."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "shares",
        sa.Column("share_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("share_uuid", sa.String(length=36), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("object_uuid", sa.String(length=36), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("note", sa.String(length=500), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("opened_count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_opened_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_shares_tenant_id")),
        sa.ForeignKeyConstraint(["user_id"], ["users.user_id"], name=op.f("fk_shares_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("share_id"),
        sa.UniqueConstraint("share_uuid", name=op.f("uq_shares_share_uuid")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_shares_token_hash")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_shares_tenant_id", "shares", ["tenant_id"], unique=False)
    op.create_index("ix_shares_user_id", "shares", ["user_id"], unique=False)
    op.create_table(
        "share_openings",
        sa.Column("share_id", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("hour", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("share_id", "address", "hour"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "request_keys",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("caller", sa.String(length=64), nullable=False),
        sa.Column("key_hash", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "caller", "key_hash"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_request_keys_created_at", "request_keys", ["created_at"], unique=False)
