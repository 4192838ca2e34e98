"""What leaves the house: deliveries, the receivers they go to, and the rules of telling people."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    text,
)

from camserver.store.tables.columns import (
    Json,
    count,
    flag,
    has_partial_indexes,
    key,
    lacks_partial_indexes,
    number,
    parent,
    row_key,
    table,
    word,
)

# An outbox: rows are made in the job's transaction and done by a loop of their own, at least once. `delivery_uuid`
# lets the receiver drop a repeat. notify and archive fan out into one message or copy for each receiver.
deliveries = table(
    "deliveries",
    row_key("delivery_id"),
    word("delivery_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id", nullable=True),  # NULL with `camera_key`: a trial, or a summary of everything
    number("camera_key", nullable=True),
    word("kind", 16),  # archive, notify, llm_review, summary, message, copy
    word("reason", 64),
    number("frame_id", nullable=True),
    number("event_id", nullable=True),
    number("incident_id", nullable=True),
    word("status", 16),  # as in inference_jobs, and suppressed: not sent on purpose
    flag("attempt"),
    number("available_at"),
    word("locked_by", 128, nullable=True),
    word("locked_token", 36, nullable=True),
    number("locked_until", nullable=True),
    word("last_error", 255, nullable=True),
    number("created_at"),
    number("finished_at", nullable=True),
    number("receiver_id", nullable=True),  # of a message or copy
    number("parent_id", nullable=True),  # the delivery that fanned out into this one
    word("once_key", 96, nullable=True, unique=True),  # of what may exist only once, e.g. parent and receiver
    Column("request", Json, nullable=True),  # what its maker adds, e.g. the text of a trial
    Column("result", Json, nullable=True),  # what the receiver answered: external ids, HTTP status
    CheckConstraint("status IN ('queued','delayed','running','done','dead','skipped','suppressed')", name="status"),
    Index("ix_deliveries_status_available_at", "status", "available_at", "delivery_id"),
    Index("ix_deliveries_tenant_id", "tenant_id", "delivery_id"),
    Index("ix_deliveries_parent_id", "parent_id"),
    Index("ix_deliveries_event_id", "event_id"),
)
# One claims per receiver, so that a long queue of one never hides the others; what has no receiver, per kind.
Index(
    "ix_deliveries_receiver",
    deliveries.c.receiver_id,
    deliveries.c.delivery_id,
    postgresql_where=text("status = 'queued'"),
    sqlite_where=text("status = 'queued'"),
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_deliveries_kind",
    deliveries.c.kind,
    deliveries.c.delivery_id,
    postgresql_where=text("status = 'queued' AND receiver_id IS NULL"),
    sqlite_where=text("status = 'queued' AND receiver_id IS NULL"),
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_deliveries_running",
    deliveries.c.locked_until,
    postgresql_where=text("status = 'running'"),
    sqlite_where=text("status = 'running'"),
).ddl_if(callable_=has_partial_indexes)
Index("ix_deliveries_receiver", deliveries.c.status, deliveries.c.receiver_id, deliveries.c.delivery_id).ddl_if(
    callable_=lacks_partial_indexes
)
Index("ix_deliveries_kind", deliveries.c.status, deliveries.c.kind, deliveries.c.delivery_id).ddl_if(
    callable_=lacks_partial_indexes
)

# Where something goes: a webhook, a mailbox, a bucket. `config` holds no secret; those are sealed as in camera_auth,
# with associated data tenant|receiver:uuid.
receivers = table(
    "receivers",
    key("receiver_id"),
    word("receiver_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    word("name", 128),
    word("kind", 16),  # webhook, slack, email, mqtt, push, folder, s3, drive
    flag("enabled", 1),
    Column("config", Json, nullable=False),
    word("key_id", 32, nullable=True),
    Column("nonce", LargeBinary(12), nullable=True),
    Column("ciphertext", LargeBinary(16384), nullable=True),
    word("language", 8, server_default="ja"),  # of its messages
    Column("hourly_cap", BigInteger, nullable=True),  # most messages an hour; NULL = no bound
    number("created_at"),
    number("updated_at"),
    number("last_ok_at", nullable=True),
    word("last_error", 255, nullable=True),
    number("last_error_at", nullable=True),
    UniqueConstraint("tenant_id", "name"),
)

# Who is told of what, and when. The first that fits decides; without any, everything notable goes to every receiver.
notify_rules = table(
    "notify_rules",
    key("rule_id"),
    word("rule_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    count("position"),
    word("name", 128, server_default=""),
    flag("enabled", 1),
    Column("site_ids", Json, nullable=True),  # NULL here and in the next four = all
    Column("camera_keys", Json, nullable=True),
    Column("primary_events", Json, nullable=True),
    flag("min_severity"),
    Column("receiver_ids", Json, nullable=True),
    Column("quiet", Json, nullable=True),  # {"from": "22:00", "to": "06:00", "days": [0..6], "through_severity": 3}
    number("created_at"),
    number("updated_at"),
    Index("ix_notify_rules_tenant_id_position", "tenant_id", "position"),
)

# Not to be told for a while. NULL = of every site, camera, receiver.
snoozes = table(
    "snoozes",
    key("snooze_id"),
    word("snooze_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    number("site_id", nullable=True),
    number("camera_key", nullable=True),
    number("receiver_id", nullable=True),
    number("until"),
    word("reason", 255, server_default=""),
    number("user_id", nullable=True),
    number("created_at"),
    Index("ix_snoozes_tenant_id_until", "tenant_id", "until"),
)

# Messages that were sent.
notifications = table(
    "notifications",
    row_key("notification_id"),
    number("tenant_id"),
    number("delivery_id"),
    number("receiver_id", nullable=True),
    number("site_id", nullable=True),
    number("camera_key", nullable=True),
    number("event_id", nullable=True),
    number("incident_id", nullable=True),
    word("channel", 32),
    Column("body", Text, nullable=False),
    count("suppressed"),  # how many this one stands for besides its own ("+N")
    number("sent_at"),
    Index("ix_notifications_tenant_id_sent_at", "tenant_id", "sent_at"),
    Index("ix_notifications_delivery_id", "delivery_id"),
)

# Started only by a successful send. `scope` is a primary event, or '' for the camera as a whole.
cooldowns = table(
    "cooldowns",
    number("receiver_id"),
    number("camera_key"),
    word("scope", 32),
    number("tenant_id"),
    number("until"),
    count("suppressed"),
    PrimaryKeyConstraint("receiver_id", "camera_key", "scope"),
    by_key=True,
)

# How many messages a receiver got in an hour, for its cap.
receiver_hours = table(
    "receiver_hours",
    number("receiver_id"),
    number("hour_at"),  # when the hour began
    number("tenant_id"),
    count("sent"),
    count("suppressed"),
    PrimaryKeyConstraint("receiver_id", "hour_at"),
    by_key=True,
)

# Browsers that are to be pushed to. `auth` is the secret that the browser shares with us, sealed as in camera_auth,
# with associated data tenant|push:uuid.
push_subscriptions = table(
    "push_subscriptions",
    key("subscription_id"),
    word("subscription_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    Column("endpoint", Text, nullable=False),
    word("endpoint_hash", 64, unique=True),  # sha256, hex: an address may be longer than an index takes
    word("p256dh", 128),
    word("key_id", 32),
    Column("nonce", LargeBinary(12), nullable=False),
    Column("ciphertext", LargeBinary(2048), nullable=False),
    word("language", 8, server_default="ja"),
    word("user_agent", 255, server_default=""),
    number("created_at"),
    number("last_ok_at", nullable=True),
    count("failures"),  # in a row
    Index("ix_push_subscriptions_user_id", "user_id"),
)
