"""Figures that outlive what they count."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, text

from camserver.store.tables.columns import Json, count, flag, number, table, word

# One row a camera and hour, made from frames and events while they are there.
hourly_stats = table(
    "hourly_stats",
    number("tenant_id"),
    number("camera_key"),
    number("hour_at"),  # when the hour began
    count("looks"),
    count("looks_failed"),
    count("analyzed"),
    count("detected"),
    count("unknown"),
    count("events"),
    flag("severity_max"),
    Column("by_event", Json, nullable=True),  # {"human": 3, …}, events by primary event
    number("bytes", server_default=text("0")),  # of pictures that were kept
    word("cells", 36, nullable=True),  # the hour in cells of five minutes, see domain/timeline.py
    PrimaryKeyConstraint("tenant_id", "camera_key", "hour_at"),
    Index("ix_hourly_stats_hour_at", "hour_at"),
    by_key=True,
)

# What a camera's pictures and clips take, by class, as it was last counted.
camera_usage = table(
    "camera_usage",
    number("camera_key"),
    word("retention_class", 16),
    number("tenant_id"),
    number("pictures", server_default=text("0")),
    number("bytes", server_default=text("0")),
    number("day_bytes", server_default=text("0")),  # of the last 24 hours
    number("oldest_at", nullable=True),
    number("counted_at"),
    PrimaryKeyConstraint("camera_key", "retention_class"),
    by_key=True,
)

# The summary of a site's day (local, YYYY-MM-DD), as it was told.
daily_summaries = table(
    "daily_summaries",
    number("tenant_id"),
    number("site_id"),
    word("day", 10),
    Column("body", Json, nullable=False),
    number("created_at"),
    PrimaryKeyConstraint("tenant_id", "site_id", "day"),
    by_key=True,
)
