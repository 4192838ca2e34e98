"""What was seen: events, incidents, clips."""

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, PrimaryKeyConstraint, text

from camserver.store.tables.columns import count, flag, number, row_key, table, word

# `open_key` is the camera while the event is open and NULL once closed; UNIQUE, so a camera has one open event.
events = table(
    "events",
    row_key("event_id"),
    word("event_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key"),
    number("incident_id"),
    number("open_key", nullable=True, unique=True),
    word("state", 8),  # open, closed
    word("primary_event", 32),
    number("start_at"),
    number("last_seen_at"),  # never goes back
    number("end_at", nullable=True),
    flag("severity_max"),
    Column("confidence_max", Double, nullable=False, server_default=text("0")),
    number("best_frame_id", nullable=True),
    Column("best_score", Double, nullable=False, server_default=text("0")),
    word("retention_class", 16),
    count("frame_count", 1),
    number("created_at"),
    number("updated_at"),
    # What it is about: '' = what the camera sees; otherwise the kind of the camera's own issue.
    word("subject", 32, server_default=""),
    # As `open_key`, for issues: camera and subject while the event is open. A camera has one open event of each.
    word("issue_key", 64, nullable=True),
    word("cause", 32, server_default=""),  # of an issue, where it is known, e.g. unauthorized
    word("own_class", 16, nullable=True),  # both as in `frames`
    number("keep_until", nullable=True),
    flag("unknown_flag"),  # of any of its frames
    Index("ix_events_issue_key", "issue_key", unique=True),
    Index("ix_events_camera_key_start_at", "camera_key", "start_at", "event_id"),
    Index("ix_events_tenant_id_start_at", "tenant_id", "start_at", "event_id"),
    # What a search walks along, newest first, see event_walks.
    Index("ix_events_site_id_start_at", "site_id", "start_at", "event_id"),
    Index("ix_events_primary_event", "tenant_id", "primary_event", "start_at", "event_id"),
    Index("ix_events_severity_max", "tenant_id", "severity_max", "start_at", "event_id"),
    Index("ix_events_unknown_flag", "tenant_id", "unknown_flag", "start_at", "event_id"),
    Index("ix_events_incident_id", "incident_id"),
    Index("ix_events_best_frame_id", "best_frame_id"),
)

# start_at and camera_key are copied in, so that a search by tag reads one index.
event_tags = table(
    "event_tags",
    number("event_id"),
    word("tag_id", 64),
    number("tenant_id"),
    word("tag_group", 32),
    number("camera_key"),
    number("start_at"),
    PrimaryKeyConstraint("event_id", "tag_id"),
    Index("ix_event_tags_tag", "tenant_id", "tag_id", "start_at", "event_id"),
    by_key=True,
)

# Consecutive events of one camera; what people review. Never merged, an event's incident never changes.
incidents = table(
    "incidents",
    row_key("incident_id"),
    word("incident_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key"),
    number("start_at"),
    number("last_seen_at"),
    flag("severity_max"),
    count("event_count", 1),
    number("last_event_id", nullable=True),
    number("created_at"),
    number("updated_at"),
    Index("ix_incidents_tenant_id_start_at", "tenant_id", "start_at", "incident_id"),
    Index("ix_incidents_camera_key_start_at", "camera_key", "start_at"),
)

# Who has looked at an incident, and what it was then: a higher severity or another event makes it unreviewed again.
incident_reviews = table(
    "incident_reviews",
    number("incident_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    number("tenant_id"),
    flag("severity"),
    number("last_event_id", nullable=True),
    number("reviewed_at"),
    PrimaryKeyConstraint("incident_id", "user_id"),
    Index("ix_incident_reviews_user_id", "user_id"),
    by_key=True,
)

# A short film of an event, cut from the worker's ring buffer: asked → ready, or none with the reason.
clips = table(
    "clips",
    row_key("clip_id"),
    word("clip_uuid", 36, unique=True),
    number("tenant_id"),
    number("camera_key"),
    number("event_id"),
    word("state", 8),  # asked, ready, none
    word("reason", 255, server_default=""),
    word("errand_uuid", 36, nullable=True),  # of the errand that was sent for it last
    word("object_key", 255, nullable=True),
    number("object_bytes", server_default=text("0")),
    number("epoch_id", nullable=True),  # of the object's writer, see `epochs`
    number("begin_at"),
    number("end_at"),
    word("codec", 16, server_default=""),
    count("width"),
    count("height"),
    number("created_at"),
    Index("ix_clips_event_id", "event_id", unique=True),
    Index("ix_clips_camera_key_begin_at", "camera_key", "begin_at"),
    Index("ix_clips_state_created_at", "state", "created_at"),
    Index("ix_clips_epoch_id", "epoch_id"),
)
