"""The change feed, the bin, and who does what at the moment."""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, text

from camserver.store.tables.columns import count, number, row_key, table, word

# Numbered without holes per tenant, in the order of commits (see tx.py). No content: readers fetch what they may see.
changes = table(
    "changes",
    number("tenant_id"),
    number("seq"),
    word("kind", 32),
    number("site_id", nullable=True),
    number("camera_key", nullable=True),
    number("object_id", nullable=True),
    number("created_at"),
    PrimaryKeyConstraint("tenant_id", "seq"),
    by_key=True,
)

# Objects whose row is gone; unlinked by a sweep, then forgotten.
garbage = table(
    "garbage",
    row_key("garbage_id"),
    number("tenant_id"),
    word("object_key", 255),
    number("created_at"),
)

# What sweeps deleted, and why, for people to read.
sweep_reports = table(
    "sweep_reports",
    row_key("report_id"),
    number("tenant_id"),
    number("at"),
    word("what", 32),
    count("count"),
    number("bytes", server_default=text("0")),
    word("reason", 255, server_default=""),
    Index("ix_sweep_reports_tenant_id_at", "tenant_id", "at"),
)

# Work that one dispatcher of many does at a time, e.g. the connection to a broker; see domain/duties.py.
duties = table(
    "duties",
    word("name", 64, primary_key=True),
    word("owner", 128),
    word("token", 36),  # the fence
    number("until"),
)

# How each dispatcher finds each analyzer, for people to read.
analyzers = table(
    "analyzers",
    word("dispatcher", 128),
    word("url", 255),  # never with credentials
    word("state", 16),
    count("in_flight"),
    count("concurrency"),
    Column("latency_ms", Integer, nullable=True),
    word("last_error", 255, nullable=True),
    number("seen_at"),
    PrimaryKeyConstraint("dispatcher", "url"),
    by_key=True,
)
