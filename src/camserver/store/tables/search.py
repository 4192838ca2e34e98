"""What notes and memos are found by."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Text

from camserver.store.tables.columns import number, table, word

# Each token of a text (domain/texts.py) once, the same on the three databases: none of them splits Japanese without
# an extension. `at` is when the memo's event began, or the note was written, so that the newest are read first.
search_tokens = table(
    "search_tokens",
    number("tenant_id"),
    word("kind", 8),  # memo, note
    word("token", 8),
    number("at"),
    number("object_id"),  # event_id of a memo, note_id of a note
    PrimaryKeyConstraint("tenant_id", "kind", "token", "at", "object_id"),
    Index("ix_search_tokens_object_id", "object_id", "kind"),
    by_key=True,
)

# The text that was split, folded: all tokens of a query may be in a text that does not hold the query.
search_texts = table(
    "search_texts",
    word("kind", 8),
    number("object_id"),
    number("tenant_id"),
    Column("compared", Text, nullable=False),
    PrimaryKeyConstraint("kind", "object_id"),
    by_key=True,
)
