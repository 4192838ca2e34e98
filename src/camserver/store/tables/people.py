"""Whose it is: tenants, sites, people, settings, vocabularies."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    UniqueConstraint,
    text,
)

from camserver.store.tables.columns import Json, Key, count, flag, key, number, parent, table, word

tenants = table(
    "tenants",
    key("tenant_id"),
    word("tenant_uuid", 36, unique=True),
    word("name", 128, unique=True),
    # 1 for the tenant that the installation began with, NULL for the others: UNIQUE keeps it to one.
    Column("home_slot", SmallInteger, nullable=True),
    number("created_at"),
    number("cameras_running_max", nullable=True),  # cameras that run at once; NULL here and below = any number
    number("cameras_max", nullable=True),
    number("people_max", nullable=True),
    number("sites_max", nullable=True),
    number("kept_bytes_max", nullable=True),  # pictures and clips; beyond it retention gives the oldest ones up
    flag("disabled"),  # nobody of it signs in, and no camera of it runs
    number("erasing_at", nullable=True),  # since when it is being erased; never taken back, and `disabled` with it
    number("erasing_by", nullable=True),  # the user of the home tenant who asked for it
    # What the erasure has deleted so far, for its report.
    number("erased_rows", server_default=text("0")),
    number("erased_objects", server_default=text("0")),
    number("erased_bytes", server_default=text("0")),
    Index("ix_tenants_home_slot", "home_slot", unique=True),
)

# The change feed's counter, apart from `tenants` because every transaction that changes something locks it last.
change_counters = table(
    "change_counters",
    Column("tenant_id", Key, ForeignKey("tenants.tenant_id"), primary_key=True, autoincrement=False),
    number("last_seq", server_default=text("0")),
)

sites = table(
    "sites",
    key("site_id"),
    parent("tenant_id", "tenants.tenant_id"),
    word("site_uuid", 36, unique=True),
    word("name", 128),
    word("timezone", 64, server_default="UTC"),  # an IANA name, for local times in messages and reports
    number("created_at"),
    number("removed_at", nullable=True),  # evidence keeps pointing here
    UniqueConstraint("tenant_id", "name"),
)

users = table(
    "users",
    key("user_id"),
    parent("tenant_id", "tenants.tenant_id"),
    word("user_uuid", 36, unique=True),
    word("login", 128, unique=True),  # lower case; unique over all tenants, so signing in needs no tenant
    word("display_name", 128, server_default=""),
    word("role", 16),
    word("password_hash", 255, nullable=True),  # argon2id; NULL = can't sign in with a password
    word("language", 8, server_default="ja"),
    # 1: reaches what `grants` says, and nothing else; 0: all sites of the tenant. Administrators reach all, and what
    # is here counts again when groups at a provider make them less.
    flag("granted_only"),
    flag("disabled"),
    count("failed_logins"),
    number("locked_until", nullable=True),
    number("password_changed_at", nullable=True),
    number("created_at"),
)

# Those who are gone: what they did stays, and so does who they were.
removed_users = table(
    "removed_users",
    Column("user_id", BigInteger, primary_key=True, autoincrement=False),
    parent("tenant_id", "tenants.tenant_id"),
    word("login", 128),
    number("removed_at"),
    Index("ix_removed_users_tenant_id_login", "tenant_id", "login"),
    by_key=True,
)

# Sites and single cameras that somebody reaches whose `granted_only` is set: one of the two columns is filled.
grants = table(
    "grants",
    key("grant_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    Column("site_id", BigInteger, ForeignKey("sites.site_id", ondelete="CASCADE"), nullable=True),
    Column("camera_key", BigInteger, ForeignKey("cameras.camera_key", ondelete="CASCADE"), nullable=True),
    Index("ix_grants_user_id", "user_id"),
)

# Tokens of programs. Each stands for a user, within its scopes; it ends with the user.
api_tokens = table(
    "api_tokens",
    key("token_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    word("token_uuid", 36, unique=True),
    word("name", 128),
    word("token_hash", 64, unique=True),
    Column("scopes", Json, nullable=False),  # permissions, by name
    number("created_at"),
    number("expires_at"),
    number("last_used_at", nullable=True),
    word("last_address", 64, server_default=""),
    number("revoked_at", nullable=True),
    Index("ix_api_tokens_user_id", "user_id"),
)

# Who somebody is at an OpenID Connect provider: that subject signs in as this user, one of each provider.
user_identities = table(
    "user_identities",
    key("identity_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    word("issuer", 255),
    word("subject", 255),
    number("created_at"),
    UniqueConstraint("issuer", "subject"),
    UniqueConstraint("user_id", "issuer"),
)

# One-time links with which somebody chooses a password: hashed, single use.
password_links = table(
    "password_links",
    key("link_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    word("token_hash", 64, unique=True),
    number("created_at"),
    number("expires_at"),
    Index("ix_password_links_user_id", "user_id"),
)

# Signed-in browsers. Only a hash of the cookie's token is kept, so a stolen database signs nobody in.
sessions = table(
    "sessions",
    key("session_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    word("token_hash", 64, unique=True),
    word("csrf_token", 64),
    number("created_at"),
    number("expires_at"),
    number("last_seen_at"),
    word("address", 64, server_default=""),
    word("user_agent", 255, server_default=""),
    Index("ix_sessions_expires_at", "expires_at"),
    Index("ix_sessions_user_id", "user_id"),
)

# One-time links that make the first admin: hashed, one hour, single use.
setup_links = table(
    "setup_links",
    key("link_id"),
    word("token_hash", 64, unique=True),
    number("created_at"),
    number("expires_at"),
    number("used_at", nullable=True),
)

# Values changed at run time. tenant_id 0 holds the installation's.
settings = table(
    "settings",
    number("tenant_id"),
    word("name", 64),
    Column("value", Json, nullable=False),
    number("updated_at"),
    PrimaryKeyConstraint("tenant_id", "name"),
    by_key=True,
)

# Vocabularies ("schema" in the seeds). `active_slot` is 1 for the active one and NULL for the others: UNIQUE keeps
# it to one on all three databases.
schema_versions = table(
    "schema_versions",
    word("schema_version", 64, primary_key=True),
    Column("document", Json, nullable=False),
    Column("active_slot", SmallInteger, nullable=True, unique=True),
    number("created_at"),
    number("activated_at", nullable=True),
)

# What the active vocabulary keeps for investigation: `hidden_tags.py` says why.
hidden_tags = table(
    "hidden_tags",
    word("tag_id", 64, primary_key=True),
    by_key=True,
)
