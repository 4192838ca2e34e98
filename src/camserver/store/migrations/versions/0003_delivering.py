"""Deciding and delivering: receivers, rules of telling, archives, reviews, cases, statistics, duties."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
STATUSES = "status IN ('queued','delayed','running','done','dead','skipped','suppressed')"


def upgrade() -> None:
    # Nothing was ever written to these two; their keys change.
    op.drop_table("cooldowns")
    op.drop_table("notifications")
    if op.get_bind().dialect.name == "sqlite":
        _rebuild_deliveries()
    else:
        _widen_deliveries()
    _index_deliveries()
    _create_telling()
    _create_archive()
    _create_reviews()
    _create_cases()
    _widen_evidence()
    _create_figures()
    _create_dispatchers()
    _create_incident_reviews()
    _index_jobs()
    op.add_column("camera_overrides", sa.Column("hints", JSON, nullable=True))


def _index_jobs() -> None:
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        return  # its index of claims begins with the status
    where = sa.text("status IN ('dead','skipped')")
    op.create_index(
        "ix_inference_jobs_given_up",
        "inference_jobs",
        ["tenant_id", "job_id"],
        postgresql_where=where,
        sqlite_where=where,
    )


def _widen_deliveries() -> None:
    op.alter_column("deliveries", "status", type_=sa.String(16), existing_type=sa.String(8), existing_nullable=False)
    for name in ("site_id", "camera_key"):
        op.alter_column("deliveries", name, nullable=True, existing_type=sa.BigInteger())
    for column in (
        sa.Column("receiver_id", sa.BigInteger(), nullable=True),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("once_key", sa.String(length=96), nullable=True),
        sa.Column("request", JSON, nullable=True),
        sa.Column("result", JSON, nullable=True),
    ):
        op.add_column("deliveries", column)
    op.create_check_constraint(op.f("ck_deliveries_status"), "deliveries", STATUSES)
    op.create_unique_constraint(op.f("uq_deliveries_once_key"), "deliveries", ["once_key"])


def _rebuild_deliveries() -> None:
    """SQLite changes no column of a table that is there."""
    op.drop_index("ix_deliveries_status_available_at", "deliveries")
    op.rename_table("deliveries", "deliveries_before")
    _create_deliveries()
    columns = (
        "delivery_id, delivery_uuid, tenant_id, site_id, camera_key, kind, reason, frame_id, event_id, incident_id, "
        "status, attempt, available_at, locked_by, locked_token, locked_until, last_error, created_at, finished_at"
    )
    op.execute(f"INSERT INTO deliveries ({columns}) SELECT {columns} FROM deliveries_before")
    op.drop_table("deliveries_before")
    op.create_index(
        "ix_deliveries_status_available_at", "deliveries", ["status", "available_at", "delivery_id"], unique=False
    )


def _create_deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("delivery_id", KEY, autoincrement=True, nullable=False),
        sa.Column("delivery_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=True),
        sa.Column("camera_key", sa.BigInteger(), nullable=True),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("frame_id", sa.BigInteger(), nullable=True),
        sa.Column("event_id", sa.BigInteger(), nullable=True),
        sa.Column("incident_id", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("available_at", sa.BigInteger(), nullable=False),
        sa.Column("locked_by", sa.String(length=128), nullable=True),
        sa.Column("locked_token", sa.String(length=36), nullable=True),
        sa.Column("locked_until", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("receiver_id", sa.BigInteger(), nullable=True),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("once_key", sa.String(length=96), nullable=True),
        sa.Column("request", JSON, nullable=True),
        sa.Column("result", JSON, nullable=True),
        sa.CheckConstraint(STATUSES, name=op.f("ck_deliveries_status")),
        sa.PrimaryKeyConstraint("delivery_id"),
        sa.UniqueConstraint("delivery_uuid", name=op.f("uq_deliveries_delivery_uuid")),
        sa.UniqueConstraint("once_key", name=op.f("uq_deliveries_once_key")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )


def _index_deliveries() -> None:
    """Partial indexes where the database has them; MariaDB has none and gets whole ones led by the status."""
    op.create_index("ix_deliveries_tenant_id", "deliveries", ["tenant_id", "delivery_id"], unique=False)
    op.create_index("ix_deliveries_parent_id", "deliveries", ["parent_id"], unique=False)
    op.create_index("ix_deliveries_event_id", "deliveries", ["event_id"], unique=False)
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        op.create_index("ix_deliveries_receiver", "deliveries", ["status", "receiver_id", "delivery_id"])
        op.create_index("ix_deliveries_kind", "deliveries", ["status", "kind", "delivery_id"])
        return
    for name, columns, where in (
        ("receiver", ["receiver_id", "delivery_id"], "status = 'queued'"),
        ("kind", ["kind", "delivery_id"], "status = 'queued' AND receiver_id IS NULL"),
        ("running", ["locked_until"], "status = 'running'"),
    ):
        op.create_index(
            f"ix_deliveries_{name}",
            "deliveries",
            columns,
            postgresql_where=sa.text(where),
            sqlite_where=sa.text(where),
        )


def _create_telling() -> None:
    op.create_table(
        "receivers",
        sa.Column("receiver_id", KEY, autoincrement=True, nullable=False),
        sa.Column("receiver_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("enabled", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("config", JSON, nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=True),
        sa.Column("nonce", sa.LargeBinary(length=12), nullable=True),
        sa.Column("ciphertext", sa.LargeBinary(length=16384), nullable=True),
        sa.Column("language", sa.String(length=8), server_default="ja", nullable=False),
        sa.Column("hourly_cap", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_ok_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.Column("last_error_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_receivers_tenant_id")),
        sa.PrimaryKeyConstraint("receiver_id"),
        sa.UniqueConstraint("receiver_uuid", name=op.f("uq_receivers_receiver_uuid")),
        sa.UniqueConstraint("tenant_id", "name", name=op.f("uq_receivers_tenant_id_name")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_table(
        "notify_rules",
        sa.Column("rule_id", KEY, autoincrement=True, nullable=False),
        sa.Column("rule_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", sa.String(length=128), server_default="", nullable=False),
        sa.Column("enabled", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("site_ids", JSON, nullable=True),
        sa.Column("camera_keys", JSON, nullable=True),
        sa.Column("primary_events", JSON, nullable=True),
        sa.Column("min_severity", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("receiver_ids", JSON, nullable=True),
        sa.Column("quiet", JSON, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_notify_rules_tenant_id")),
        sa.PrimaryKeyConstraint("rule_id"),
        sa.UniqueConstraint("rule_uuid", name=op.f("uq_notify_rules_rule_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_notify_rules_tenant_id_position", "notify_rules", ["tenant_id", "position"], unique=False)
    op.create_table(
        "snoozes",
        sa.Column("snooze_id", KEY, autoincrement=True, nullable=False),
        sa.Column("snooze_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=True),
        sa.Column("camera_key", sa.BigInteger(), nullable=True),
        sa.Column("receiver_id", sa.BigInteger(), nullable=True),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(length=255), server_default="", nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_snoozes_tenant_id")),
        sa.PrimaryKeyConstraint("snooze_id"),
        sa.UniqueConstraint("snooze_uuid", name=op.f("uq_snoozes_snooze_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_snoozes_tenant_id_until", "snoozes", ["tenant_id", "until"], unique=False)
    op.create_table(
        "notifications",
        sa.Column("notification_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("delivery_id", sa.BigInteger(), nullable=False),
        sa.Column("receiver_id", sa.BigInteger(), nullable=True),
        sa.Column("site_id", sa.BigInteger(), nullable=True),
        sa.Column("camera_key", sa.BigInteger(), nullable=True),
        sa.Column("event_id", sa.BigInteger(), nullable=True),
        sa.Column("incident_id", sa.BigInteger(), nullable=True),
        sa.Column("channel", sa.String(length=32), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("suppressed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("notification_id"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_notifications_delivery_id", "notifications", ["delivery_id"], unique=False)
    op.create_index("ix_notifications_tenant_id_sent_at", "notifications", ["tenant_id", "sent_at"], unique=False)
    op.create_table(
        "cooldowns",
        sa.Column("receiver_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("scope", sa.String(length=32), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("suppressed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("receiver_id", "camera_key", "scope"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "receiver_hours",
        sa.Column("receiver_id", sa.BigInteger(), nullable=False),
        sa.Column("hour_at", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("sent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("suppressed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("receiver_id", "hour_at"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "push_subscriptions",
        sa.Column("subscription_id", KEY, autoincrement=True, nullable=False),
        sa.Column("subscription_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("endpoint", sa.Text(), nullable=False),
        sa.Column("endpoint_hash", sa.String(length=64), nullable=False),
        sa.Column("p256dh", sa.String(length=128), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("nonce", sa.LargeBinary(length=12), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(length=2048), nullable=False),
        sa.Column("language", sa.String(length=8), server_default="ja", nullable=False),
        sa.Column("user_agent", sa.String(length=255), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_ok_at", sa.BigInteger(), nullable=True),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_push_subscriptions_tenant_id")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_push_subscriptions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("subscription_id"),
        sa.UniqueConstraint("endpoint_hash", name=op.f("uq_push_subscriptions_endpoint_hash")),
        sa.UniqueConstraint("subscription_uuid", name=op.f("uq_push_subscriptions_subscription_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_push_subscriptions_user_id", "push_subscriptions", ["user_id"], unique=False)


def _create_archive() -> None:
    op.create_table(
        "drive_objects",
        sa.Column("object_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("receiver_id", sa.BigInteger(), nullable=False),
        sa.Column("frame_id", sa.BigInteger(), nullable=True),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=True),
        sa.Column("external_id", sa.String(length=255), nullable=False),
        sa.Column("path", sa.String(length=512), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("retention_class", sa.String(length=16), nullable=False),
        sa.Column("archived_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("object_id"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_drive_objects_case_id", "drive_objects", ["case_id"], unique=False)
    op.create_index("ix_drive_objects_frame_id", "drive_objects", ["frame_id"], unique=False)
    op.create_index(
        "ix_drive_objects_receiver_id_expires_at", "drive_objects", ["receiver_id", "expires_at"], unique=False
    )
    op.create_table(
        "archive_days",
        sa.Column("receiver_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("suppressed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("receiver_id", "camera_key", "day"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )


def _create_reviews() -> None:
    op.create_table(
        "llm_reviews",
        sa.Column("review_id", KEY, autoincrement=True, nullable=False),
        sa.Column("review_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("frame_id", sa.BigInteger(), nullable=False),
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("label", sa.String(length=32), nullable=False),
        sa.Column("memo", sa.Text(), nullable=False),
        sa.Column("tokens_in", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens_out", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("review_id"),
        sa.UniqueConstraint("event_id", name=op.f("uq_llm_reviews_event_id")),
        sa.UniqueConstraint("review_uuid", name=op.f("uq_llm_reviews_review_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_llm_reviews_camera_key_created_at", "llm_reviews", ["camera_key", "created_at"], unique=False)
    op.create_table(
        "llm_days",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("calls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens_in", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("tokens_out", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_micro", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "day"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )


def _create_cases() -> None:
    op.create_table(
        "cases",
        sa.Column("case_id", KEY, autoincrement=True, nullable=False),
        sa.Column("case_uuid", sa.String(length=36), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("hold", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("settled", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_by", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_cases_tenant_id")),
        sa.PrimaryKeyConstraint("case_id"),
        sa.UniqueConstraint("case_uuid", name=op.f("uq_cases_case_uuid")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_cases_tenant_id_state", "cases", ["tenant_id", "state", "case_id"], unique=False)
    op.create_table(
        "case_items",
        sa.Column("item_id", KEY, autoincrement=True, nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("object_id", sa.BigInteger(), nullable=False),
        sa.Column("object_uuid", sa.String(length=36), nullable=False),
        sa.Column("happened_at", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("holds", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("added_by", sa.BigInteger(), nullable=True),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_id"], ["cases.case_id"], name=op.f("fk_case_items_case_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("item_id"),
        sa.UniqueConstraint("case_id", "kind", "object_id", name=op.f("uq_case_items_case_id_kind_object_id")),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_case_items_kind_object_id", "case_items", ["kind", "object_id"], unique=False)
    op.create_table(
        "case_notes",
        sa.Column("note_id", KEY, autoincrement=True, nullable=False),
        sa.Column("case_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["case_id"], ["cases.case_id"], name=op.f("fk_case_notes_case_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_case_notes_case_id", "case_notes", ["case_id"], unique=False)


def _widen_evidence() -> None:
    for name in ("frames", "events"):
        op.add_column(name, sa.Column("own_class", sa.String(length=16), nullable=True))
        op.add_column(name, sa.Column("keep_until", sa.BigInteger(), nullable=True))
    op.create_index("ix_events_best_frame_id", "events", ["best_frame_id"], unique=False)
    op.create_index(
        "ix_audit_log_object", "audit_log", ["tenant_id", "object_kind", "object_id", "entry_id"], unique=False
    )


def _create_figures() -> None:
    op.create_table(
        "camera_usage",
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("retention_class", sa.String(length=16), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("pictures", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("day_bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("oldest_at", sa.BigInteger(), nullable=True),
        sa.Column("counted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("camera_key", "retention_class"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "hourly_stats",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("camera_key", sa.BigInteger(), nullable=False),
        sa.Column("hour_at", sa.BigInteger(), nullable=False),
        sa.Column("looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("looks_failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("analyzed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("detected", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("unknown", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("events", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("severity_max", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("by_event", JSON, nullable=True),
        sa.Column("bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "camera_key", "hour_at"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_hourly_stats_hour_at", "hourly_stats", ["hour_at"], unique=False)
    op.create_table(
        "daily_summaries",
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("site_id", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("body", JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "site_id", "day"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sweep_reports",
        sa.Column("report_id", KEY, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("what", sa.String(length=32), nullable=False),
        sa.Column("count", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("reason", sa.String(length=255), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("report_id"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_index("ix_sweep_reports_tenant_id_at", "sweep_reports", ["tenant_id", "at"], unique=False)


def _create_dispatchers() -> None:
    op.create_table(
        "duties",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("owner", sa.String(length=128), nullable=False),
        sa.Column("token", sa.String(length=36), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )
    op.create_table(
        "analyzers",
        sa.Column("dispatcher", sa.String(length=128), nullable=False),
        sa.Column("url", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("in_flight", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("concurrency", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("latency_ms", sa.Integer(), nullable=True),
        sa.Column("last_error", sa.String(length=255), nullable=True),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("dispatcher", "url"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )


def _create_incident_reviews() -> None:
    op.create_table(
        "incident_reviews",
        sa.Column("incident_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("tenant_id", sa.BigInteger(), nullable=False),
        sa.Column("severity", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_event_id", sa.BigInteger(), nullable=True),
        sa.Column("reviewed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.user_id"], name=op.f("fk_incident_reviews_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("incident_id", "user_id"),
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
        sqlite_with_rowid=False,
    )
    op.create_index("ix_incident_reviews_user_id", "incident_reviews", ["user_id"], unique=False)
