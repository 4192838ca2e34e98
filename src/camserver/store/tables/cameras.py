"""Cameras and what is remembered of each."""

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    UniqueConstraint,
    text,
)

from camserver.store.tables.columns import Json, Key, count, flag, key, number, parent, table, word

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
    number("pinned_worker_key", nullable=True),  # the only worker that may hold it
    Column("needs_labels", Json, nullable=True),  # {"name": "value"}: labels its worker must have
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
    Column("hints", Json, nullable=True),  # what the analyzer is told of the camera: preset, objects, thresholds
    Column("suggest_weight", SmallInteger, nullable=True),  # 0..10: how readily it is suggested; NULL = 5
    Column("live_sound", SmallInteger, nullable=True),  # 0: its sound is never asked for
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
