"""What is opened without signing in, and the answers that are kept for repeated requests."""

from sqlalchemy import BigInteger, Column, ForeignKey, Index, PrimaryKeyConstraint, SmallInteger, Text

from camserver.store.tables.columns import count, key, number, parent, table, word

# Addresses that open an event or a frame to whoever has them. Only a hash of what is secret in them is kept.
shares = table(
    "shares",
    key("share_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column(
        "user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=True
    ),  # NULL: local admin
    word("share_uuid", 36, unique=True),
    word("token_hash", 64, unique=True),
    word("kind", 8),  # event, frame
    word("object_uuid", 36),
    number("site_id"),  # of the event or frame; no foreign keys, as there
    number("camera_key"),
    word("note", 500, server_default=""),  # for those who list shares, not for those who open them
    number("created_at"),
    number("expires_at", nullable=True),  # NULL: until it is revoked
    number("revoked_at", nullable=True),
    count("opened_count"),
    number("last_opened_at", nullable=True),
    Index("ix_shares_tenant_id", "tenant_id"),
    Index("ix_shares_user_id", "user_id"),
)

# From which addresses a share was opened in an hour: the audit log has one line for each. Removed when the hour is
# over.
share_openings = table(
    "share_openings",
    number("share_id"),
    word("address", 64),
    number("hour"),  # hours since 1970
    number("tenant_id"),
    PrimaryKeyConstraint("share_id", "address", "hour"),
    by_key=True,
)

# Requests that carried an Idempotency-Key, and what was answered. The row is written together with what the request
# changed; the answer follows.
request_keys = table(
    "request_keys",
    number("tenant_id"),
    word("caller", 64),  # the user, and the token where one was used
    word("key_hash", 64),
    word("fingerprint", 64),  # of address and body
    number("created_at"),
    Column("status", SmallInteger, nullable=True),  # NULL: the answer is not known
    Column("body", Text, nullable=True),  # NULL: none, too long, or with a secret in it
    PrimaryKeyConstraint("tenant_id", "caller", "key_hash"),
    Index("ix_request_keys_created_at", "created_at"),
    by_key=True,
)
