"""Looks and the jobs they make."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    UniqueConstraint,
    text,
)

from camserver.store.tables.columns import (
    Json,
    count,
    flag,
    has_partial_indexes,
    lacks_partial_indexes,
    number,
    row_key,
    table,
    word,
)

# Every look leaves a row, also a failed one. Object keys follow from (epoch, tenant, camera, uuid), see
# objects/keys.py; `*_bytes` NULL = no such picture.
frames = table(
    "frames",
    row_key("frame_id"),
    word("frame_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key"),
    number("generation"),
    number("seq"),  # of the look within its generation
    number("captured_at"),  # corrected; never later than received_at + 1 s
    number("worker_at"),  # the worker's own idea of it
    number("received_at"),
    flag("late"),  # set at receipt: an earlier generation, or older than 120 s
    word("collector_status", 8),  # ok, timeout, error
    word("error_code", 64, nullable=True),
    word("error_message", 255, nullable=True),
    word("verdict", 8, server_default="skip"),  # the gate's: skip, analyze, forced
    Column("diff_ratio", Double, nullable=True),  # 0..1
    Column("luma_delta", Double, nullable=True),  # signed
    Column("blur_score", Double, nullable=True),  # 0..100, higher is blurrier
    flag("analyzed"),
    flag("detected"),
    word("primary_event", 32, server_default="none"),
    flag("unknown_flag"),
    flag("severity"),  # 0..3
    Column("confidence", Double, nullable=True),
    Column("count_hint", Integer, nullable=True),
    Column("result_json", Json, nullable=True),
    Column("tags_json", Json, nullable=True),
    word("retention_class", 16, server_default="normal"),
    number("event_id", nullable=True),
    Column("full_w", Integer, nullable=True),
    Column("full_h", Integer, nullable=True),
    Column("infer_w", Integer, nullable=True),
    Column("infer_h", Integer, nullable=True),
    flag("letterbox"),
    Column("letterbox_top", Integer, nullable=True),
    Column("letterbox_left", Integer, nullable=True),
    Column("letterbox_bottom", Integer, nullable=True),
    Column("letterbox_right", Integer, nullable=True),
    word("infer_hash64_hex", 16, nullable=True),
    number("epoch_id", nullable=True),  # NULL when the look has no picture
    Column("infer_bytes", Integer, nullable=True),
    Column("full_bytes", Integer, nullable=True),
    Column("structure", Double, nullable=True),  # 0..1, how much of the picture has any texture
    word("view_hex", 36, nullable=True),  # where its texture is, 144 cells a bit each, see media/view.py
    word("own_class", 16, nullable=True),  # while it is in a case: the class it goes back to
    number("keep_until", nullable=True),  # not deleted before, though its class would say so
    UniqueConstraint("camera_key", "generation", "seq"),
    Index("ix_frames_camera_key_captured_at", "camera_key", "captured_at"),
    Index("ix_frames_epoch_id", "epoch_id"),
)

# Looks that were made (or due) and never arrived; shrinks when they do.
frame_gaps = table(
    "frame_gaps",
    number("camera_key"),
    number("generation"),
    number("first_seq"),
    number("last_seq"),
    number("tenant_id"),
    number("noted_at"),
    PrimaryKeyConstraint("camera_key", "generation", "first_seq"),
    by_key=True,
)

# Time in which looks were put off through no fault of the camera. `end_at` NULL: it lasts, at most as the lease does.
look_pauses = table(
    "look_pauses",
    number("camera_key"),
    number("begin_at"),
    number("tenant_id"),
    number("generation"),
    number("end_at", nullable=True),
    word("cause", 32),  # watched_live
    PrimaryKeyConstraint("camera_key", "begin_at"),
    by_key=True,
)

frame_tags = table(
    "frame_tags",
    number("frame_id"),
    word("tag_id", 64),
    number("tenant_id"),
    word("tag_group", 32),
    PrimaryKeyConstraint("frame_id", "tag_id"),
    by_key=True,
)

# queued → running → done | delayed → queued … | dead | skipped. Backed-off jobs are `delayed`, out of the claim's
# way.
# `lap` is how many jobs of the same camera were unfinished when this one came: ordering by it lets the head of the
# queue hold many cameras, so a camera with a long queue can't starve the others. One that is passed over for a newer
# one of its camera takes that one's lap.
inference_jobs = table(
    "inference_jobs",
    row_key("job_id"),
    number("tenant_id"),
    number("frame_id", unique=True),
    number("camera_key"),
    number("captured_at"),
    word("status", 8),
    Column("priority", SmallInteger, nullable=False),  # 0..255, higher first
    count("lap"),
    flag("attempt"),
    number("available_at"),  # delayed: when it is queued again
    word("locked_by", 128, nullable=True),
    word("locked_token", 36, nullable=True),  # the fence
    number("locked_until", nullable=True),
    word("last_error", 255, nullable=True),
    number("created_at"),
    number("finished_at", nullable=True),
    CheckConstraint("status IN ('queued','delayed','running','done','dead','skipped')", name="status"),
)
_UNFINISHED = text("status IN ('queued','delayed','running')")
_GIVEN_UP = text("status IN ('dead','skipped')")


Index(
    "ix_inference_jobs_claim",
    inference_jobs.c.priority.desc(),
    inference_jobs.c.lap,
    inference_jobs.c.job_id,
    postgresql_where=text("status = 'queued'"),
    sqlite_where=text("status = 'queued'"),
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_inference_jobs_camera",
    inference_jobs.c.camera_key,
    inference_jobs.c.job_id,
    postgresql_where=_UNFINISHED,
    sqlite_where=_UNFINISHED,
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_inference_jobs_delayed",
    inference_jobs.c.available_at,
    postgresql_where=text("status = 'delayed'"),
    sqlite_where=text("status = 'delayed'"),
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_inference_jobs_running",
    inference_jobs.c.locked_until,
    postgresql_where=text("status = 'running'"),
    sqlite_where=text("status = 'running'"),
).ddl_if(callable_=has_partial_indexes)
# Those that people look through, among the many that are done.
Index(
    "ix_inference_jobs_given_up",
    inference_jobs.c.tenant_id,
    inference_jobs.c.job_id,
    postgresql_where=_GIVEN_UP,
    sqlite_where=_GIVEN_UP,
).ddl_if(callable_=has_partial_indexes)
Index(
    "ix_inference_jobs_claim",
    inference_jobs.c.status,
    inference_jobs.c.priority.desc(),
    inference_jobs.c.lap,
    inference_jobs.c.job_id,
).ddl_if(callable_=lacks_partial_indexes)
Index(
    "ix_inference_jobs_camera", inference_jobs.c.camera_key, inference_jobs.c.status, inference_jobs.c.job_id
).ddl_if(callable_=lacks_partial_indexes)
