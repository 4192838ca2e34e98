"""The schema, on one page.

Conventions
- Time is BIGINT UTC epoch milliseconds, written by a store clock, never by the database's NOW().
- Inside keys are BIGINT (`camera_key`, `frame_id`); public ids are strings: `camera_id` unique in its tenant,
  UUIDv7 elsewhere (`frame_uuid`).
- `tenant_id` is on every table that holds a tenant's data: tenants are the shard key. Exceptions belong to the
  installation: schema_versions, epochs, setup_links.
- Booleans are SMALLINT 0/1: the same literal works on the three databases.
- Strings compare byte by byte (MariaDB: utf8mb4_bin), as on the other two.
- JSON columns are read and written as text.
- Fractions are DOUBLE: MariaDB's FLOAT keeps six digits, and a score read back must equal the one written.
- Foreign keys guard the tables people edit. Tables written per look (frames, tags, jobs, changes) have none: each
  would cost a look-up a row, their writers hold the parent in the same transaction, and `camserver db check`
  counts orphans.

`migrations/` makes this schema; a test compares a migrated database with this page on all three databases.
"""

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.schema import SchemaItem

metadata = MetaData(
    naming_convention={
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only for a column declared INTEGER PRIMARY KEY.
Key = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")
Uuid = String(36)


def table(name: str, *items: SchemaItem, by_key: bool = False) -> Table:
    """`by_key`: rows live in the primary key's own tree on SQLite, which saves a second one."""
    return Table(
        name,
        metadata,
        *items,
        sqlite_with_rowid=not by_key,
        # SQLAlchemy's mariadb dialect ignores options named mysql_….
        mariadb_charset="utf8mb4",
        mariadb_collate="utf8mb4_bin",
        mariadb_engine="InnoDB",
    )


def key(name: str) -> Column[int]:
    return Column(name, Key, primary_key=True, autoincrement=True)


def parent(name: str, target: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, ForeignKey(target), nullable=False, **options)


def number(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, **{"nullable": False, **options})


def flag(name: str, default: int = 0) -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=text(str(default)))


def count(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def word(name: str, length: int, **options: Any) -> Column[str]:
    return Column(name, String(length), **{"nullable": False, **options})


# ---------------------------------------------------------------------------------------------------------------
# Whose it is
# ---------------------------------------------------------------------------------------------------------------

tenants = table(
    "tenants",
    key("tenant_id"),
    word("tenant_uuid", 36, unique=True),
    word("name", 128, unique=True),
    number("created_at"),
)

# The change feed's counter, apart from `tenants` because every transaction that changes something locks it last.
change_counters = table(
    "change_counters",
    Column("tenant_id", Key, ForeignKey("tenants.tenant_id"), primary_key=True, autoincrement=False),
    number("last_seq", server_default=text("0")),
)

sites = table(
    "sites",
    key("site_id"),
    parent("tenant_id", "tenants.tenant_id"),
    word("site_uuid", 36, unique=True),
    word("name", 128),
    word("timezone", 64, server_default="UTC"),  # an IANA name, for local times in messages and reports
    number("created_at"),
    UniqueConstraint("tenant_id", "name"),
)

users = table(
    "users",
    key("user_id"),
    parent("tenant_id", "tenants.tenant_id"),
    word("user_uuid", 36, unique=True),
    word("login", 128, unique=True),  # lower case; unique over all tenants, so signing in needs no tenant
    word("display_name", 128, server_default=""),
    word("role", 16),
    word("password_hash", 255, nullable=True),  # argon2id; NULL = can't sign in with a password
    word("language", 8, server_default="ja"),
    flag("disabled"),
    count("failed_logins"),
    number("locked_until", nullable=True),
    number("password_changed_at", nullable=True),
    number("created_at"),
)

# Signed-in browsers. Only a hash of the cookie's token is kept, so a stolen database signs nobody in.
sessions = table(
    "sessions",
    key("session_id"),
    parent("tenant_id", "tenants.tenant_id"),
    Column("user_id", BigInteger, ForeignKey("users.user_id", ondelete="CASCADE"), nullable=False),
    word("token_hash", 64, unique=True),
    word("csrf_token", 64),
    number("created_at"),
    number("expires_at"),
    number("last_seen_at"),
    word("address", 64, server_default=""),
    word("user_agent", 255, server_default=""),
    Index("ix_sessions_expires_at", "expires_at"),
    Index("ix_sessions_user_id", "user_id"),
)

# One-time links that make the first admin: hashed, one hour, single use.
setup_links = table(
    "setup_links",
    key("link_id"),
    word("token_hash", 64, unique=True),
    number("created_at"),
    number("expires_at"),
    number("used_at", nullable=True),
)

# Append-only: nothing updates or deletes a row but retention.
audit_log = table(
    "audit_log",
    key("entry_id"),
    number("tenant_id"),
    number("at"),
    word("actor_kind", 16),  # user, worker, system
    word("actor_id", 64),
    word("action", 64),
    word("object_kind", 32, server_default=""),
    word("object_id", 64, server_default=""),
    Column("details", Json, nullable=True),
    word("address", 64, server_default=""),
    Index("ix_audit_log_tenant_id_at", "tenant_id", "at", "entry_id"),
)

# Values changed at run time. tenant_id 0 holds the installation's.
settings = table(
    "settings",
    number("tenant_id"),
    word("name", 64),
    Column("value", Json, nullable=False),
    number("updated_at"),
    PrimaryKeyConstraint("tenant_id", "name"),
    by_key=True,
)

# Vocabularies ("schema" in the seeds). `active_slot` is 1 for the active one and NULL for the others: UNIQUE keeps
# it to one on all three databases.
schema_versions = table(
    "schema_versions",
    word("schema_version", 64, primary_key=True),
    Column("document", Json, nullable=False),
    Column("active_slot", SmallInteger, nullable=True, unique=True),
    number("created_at"),
    number("activated_at", nullable=True),
)

# ---------------------------------------------------------------------------------------------------------------
# Cameras
# ---------------------------------------------------------------------------------------------------------------

cameras = table(
    "cameras",
    key("camera_key"),
    parent("tenant_id", "tenants.tenant_id"),
    parent("site_id", "sites.site_id"),
    word("camera_id", 64),
    word("name", 128),
    flag("enabled", 1),
    flag("do_not_process"),  # obeyed in the worker, before anything is sent or kept
    word("network_zone", 16, server_default="local"),  # local or vpn: the longer connect time-out
    Column("caps", Json, nullable=True),  # e.g. {"codec": "h264", "res": "1920x1080", "fps": 25}
    number("last_probe_at", nullable=True),
    number("last_state_change_at", nullable=True),
    # When people removed it. The row and its evidence stay until retention takes them; its camera_id is free again.
    number("deleted_at", nullable=True),
    number("created_at"),
    number("updated_at"),
    UniqueConstraint("tenant_id", "camera_id"),
    Index("ix_cameras_site_id", "site_id"),
)

camera_streams = table(
    "camera_streams",
    key("stream_id"),
    number("tenant_id"),
    Column("camera_key", BigInteger, ForeignKey("cameras.camera_key", ondelete="CASCADE"), nullable=False),
    word("kind", 8),  # main or sub
    word("source_type", 16),  # rtsp, http, webcam, file, test
    word("url", 1024),  # never with credentials
    flag("is_primary", 1),
    UniqueConstraint("camera_key", "kind"),
)

# Credentials, AES-GCM with associated data tenant|camera. `credential_version` counts changes, so a back-off for a
# wrong password ends when the password changes.
camera_auth = table(
    "camera_auth",
    Column(
        "camera_key",
        Key,
        ForeignKey("cameras.camera_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    number("tenant_id"),
    word("key_id", 32),
    Column("nonce", LargeBinary(12), nullable=False),
    Column("ciphertext", LargeBinary(2048), nullable=False),
    count("credential_version", 1),
    number("updated_at"),
)

# Per-camera settings; NULL = the configured default.
camera_overrides = table(
    "camera_overrides",
    Column(
        "camera_key",
        Key,
        ForeignKey("cameras.camera_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    number("tenant_id"),
    Column("polling_interval_sec", Double, nullable=True),
    Column("connect_timeout_sec", Double, nullable=True),
    Column("infer_width", Integer, nullable=True),
    Column("diff_width", Integer, nullable=True),
    Column("force_infer_every_n", Integer, nullable=True),
    Column("detect_every_n_frames", Integer, nullable=True),
    Column("job_priority", SmallInteger, nullable=True),
    number("updated_at"),
    word("transport", 8, nullable=True),  # tcp or udp
    word("tls_pin", 64, nullable=True),  # sha256 of the camera's certificate, hex; NULL = checked against the CAs
    Column("rotation", SmallInteger, nullable=True),  # 0, 90, 180, 270, clockwise
    # Polygons over the picture as it is shown after rotation, points as shares (0..1) of it: [[[x, y], …], …].
    Column("ignore_masks", Json, nullable=True),
    Column("privacy_masks", Json, nullable=True),
    Column("zones", Json, nullable=True),  # [{"name": …, "points": [[x, y], …]}, …]
    Column("mask_clock", SmallInteger, nullable=True),  # whether burned-in clocks that are found are masked
    word("device", 128, nullable=True),  # cameras with the same one share a device (a recorder, say)
    Column("streams_max", Integer, nullable=True),  # connections that device bears at once
    Column("clip_sec", Double, nullable=True),  # 0 = no clips
)

# What deciding needs to know of a camera. Every outcome is conditional on `version` and raises it, so two
# dispatchers never decide on the same state. Late frames leave it alone.
camera_state = table(
    "camera_state",
    Column(
        "camera_key",
        Key,
        ForeignKey("cameras.camera_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    number("tenant_id"),
    number("version", server_default=text("0")),
    number("open_event_id", nullable=True),
    number("incident_id", nullable=True),  # the newest incident
    Column("stills", Json, nullable=True),  # stationary memory, see domain/stationary.py
    Column("gate_state", LargeBinary(16384), nullable=True),  # the worker's gate, below 16 kB
    flag("last_detected"),  # verdict of the newest analyzed frame, for the sticky gate
    number("last_analyzed_at", nullable=True),  # captured_at of that frame
    word("health", 8, server_default="unknown"),  # up, down, unknown
    number("health_since", nullable=True),
    number("updated_at"),
    word("health_cause", 32, server_default=""),  # why it is down, e.g. unauthorized
    Column("issues", Json, nullable=True),  # kinds of issue that hold now, and since when
)

# What the rule of domain/health.py remembers of a camera between looks; what it says of it is in `camera_state`.
# Apart from that, because this one changes with every look. Written only under its own lock.
camera_health = table(
    "camera_health",
    Column(
        "camera_key",
        Key,
        ForeignKey("cameras.camera_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    number("tenant_id"),
    number("generation", server_default=text("0")),  # of the newest look taken in …
    number("seq", server_default=text("0")),  # … and its number
    word("standing", 16, server_default=""),  # attended, unattended, off
    number("due_at", nullable=True),  # when time alone may change something
    Column("memory", Json, nullable=True),
    number("updated_at"),
)

# ---------------------------------------------------------------------------------------------------------------
# Workers and leases
# ---------------------------------------------------------------------------------------------------------------

workers = table(
    "workers",
    key("worker_key"),
    parent("tenant_id", "tenants.tenant_id"),
    parent("site_id", "sites.site_id"),
    word("worker_id", 64),
    word("version", 32, server_default=""),
    Column("labels", Json, nullable=True),
    Column("capacity", Json, nullable=False),  # {"slots": 1, "cpu": 0, "gpu": 0, "mem": 0}
    word("status", 16, server_default="REGISTERED"),
    word("boot_id", 64, server_default=""),
    number("connected_epoch", nullable=True),  # the control process that has its socket
    number("last_seen_at", nullable=True),
    number("created_at"),
    UniqueConstraint("tenant_id", "worker_id"),
)

# One row per camera, rewritten per generation. A camera has at most one holder: the row's worker while the lease has
# not expired. `generation` only grows.
camera_sessions = table(
    "camera_sessions",
    Column(
        "camera_key",
        Key,
        ForeignKey("cameras.camera_key", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    number("tenant_id"),
    number("site_id"),
    number("worker_key", nullable=True),
    number("generation", server_default=text("0")),
    word("state", 16, server_default="ORPHANED"),  # PENDING, ACTIVE, PAUSED, ORPHANED, TERMINATED
    number("lease_expires_at", nullable=True),
    word("reason", 255, server_default=""),
    word("intent_id", 36, nullable=True),  # of the newest intent, START or (with stop_wanted) STOP
    number("start_sent_at", nullable=True),  # of a START that is still waited for
    number("acked_at", nullable=True),  # of that intent; NULL = send it (again)
    number("ready_at", nullable=True),  # pipeline_ready came in this generation
    number("next_attempt_at", nullable=True),  # travels in START, so a move never resets a back-off
    count("failures"),
    count("auth_failures"),
    count("credential_version"),
    number("avoid_worker_key", nullable=True),  # a worker whose fault it was
    number("moved_at", nullable=True),  # last retry elsewhere: at most once in ten minutes
    flag("stop_wanted"),  # the holder was asked to stop and release
    number("updated_at"),
    Index("ix_camera_sessions_worker_key", "worker_key"),
    Index("ix_camera_sessions_tenant_id_site_id", "tenant_id", "site_id"),
)

# The history that tells a live frame from a late one from a stranger's (decisions 12). `ended_at` NULL = current.
camera_leases = table(
    "camera_leases",
    number("camera_key"),
    number("generation"),
    number("tenant_id"),
    number("worker_key"),
    number("granted_at"),
    number("ended_at", nullable=True),
    word("end_reason", 32, server_default=""),
    number("last_seq", server_default=text("0")),  # the highest look received
    PrimaryKeyConstraint("camera_key", "generation"),
    by_key=True,
)

# A writer of objects. Keys carry its number; a frame's transaction checks that it is alive; the sweep ends a dead one
# first and deletes its rowless objects afterwards, so no row can appear for a deleted object (decisions 13).
epochs = table(
    "epochs",
    key("epoch_id"),
    word("owner", 128),
    number("started_at"),
    number("seen_at"),
    number("ended_at", nullable=True),
    number("swept_at", nullable=True),
)

# Short tasks for a worker, answered once: waiting → sent → done | failed, or expired. With a camera they go to its
# holder, without one to any worker of the site. Rows and their objects are deleted some time after `expires_at`.
errands = table(
    "errands",
    key("errand_id"),
    word("errand_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key", nullable=True),
    word("kind", 16),  # probe, discover, look, explain, clip
    Column("request", Json, nullable=False),
    # Credentials of a source that is no camera yet, sealed as in camera_auth; gone as soon as the errand is over.
    word("key_id", 32, nullable=True),
    Column("nonce", LargeBinary(12), nullable=True),
    Column("ciphertext", LargeBinary(2048), nullable=True),
    number("worker_key", nullable=True),  # whom it was sent to; nobody else may answer
    number("generation", nullable=True),  # of the camera's lease at that time
    word("state", 8),  # waiting, sent, done, failed, expired
    word("message", 255, server_default=""),
    Column("result", Json, nullable=True),
    word("object_key", 255, nullable=True),
    number("object_bytes", server_default=text("0")),
    word("object_type", 32, server_default=""),
    number("epoch_id", nullable=True),  # of the object's writer
    number("created_at"),
    number("expires_at"),
    number("sent_at", nullable=True),
    number("done_at", nullable=True),
    Index("ix_errands_state_expires_at", "state", "expires_at"),
    Index("ix_errands_expires_at", "expires_at"),
    Index("ix_errands_epoch_id", "epoch_id"),
)

# ---------------------------------------------------------------------------------------------------------------
# Looks and jobs
# ---------------------------------------------------------------------------------------------------------------

# Every look leaves a row, also a failed one. Object keys follow from (epoch, tenant, camera, uuid), see
# objects/keys.py; `*_bytes` NULL = no such picture.
frames = table(
    "frames",
    key("frame_id"),
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
# queue hold many cameras, so a camera with a long queue can't starve the others.
inference_jobs = table(
    "inference_jobs",
    key("job_id"),
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


def _has_partial_indexes(*_: Any, dialect: Any, **__: Any) -> bool:
    return dialect.name in ("postgresql", "sqlite")


def _lacks_partial_indexes(*_: Any, dialect: Any, **__: Any) -> bool:
    return not _has_partial_indexes(dialect=dialect)


Index(
    "ix_inference_jobs_claim",
    inference_jobs.c.priority.desc(),
    inference_jobs.c.lap,
    inference_jobs.c.job_id,
    postgresql_where=text("status = 'queued'"),
    sqlite_where=text("status = 'queued'"),
).ddl_if(callable_=_has_partial_indexes)
Index(
    "ix_inference_jobs_camera",
    inference_jobs.c.camera_key,
    inference_jobs.c.job_id,
    postgresql_where=_UNFINISHED,
    sqlite_where=_UNFINISHED,
).ddl_if(callable_=_has_partial_indexes)
Index(
    "ix_inference_jobs_delayed",
    inference_jobs.c.available_at,
    postgresql_where=text("status = 'delayed'"),
    sqlite_where=text("status = 'delayed'"),
).ddl_if(callable_=_has_partial_indexes)
Index(
    "ix_inference_jobs_running",
    inference_jobs.c.locked_until,
    postgresql_where=text("status = 'running'"),
    sqlite_where=text("status = 'running'"),
).ddl_if(callable_=_has_partial_indexes)
Index(
    "ix_inference_jobs_claim",
    inference_jobs.c.status,
    inference_jobs.c.priority.desc(),
    inference_jobs.c.lap,
    inference_jobs.c.job_id,
).ddl_if(callable_=_lacks_partial_indexes)
Index(
    "ix_inference_jobs_camera", inference_jobs.c.camera_key, inference_jobs.c.status, inference_jobs.c.job_id
).ddl_if(callable_=_lacks_partial_indexes)

# ---------------------------------------------------------------------------------------------------------------
# Events
# ---------------------------------------------------------------------------------------------------------------

# `open_key` is the camera while the event is open and NULL once closed; UNIQUE, so a camera has one open event.
events = table(
    "events",
    key("event_id"),
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
    Index("ix_events_issue_key", "issue_key", unique=True),
    Index("ix_events_camera_key_start_at", "camera_key", "start_at", "event_id"),
    Index("ix_events_tenant_id_start_at", "tenant_id", "start_at", "event_id"),
    Index("ix_events_incident_id", "incident_id"),
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
    key("incident_id"),
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

# A short film of an event, cut from the worker's ring buffer: asked → ready, or none with the reason.
clips = table(
    "clips",
    key("clip_id"),
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

# ---------------------------------------------------------------------------------------------------------------
# What leaves the house
# ---------------------------------------------------------------------------------------------------------------

# An outbox: rows are made in the job's transaction and done by a loop of their own, at least once. `delivery_uuid`
# lets the receiver drop a repeat.
deliveries = table(
    "deliveries",
    key("delivery_id"),
    word("delivery_uuid", 36, unique=True),
    number("tenant_id"),
    number("site_id"),
    number("camera_key"),
    word("kind", 16),  # archive, notify, llm_review
    word("reason", 64),
    number("frame_id", nullable=True),
    number("event_id", nullable=True),
    number("incident_id", nullable=True),
    word("status", 8),  # as in inference_jobs
    flag("attempt"),
    number("available_at"),
    word("locked_by", 128, nullable=True),
    word("locked_token", 36, nullable=True),
    number("locked_until", nullable=True),
    word("last_error", 255, nullable=True),
    number("created_at"),
    number("finished_at", nullable=True),
    Index("ix_deliveries_status_available_at", "status", "available_at", "delivery_id"),
)

# Messages that were sent.
notifications = table(
    "notifications",
    key("notification_id"),
    number("tenant_id"),
    number("delivery_id"),
    number("camera_key"),
    number("incident_id", nullable=True),
    word("channel", 32),
    Column("body", Text, nullable=False),
    count("suppressed"),  # how many this one stands for besides its own ("+N")
    number("sent_at"),
    Index("ix_notifications_tenant_id_sent_at", "tenant_id", "sent_at"),
)

# Started only by a successful send. `scope` is a primary event, or '' for the camera as a whole.
cooldowns = table(
    "cooldowns",
    number("camera_key"),
    word("scope", 32),
    number("tenant_id"),
    number("until"),
    count("suppressed"),
    PrimaryKeyConstraint("camera_key", "scope"),
    by_key=True,
)

# ---------------------------------------------------------------------------------------------------------------
# The feed and the bin
# ---------------------------------------------------------------------------------------------------------------

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
    key("garbage_id"),
    number("tenant_id"),
    word("object_key", 255),
    number("created_at"),
)
