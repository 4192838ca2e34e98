"""Live view: streamers and their budgets, viewings, what admission measured, and the camera to watch now."""

from sqlalchemy import Column, Double, ForeignKey, Index, Integer, UniqueConstraint, text

from camserver.store.tables.columns import Key, count, flag, number, row_key, table, word

# One row a streamer, whatever tenants it serves. Its budget belongs to it: the row is locked while a viewing is
# admitted on it. `reported_at` NULL: it was stopped; older than 15 s: it is away.
streamers = table(
    "streamers",
    word("streamer_id", 64, primary_key=True),
    word("public_url", 255, server_default=""),  # what browsers reach it by; '' = the page's host at `port`
    Column("port", Integer, nullable=False, server_default=text("0")),
    word("feed_url", 255, server_default=""),  # where workers push to
    count("total_units"),
    Column("cpu_percent", Double, nullable=False, server_default=text("0")),
    Column("memory_percent", Double, nullable=False, server_default=text("0")),
    Column("swap_mb", Double, nullable=False, server_default=text("0")),  # growth since its start
    flag("overloaded"),
    number("overload_at", nullable=True),  # the last report above a bound
    number("reported_at", nullable=True),
    number("requests_total", server_default=text("0")),
    number("rejections_total", server_default=text("0")),
    number("metrics_at", nullable=True),  # of its newest row in admission_metrics
)

# Viewings ("modal lease" in the seeds). Valid until `valid_until`, and while the login is; a row that is not valid
# means nothing and is deleted. One of each kind a login.
modal_leases = table(
    "modal_leases",
    word("lease_id", 36, primary_key=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key"),
    word("streamer_id", 64),
    word("user_id", 128),  # who watches: session:17, token:3, local; suggest:1 for a prewarmed stream
    number("session_id", nullable=True),
    number("token_id", nullable=True),
    word("kind", 8, server_default="modal"),  # modal, suggest, prewarm
    word("quality", 8, server_default="sub"),  # sub, main
    count("units"),
    flag("transcode"),
    # What transcoding adds; once for all viewings of the same camera and quality on a streamer.
    count("transcode_units"),
    word("feed", 8, server_default="wanted"),  # wanted, fed, idle
    word("feed_reason", 255, server_default=""),  # why a worker refused to feed it
    number("created_at"),
    number("expires_at"),
    number("last_heartbeat"),
    number("valid_until"),  # the earlier of expires_at and the end of the heartbeat's grace
    UniqueConstraint("user_id", "kind"),
    Index("ix_modal_leases_streamer_id", "streamer_id"),
    Index("ix_modal_leases_valid_until", "valid_until"),
    Index("ix_modal_leases_camera_key", "camera_key"),
)

# What a streamer carried, once a minute, for 24 hours. The totals count since the streamer's row was made.
admission_metrics = table(
    "admission_metrics",
    row_key("metric_id"),
    word("streamer_id", 64),
    number("recorded_at"),
    count("active_modals"),
    flag("active_suggest"),
    Column("cpu_percent", Double, nullable=False),
    Column("memory_percent", Double, nullable=False),
    number("requests_total"),
    number("rejections_total"),
    Index("ix_admission_metrics_recorded_at", "recorded_at"),
)

# The camera to watch now, one row a tenant; see domain/suggest.py. `camera_key` NULL: none.
suggestions = table(
    "suggestions",
    Column("tenant_id", Key, ForeignKey("tenants.tenant_id"), primary_key=True, autoincrement=False),
    number("camera_key", nullable=True),
    number("event_id", nullable=True),  # what it is suggested for; NULL: somebody chose it
    word("reason", 32, server_default=""),
    Column("score", Double, nullable=False, server_default=text("0")),  # at scored_at; falls by 1 a second
    number("scored_at", server_default=text("0")),
    number("since", server_default=text("0")),
    number("until", server_default=text("0")),
    flag("manual"),
    number("rest_until", server_default=text("0")),
    number("dismissed_at", server_default=text("0")),  # events up to then count no more
)
