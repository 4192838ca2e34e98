"""Live view: streamers, viewings, what admission measured, and the camera to watch now."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0010"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ZERO = sa.text("0")
MARIADB: dict[str, Any] = {"mariadb_charset": "utf8mb4", "mariadb_collate": "utf8mb4_bin", "mariadb_engine": "InnoDB"}


def upgrade() -> None:
    _add_streamers()
    _add_viewings()
    _add_metrics()
    _add_suggestions()
    op.add_column("camera_overrides", sa.Column("suggest_weight", sa.SmallInteger(), nullable=True))


def _add_streamers() -> None:
    op.create_table(
        "streamers",
        sa.Column("streamer_id", sa.String(length=64), nullable=False),
        sa.Column("public_url", sa.String(length=255), server_default="", nullable=False),
        sa.Column("port", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("feed_url", sa.String(length=255), server_default="", nullable=False),
        sa.Column("total_units", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("cpu_percent", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("memory_percent", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("swap_mb", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("overloaded", sa.SmallInteger(), server_default=ZERO, nullable=False),
        sa.Column("overload_at", sa.BigInteger(), nullable=True),
        sa.Column("reported_at", sa.BigInteger(), nullable=True),
        sa.Column("requests_total", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("rejections_total", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("metrics_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("streamer_id"),
        **MARIADB,
    )


def _add_viewings() -> None:
    op.create_table(
        "modal_leases",
        sa.Column("lease_id", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("streamer_id", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.String(length=128), nullable=False),
        sa.Column("session_id", sa.BigInteger(), nullable=True),
        sa.Column("token_id", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=8), server_default="modal", nullable=False),
        sa.Column("quality", sa.String(length=8), server_default="sub", nullable=False),
        sa.Column("units", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("transcode", sa.SmallInteger(), server_default=ZERO, nullable=False),
        sa.Column("transcode_units", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("feed", sa.String(length=8), server_default="wanted", nullable=False),
        sa.Column("feed_reason", sa.String(length=255), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("last_heartbeat", sa.BigInteger(), nullable=False),
        sa.Column("valid_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lease_id"),
        sa.UniqueConstraint("user_id", "kind", name=op.f("uq_modal_leases_user_id_kind")),
        **MARIADB,
    )
    op.create_index("ix_modal_leases_streamer_id", "modal_leases", ["streamer_id"])
    op.create_index("ix_modal_leases_valid_until", "modal_leases", ["valid_until"])
    op.create_index("ix_modal_leases_camera_key", "modal_leases", ["camera_key"])


def _add_metrics() -> None:
    op.create_table(
        "admission_metrics",
        sa.Column("metric_id", KEY, autoincrement=True, nullable=False),
        sa.Column("streamer_id", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("active_modals", sa.Integer(), server_default=ZERO, nullable=False),
        sa.Column("active_suggest", sa.SmallInteger(), server_default=ZERO, nullable=False),
        sa.Column("cpu_percent", sa.Double(), nullable=False),
        sa.Column("memory_percent", sa.Double(), nullable=False),
        sa.Column("requests_total", sa.BigInteger(), nullable=False),
        sa.Column("rejections_total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("metric_id"),
        **MARIADB,
    )
    op.create_index("ix_admission_metrics_recorded_at", "admission_metrics", ["recorded_at"])


def _add_suggestions() -> None:
    op.create_table(
        "suggestions",
        sa.Column("tenant_id", KEY, autoincrement=False, nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=True),
        sa.Column("event_id", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.String(length=32), server_default="", nullable=False),
        sa.Column("score", sa.Double(), server_default=ZERO, nullable=False),
        sa.Column("scored_at", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("since", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("until", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("manual", sa.SmallInteger(), server_default=ZERO, nullable=False),
        sa.Column("rest_until", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.Column("dismissed_at", sa.BigInteger(), server_default=ZERO, nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_suggestions_tenant_id")),
        sa.PrimaryKeyConstraint("tenant_id"),
        **MARIADB,
    )
