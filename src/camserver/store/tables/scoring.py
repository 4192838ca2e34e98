"""Runs that score the rows of a sheet: chunks, the journal of results, answers kept, and who asks with which key."""

from sqlalchemy import CheckConstraint, Column, Double, Index, PrimaryKeyConstraint, Text, UniqueConstraint, text

from camserver.store.tables.columns import count, flag, key, number, parent, row_key, table, word

# `spec` is what makes two runs the same. `wanted` is what a person asked for last; the processes that work on the run
# look at it. `drawn_micro` is what processes took of the budget, `cost_micro` what was really spent. One process at a
# time gives results to the sheet (`writer_…`).
scoring_runs = table(
    "scoring_runs",
    key("run_id"),
    word("run_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    Column("sheet", Text, nullable=False),  # its address; no secrets
    word("sheet_digest", 64),
    Column("spec", Text, nullable=False),
    word("spec_digest", 64),
    word("status", 16),
    word("wanted", 8),  # run, pause, cancel
    word("reason", 16, nullable=True),  # why it is paused or failed
    word("message", 255, nullable=True),  # the same, for people
    number("last_row"),
    count("passes", 1),
    flag("has_moved"),  # rows were sorted or inserted meanwhile: one more pass
    number("budget_micro", nullable=True),  # millionths of a US dollar; NULL: none
    number("drawn_micro", server_default=text("0")),
    number("cost_micro", server_default=text("0")),
    number("calls", server_default=text("0")),
    number("refused", server_default=text("0")),  # of the calls: 429s
    number("cache_hits", server_default=text("0")),
    number("same_hits", server_default=text("0")),  # rows that another row's call answered
    number("tokens_in", server_default=text("0")),
    number("tokens_out", server_default=text("0")),
    word("writer_token", 36, nullable=True),
    number("writer_until", nullable=True),
    number("sheet_id", nullable=True),  # asked for on the web; NULL: by the command, or its sheet was removed
    number("filled_at", nullable=True),  # `updated_at` of when its result was last made into a file
    number("busy_ms", server_default=text("0")),  # how long processes worked on it, all together
    Column("places", Double, nullable=True),  # questions in flight at most, of who told it last
    number("write_delay_ms", nullable=True),  # how long the sheet took for what it was last given
    number("created_at"),
    number("updated_at"),
    number("finished_at", nullable=True),
    CheckConstraint("status IN ('running','paused','completed','failed','cancelled')", name="status"),
    CheckConstraint("wanted IN ('run','pause','cancel')", name="wanted"),
    Index("ix_scoring_runs_sheet", "tenant_id", "sheet_digest", "run_id"),
)

# Sheets that were brought on the web. A file lies in pieces (`scoring_files`); a search's events are
# `scoring_events`; a link or a file of the server's folder stays where it is. The scoring service looks at each
# (`state`) before a run can begin: what it found is in `look`, and in `spec` what would be asked.
scoring_sheets = table(
    "scoring_sheets",
    key("sheet_id"),
    word("sheet_uuid", 36, unique=True),
    parent("tenant_id", "tenants.tenant_id"),
    word("kind", 8),  # file, google, folder, events
    word("name", 255),  # of the file, its link or path, or what people call the search
    word("state", 8),  # coming, waiting, looked, refused
    word("message", 255, nullable=True),  # why it is refused
    Column("wishes", Text, nullable=False),  # JSON: layout, model and the like
    Column("look", Text, nullable=True),  # JSON: the check and the estimate
    Column("spec", Text, nullable=True),
    number("size_bytes", server_default=text("0")),
    number("received_bytes", server_default=text("0")),
    number("created_by", nullable=True),
    word("locked_token", 36, nullable=True),  # of the process that looks at it
    number("locked_until", nullable=True),
    number("created_at"),
    number("updated_at"),
    Index("ix_scoring_sheets_tenant_id", "tenant_id", "sheet_id"),
    Index("ix_scoring_sheets_state", "state", "sheet_id"),
)

# Pieces of files: as they were uploaded, and as runs filled them. A row is there before its object, so that nothing
# is ever without one; `is_there` says that the object is.
scoring_files = table(
    "scoring_files",
    key("file_id"),
    number("tenant_id"),
    number("sheet_id"),
    number("run_id"),  # 0: as it was uploaded
    number("number"),
    flag("is_there"),
    word("object_key", 255),
    number("object_bytes"),
    number("created_at"),
    UniqueConstraint("object_key", name="uq_scoring_files_object_key"),
    Index("ix_scoring_files_sheet_id", "sheet_id", "run_id", "number"),
)

# The events of a search, as the rows of a sheet.
scoring_events = table(
    "scoring_events",
    number("sheet_id"),
    number("sheet_row"),
    number("tenant_id"),
    number("event_id"),
    PrimaryKeyConstraint("sheet_id", "sheet_row"),
    by_key=True,
)

# What a model said of an event, newest run only; found by category in the order of time.
event_scores = table(
    "event_scores",
    number("event_id"),
    word("category", 200),
    number("tenant_id"),
    number("start_at"),  # the event's
    Column("score", Double, nullable=False),
    number("run_id"),
    number("scored_at"),
    PrimaryKeyConstraint("event_id", "category"),
    Index("ix_event_scores_category", "tenant_id", "category", "start_at", "event_id"),
    by_key=True,
)

# A stretch of rows that one process takes at a time, under a lock that it renews. Counts are of tasks (one row, one
# block of categories); whoever holds the chunk writes them whole, so that nothing is counted twice.
scoring_chunks = table(
    "scoring_chunks",
    number("run_id"),
    number("number"),
    number("tenant_id"),
    number("row_start"),
    number("row_end"),
    word("status", 16),
    count("retry_count"),
    number("available_at"),
    word("last_error", 255, nullable=True),
    count("tasks"),
    count("done"),  # scored, failed ones not included
    count("failed"),
    count("written"),
    word("locked_by", 128, nullable=True),
    word("locked_token", 36, nullable=True),
    number("locked_until", nullable=True),
    number("updated_at"),
    PrimaryKeyConstraint("run_id", "number"),
    CheckConstraint("status IN ('pending','running','writing','completed','failed')", name="status"),
    Index("ix_scoring_chunks_status", "run_id", "status", "number"),
    by_key=True,
)

# The journal: a result stands here before anything else happens with it. A row of the sheet is known by its content
# (`identity`) beside its number, since people sort sheets.
scoring_results = table(
    "scoring_results",
    row_key("result_id"),
    number("run_id"),
    number("tenant_id"),
    number("chunk"),
    number("sheet_row"),
    count("first_category"),  # of the block
    word("identity", 32),
    word("state", 8),  # scored, written, away, refused, moved, failed
    Column("scores", Text, nullable=True),  # JSON; NULL: failed
    word("question_key", 64),
    word("model", 128, nullable=True),  # that answered
    word("source", 8),  # call, same, cache
    word("note", 255, nullable=True),  # why it failed or was refused
    number("created_at"),
    number("written_at", nullable=True),
    UniqueConstraint("run_id", "sheet_row", "first_category", "identity", name="uq_scoring_results_cell"),
    Index("ix_scoring_results_state", "run_id", "state", "result_id"),
)

# Answers to the very same question; failures are never kept.
scoring_cache = table(
    "scoring_cache",
    number("tenant_id"),
    word("question_key", 64),
    Column("scores", Text, nullable=False),
    word("model", 128),
    number("created_at"),
    PrimaryKeyConstraint("tenant_id", "question_key"),
    Index("ix_scoring_cache_created_at", "created_at"),
    by_key=True,
)

# Processes that ask a provider with the same key, and how many questions each has in flight at most: together they
# are one client. `key_digest` is made of provider, address and key, and can't be turned back.
scoring_limits = table(
    "scoring_limits",
    word("key_digest", 64),
    word("worker", 64),
    Column("places", Double, nullable=False),
    number("until"),
    PrimaryKeyConstraint("key_digest", "worker"),
    by_key=True,
)

# What was found out about a provider with this key, for the next process that asks it.
scoring_found = table(
    "scoring_found",
    word("key_digest", 64),
    Column("places", Double, nullable=False),
    Column("too_many", Double, nullable=True),
    Column("pace", Double, nullable=True),
    Column("latency_sec", Double, nullable=False),
    number("found_at"),
    PrimaryKeyConstraint("key_digest"),
    by_key=True,
)
