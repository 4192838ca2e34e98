"""What a language model said of an event, and what it cost."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Text, text

from camserver.store.tables.columns import count, number, row_key, table, word

# At most one an event. It never changes severity, retention or notification (decision 26).
llm_reviews = table(
    "llm_reviews",
    row_key("review_id"),
    word("review_uuid", 36, unique=True),
    number("tenant_id"),
    number("camera_key"),
    number("event_id", unique=True),
    number("frame_id"),
    word("provider", 32),
    word("model", 128),
    word("label", 32),  # of a closed list
    Column("memo", Text, nullable=False),  # plain text
    count("tokens_in"),
    count("tokens_out"),
    number("cost_micro", server_default=text("0")),  # millionths of the configured currency
    number("created_at"),
    Index("ix_llm_reviews_camera_key_created_at", "camera_key", "created_at"),
)

# What was asked on one day (UTC, YYYY-MM-DD), for the budget.
llm_days = table(
    "llm_days",
    number("tenant_id"),
    word("day", 10),
    count("calls"),
    number("tokens_in", server_default=text("0")),
    number("tokens_out", server_default=text("0")),
    number("cost_micro", server_default=text("0")),
    PrimaryKeyConstraint("tenant_id", "day"),
    by_key=True,
)
