"""Copies of pictures at archive receivers."""

from sqlalchemy import Index, PrimaryKeyConstraint, text

from camserver.store.tables.columns import count, number, row_key, table, word

# One copy of one picture at one receiver; of every kind of archive, though the name is Google Drive's.
drive_objects = table(
    "drive_objects",
    row_key("object_id"),
    number("tenant_id"),
    number("receiver_id"),
    number("frame_id", nullable=True),
    number("camera_key"),
    number("case_id", nullable=True),
    word("external_id", 255),  # how the receiver names it: a file id, a key, a path
    word("path", 512),
    number("bytes"),
    word("sha256", 64),
    word("retention_class", 16),
    number("archived_at"),
    number("expires_at", nullable=True),  # NULL = kept until somebody says otherwise
    number("deleted_at", nullable=True),
    Index("ix_drive_objects_receiver_id_expires_at", "receiver_id", "expires_at"),
    Index("ix_drive_objects_frame_id", "frame_id"),
    Index("ix_drive_objects_case_id", "case_id"),
)

# What a camera sent to an archive on one day (of its site, YYYY-MM-DD), for its quota, and how many pictures were
# left out because of it.
archive_days = table(
    "archive_days",
    number("receiver_id"),
    number("camera_key"),
    word("day", 10),
    number("tenant_id"),
    number("bytes", server_default=text("0")),
    count("suppressed"),
    PrimaryKeyConstraint("receiver_id", "camera_key", "day"),
    by_key=True,
)
