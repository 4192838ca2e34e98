"""The schema, a module for each subject.

Conventions
- Time is BIGINT UTC epoch milliseconds, written by a store clock, never by the database's NOW().
- Inside keys are BIGINT (`camera_key`, `frame_id`); public ids are strings: `camera_id` unique in its tenant,
  UUIDv7 elsewhere (`frame_uuid`).
- `tenant_id` is on every table that holds a tenant's data: tenants are the shard key. Exceptions belong to the
  installation: schema_versions, hidden_tags, epochs, setup_links, duties, analyzers, streamers,
  admission_metrics, scoring_limits, scoring_found.
- Booleans are SMALLINT 0/1: the same literal works on the three databases.
- Strings compare byte by byte (MariaDB: utf8mb4_bin), as on the other two.
- JSON columns are read and written as text.
- Fractions are DOUBLE: MariaDB's FLOAT keeps six digits, and a score read back must equal the one written.
- Foreign keys guard the tables people edit. Tables written per look (frames, tags, jobs, changes) have none: each
  would cost a look-up a row, their writers hold the parent in the same transaction, and `camserver db check`
  counts orphans.

`migrations/` makes this schema; a test compares a migrated database with it on all three databases.
"""

from camserver.store.tables.archive import archive_days, drive_objects
from camserver.store.tables.audit import audit_log, audit_seals
from camserver.store.tables.cameras import (
    camera_auth,
    camera_health,
    camera_overrides,
    camera_state,
    camera_streams,
    cameras,
)
from camserver.store.tables.cases import case_items, case_notes, cases
from camserver.store.tables.columns import metadata
from camserver.store.tables.deliveries import (
    cooldowns,
    deliveries,
    notifications,
    notify_rules,
    push_subscriptions,
    receiver_hours,
    receivers,
    snoozes,
)
from camserver.store.tables.events import clips, event_tags, events, incident_reviews, incidents
from camserver.store.tables.live import admission_metrics, modal_leases, streamers, suggestions
from camserver.store.tables.looks import frame_gaps, frame_tags, frames, inference_jobs, look_pauses
from camserver.store.tables.people import (
    api_tokens,
    change_counters,
    grants,
    hidden_tags,
    password_links,
    removed_users,
    schema_versions,
    sessions,
    settings,
    setup_links,
    sites,
    tenants,
    user_identities,
    users,
)
from camserver.store.tables.reviews import llm_days, llm_reviews
from camserver.store.tables.scoring import (
    event_scores,
    scoring_cache,
    scoring_chunks,
    scoring_events,
    scoring_files,
    scoring_found,
    scoring_limits,
    scoring_results,
    scoring_runs,
    scoring_sheets,
)
from camserver.store.tables.search import search_texts, search_tokens
from camserver.store.tables.shares import request_keys, share_openings, shares
from camserver.store.tables.statistics import camera_usage, daily_summaries, hourly_stats
from camserver.store.tables.upkeep import analyzers, changes, duties, garbage, sweep_reports
from camserver.store.tables.workers import (
    camera_leases,
    camera_sessions,
    epochs,
    errands,
    feature_flags,
    worker_certificates,
    worker_enrolments,
    workers,
)

__all__ = [
    "admission_metrics",
    "analyzers",
    "api_tokens",
    "archive_days",
    "audit_log",
    "audit_seals",
    "camera_auth",
    "camera_health",
    "camera_leases",
    "camera_overrides",
    "camera_sessions",
    "camera_state",
    "camera_streams",
    "camera_usage",
    "cameras",
    "case_items",
    "case_notes",
    "cases",
    "change_counters",
    "changes",
    "clips",
    "cooldowns",
    "daily_summaries",
    "deliveries",
    "drive_objects",
    "duties",
    "epochs",
    "errands",
    "event_scores",
    "event_tags",
    "events",
    "feature_flags",
    "frame_gaps",
    "frame_tags",
    "frames",
    "garbage",
    "grants",
    "hidden_tags",
    "hourly_stats",
    "incident_reviews",
    "incidents",
    "inference_jobs",
    "llm_days",
    "llm_reviews",
    "look_pauses",
    "metadata",
    "modal_leases",
    "notifications",
    "notify_rules",
    "password_links",
    "push_subscriptions",
    "receiver_hours",
    "receivers",
    "removed_users",
    "request_keys",
    "schema_versions",
    "scoring_cache",
    "scoring_chunks",
    "scoring_events",
    "scoring_files",
    "scoring_found",
    "scoring_limits",
    "scoring_results",
    "scoring_runs",
    "scoring_sheets",
    "search_texts",
    "search_tokens",
    "sessions",
    "settings",
    "setup_links",
    "share_openings",
    "shares",
    "sites",
    "snoozes",
    "streamers",
    "suggestions",
    "sweep_reports",
    "tenants",
    "user_identities",
    "users",
    "worker_certificates",
    "worker_enrolments",
    "workers",
]
