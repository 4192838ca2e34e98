"""The audit log and its seals, append-only by triggers (audit_guards.py); the rules are in domain/audit.py."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Text

from camserver.store.tables.audit_guards import guard
from camserver.store.tables.columns import Json, count, number, row_key, table, word
from camserver.store.tables.people import tenants

# tenant_id 0 holds the installation's. Ids are given in the order of inserting and become visible in the order of
# commits, so the batch is given when an entry is sealed: whatever has none yet is the next one's.
audit_log = table(
    "audit_log",
    row_key("entry_id"),
    number("tenant_id"),
    number("at"),
    word("actor_kind", 16),  # user, token, link, system; operator: a user of the home tenant
    word("actor_id", 64),
    word("action", 64),
    word("object_kind", 32, server_default=""),
    word("object_id", 64, server_default=""),
    Column("details", Json, nullable=True),
    word("address", 64, server_default=""),
    number("batch_no", nullable=True),  # NULL: not sealed yet
    Index("ix_audit_log_tenant_id_at", "tenant_id", "at", "entry_id"),
    Index("ix_audit_log_object", "tenant_id", "object_kind", "object_id", "entry_id"),
    Index("ix_audit_log_actor", "tenant_id", "actor_kind", "actor_id", "at", "entry_id"),
    Index("ix_audit_log_action", "tenant_id", "action", "at", "entry_id"),
    Index("ix_audit_log_batch", "tenant_id", "batch_no", "entry_id"),
)

# One for each batch, numbered without holes from 1 on for each tenant. Outlives its entries.
audit_seals = table(
    "audit_seals",
    number("tenant_id"),
    number("batch_no"),
    number("first_entry_id"),
    number("last_entry_id"),
    count("entries"),
    number("first_at"),
    number("last_at"),
    word("body", 64),
    word("previous_hash", 64),
    word("hash", 64),
    word("key_id", 16),
    word("mac", 64),
    number("sealed_at"),
    Column("leaves", Text, nullable=False),  # which entries, with the beginning of each one's hash
    number("pruned_at", nullable=True),  # when retention deleted the entries
    word("pruned_key_id", 16, server_default=""),  # the key that signed this; empty while they are there
    word("pruned_mac", 64, server_default=""),
    PrimaryKeyConstraint("tenant_id", "batch_no"),
    Index("ix_audit_seals_pruned_at", "tenant_id", "pruned_at", "batch_no"),
)
guard(audit_seals)
# The triggers are on both tables, ask a third, and are made with the second.
for needed in (audit_log, tenants):
    audit_seals.add_is_dependent_on(needed)
