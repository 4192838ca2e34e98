"""Workers, their certificates, leases and errands."""

from sqlalchemy import Column, Double, ForeignKey, Index, LargeBinary, PrimaryKeyConstraint, UniqueConstraint, text

from camserver.store.tables.columns import Json, Key, count, flag, key, number, parent, row_key, table, word

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
    flag("drain_wanted"),  # people want it emptied: it gets no camera, and those it has go elsewhere
    Column("metrics", Json),  # what it measured last, name → number; written at most once a minute
    number("metrics_at", nullable=True),
    UniqueConstraint("tenant_id", "worker_id"),
)

# One-time tokens by which a worker at another site gets its certificate. Only hashes of their secrets are kept.
worker_enrolments = table(
    "worker_enrolments",
    key("enrolment_id"),
    parent("tenant_id", "tenants.tenant_id"),
    parent("site_id", "sites.site_id"),
    word("worker_id", 64, nullable=True),  # whom it is for; NULL: a worker that there is none of yet
    word("token_hash", 64, unique=True),
    number("created_at"),
    number("expires_at"),
    number("used_at", nullable=True),
    Index("ix_worker_enrolments_tenant_id", "tenant_id"),
)

# Every certificate that our CA gave a worker, until it is of no use any more. What is not here does not count,
# whoever signed it.
worker_certificates = table(
    "worker_certificates",
    key("certificate_id"),
    parent("tenant_id", "tenants.tenant_id"),
    parent("site_id", "sites.site_id"),
    word("worker_id", 64),
    word("serial", 40, unique=True),  # hex
    word("sha256", 64),
    number("created_at"),
    number("expires_at"),
    number("renewed_at", nullable=True),
    number("revoked_at", nullable=True),
    Index("ix_worker_certificates_tenant_id_worker_id", "tenant_id", "worker_id"),
    Index("ix_worker_certificates_revoked_at", "revoked_at"),
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
    number("wanted_worker_key", nullable=True),  # where it is to go next; elsewhere when that can't be
    # What it costs its holder, as it was when it was taken (domain/camera_load.py): cores, GPUs, bytes.
    Column("load_cpu", Double, nullable=False, server_default=text("0")),
    Column("load_gpu", Double, nullable=False, server_default=text("0")),
    Column("load_mem", Double, nullable=False, server_default=text("0")),
    # The last fault of one of two streams: {"stream", "fault", "message", "at", "over_at"}; over_at null: it lasts.
    Column("stream_fault", Json),
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
    row_key("errand_id"),
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

# Switches by tenant and site, such as the style of assignment. Site 0 stands for all sites of the tenant; a row for a
# site comes before it.
feature_flags = table(
    "feature_flags",
    number("tenant_id"),
    number("site_id"),
    word("name", 64),
    word("value", 64),
    number("updated_at"),
    PrimaryKeyConstraint("tenant_id", "site_id", "name"),
    by_key=True,
)
