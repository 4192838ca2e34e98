"""The environment variables of the first design documents, and which setting each of them is here.

Those documents name their settings for one service each; here a name means the same for every service.
Lower-case names of their configuration structures are understood in upper case, as such structures are read
from the environment. `docs/ref/seed-names.md` holds this table; a test keeps the two equal.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SeedName:
    """`document` is the number of the document that has the name; `note` says what differs."""

    variable: str
    setting: str  # section.key
    document: str
    note: str = ""


SEED_NAMES: Final[tuple[SeedName, ...]] = (
    SeedName("DATABASE_URL", "store.url", "000, 002", "mysql://, mariadb://, postgresql:// or sqlite:///"),
    SeedName("SPOOL_DIR", "worker.spool_dir", "000, 002", "only the worker spools; pictures are objects afterwards"),
    SeedName("IS21_BASE_URL", "analyzer.url", "000, 002"),
    SeedName("ANALYZER_URL", "analyzer.url", "analyzer contract"),
    SeedName("SCHEMA_VERSION", "vocabulary.schema_version", "000, 002"),
    SeedName("MEDIA_HMAC_SECRET", "media.hmac_secret", "002"),
    SeedName("MEDIA_TTL_SEC", "media.link_ttl_sec", "002"),
    SeedName("WEB_BASE_URL", "server.public_url", "002"),
    SeedName("WEBHOOK", "webhook.url", "002"),
    SeedName("WEBHOOK_URL", "webhook.url", "002"),
    SeedName("DRIVE_CREDENTIALS_FILE", "drive.credentials_file", "002"),
    SeedName("DRIVE_FOLDER_ID", "drive.folder_id", "002"),
    SeedName("EVENT_CLOSE_GRACE_SEC", "events.close_grace_sec", "000, 002"),
    SeedName("EVENT_MERGE_GAP_SEC", "events.merge_gap_sec", "000"),
    SeedName("TICK_SEC", "looks.polling_interval_sec", "002", "also per camera"),
    SeedName("POLLING_INTERVAL_SEC", "looks.polling_interval_sec", "002", "also per camera"),
    SeedName("RTSP_TIMEOUT_SEC", "looks.connect_timeout_sec", "002"),
    SeedName("DEFAULT_INFER_WIDTH", "looks.infer_width", "002", "also per camera"),
    SeedName("DEFAULT_DIFF_WIDTH", "looks.diff_width", "002", "also per camera"),
    SeedName("FORCE_INFER_EVERY_N", "gate.force_infer_every_n", "002", "also per camera"),
    SeedName("DIFF_RATIO_NO_EVENT", "gate.diff_ratio_no_event", "002", 'decides with gate.rule = "threshold"'),
    SeedName("LUMA_DELTA_NO_EVENT", "gate.luma_delta_no_event", "002", 'decides with gate.rule = "threshold"'),
    SeedName("DEFAULT_JOB_PRIORITY", "jobs.default_priority", "002"),
    SeedName("MAX_ATTEMPT", "jobs.max_attempt", "000, 002"),
    SeedName("BACKOFF_SEC", "jobs.backoff_base_sec", "002", "the first wait; it doubles from there"),
    SeedName("NOTIFY_COOLDOWN_SEC", "notify.cooldown_sec", "002"),
    SeedName("TOTAL_STREAM_UNITS", "admission.total_stream_units", "001"),
    SeedName("MAX_UI_USERS", "admission.max_ui_users", "001"),
    SeedName("RESERVED_BASELINE_UNITS", "admission.reserved_baseline_units", "001"),
    SeedName("SUB_STREAM_COST", "admission.sub_stream_cost", "001"),
    SeedName("MAIN_STREAM_COST", "admission.main_stream_cost", "001"),
    SeedName("MODAL_TTL_SEC", "admission.modal_ttl_sec", "001"),
    SeedName("HEARTBEAT_INTERVAL_SEC", "admission.heartbeat_interval_sec", "001", "of a viewing, not of a worker"),
    SeedName("HEARTBEAT_GRACE_SEC", "admission.heartbeat_grace_sec", "001", "of a viewing, not of a worker"),
    SeedName("LEASE_TTL", "leases.ttl_sec", "004", "a number of seconds without unit"),
    SeedName("LEASE_TTL_SEC", "leases.ttl_sec", "004"),
    SeedName("WORKER_ID", "worker.name", "002, 004", "a dispatcher names its locks itself"),
    SeedName("SITE_ID", "worker.site_id", "004"),
)
