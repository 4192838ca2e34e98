"""Looking at full strength: per-camera values, errands, clips, camera health."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    _widen_tables()
    _create_camera_health()
    _create_errands()
    _create_clips()


def _widen_tables() -> None:
    added: dict[str, list[sa.Column[object]]] = {
        "camera_overrides": [
            sa.Column("transport", sa.String(length=8), nullable=True),
            sa.Column("tls_pin", sa.String(length=64), nullable=True),
            sa.Column("rotation", sa.SmallInteger(), nullable=True),
            sa.Column("ignore_masks", JSON, nullable=True),
            sa.Column("privacy_masks", JSON, nullable=True),
            sa.Column("zones", JSON, nullable=True),
            sa.Column("mask_clock", sa.SmallInteger(), nullable=True),
            sa.Column("device", sa.String(length=128), nullable=True),
            sa.Column("streams_max", sa.Integer(), nullable=True),
            sa.Column("clip_sec", sa.Double(), nullable=True),
        ],
        "camera_state": [
            sa.Column("health_cause", sa.String(length=32), server_default="", nullable=False),
            sa.Column("issues", JSON, nullable=True),
        ],
        "frames": [
            sa.Column("structure", sa.Double(), nullable=True),
            sa.Column("view_hex", sa.String(length=36), nullable=True),
        ],
        "events": [
            sa.Column("subject", sa.String(length=32), server_default="", nullable=False),
            sa.Column("issue_key", sa.String(length=64), nullable=True),
            sa.Column("cause", sa.String(length=32), server_default="", nullable=False),
        ],
    }
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)
    op.create_index("ix_events_issue_key", "events", ["issue_key"], unique=True)


def _create_camera_health() -> None:
    op.create_table(
        "camera_health",
        sa.Column("camera_key", KEY, autoincrement=False, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("standing", sa.String(length=16), server_default="", nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("memory", JSON, nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["camera_key"],
            ["cameras.camera_key"],
            name=op.f("fk_camera_health_camera_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("camera_key"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )


def _create_errands() -> None:
    op.create_table(
        "errands",
        sa.Column("errand_id", KEY, autoincrement=True, nullable=False),
        sa.Column("errand_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=True),
        sa.Column("nonce", sa.LargeBinary(length=12), nullable=True),
        sa.Column("ciphertext", sa.LargeBinary(length=2048), nullable=True),
        sa.Column("worker_key", sa.BigInteger(), nullable=True),
        sa.Column("generation", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("message", sa.String(length=255), server_default="", nullable=False),
        sa.Column("result", JSON, nullable=True),
        sa.Column("object_key", sa.String(length=255), nullable=True),
        sa.Column("object_bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("object_type", sa.String(length=32), server_default="", nullable=False),
        sa.Column("epoch_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("errand_id"),
        sa.UniqueConstraint("errand_uuid", name=op.f("uq_errands_errand_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_errands_state_expires_at", "errands", ["state", "expires_at"], unique=False)
    op.create_index("ix_errands_expires_at", "errands", ["expires_at"], unique=False)
    op.create_index("ix_errands_epoch_id", "errands", ["epoch_id"], unique=False)


def _create_clips() -> None:
    op.create_table(
        "clips",
        sa.Column("clip_id", KEY, autoincrement=True, nullable=False),
        sa.Column("clip_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("reason", sa.String(length=255), server_default="", nullable=False),
        sa.Column("errand_uuid", sa.String(length=36), nullable=True),
        sa.Column("object_key", sa.String(length=255), nullable=True),
        sa.Column("object_bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("epoch_id", sa.BigInteger(), nullable=True),
        sa.Column("begin_at", sa.BigInteger(), nullable=False),
        sa.Column("end_at", sa.BigInteger(), nullable=False),
        sa.Column("codec", sa.String(length=16), server_default="", nullable=False),
        sa.Column("width", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("height", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("clip_id"),
        sa.UniqueConstraint("clip_uuid", name=op.f("uq_clips_clip_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_clips_event_id", "clips", ["event_id"], unique=True)
    op.create_index("ix_clips_camera_key_begin_at", "clips", ["camera_key", "begin_at"], unique=False)
    op.create_index("ix_clips_state_created_at", "clips", ["state", "created_at"], unique=False)
    op.create_index("ix_clips_epoch_id", "clips", ["epoch_id"], unique=False)
