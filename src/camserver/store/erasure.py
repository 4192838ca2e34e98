"""Erasing a tenant: asked for once, then done a page a transaction until nothing of it is left.

Every transaction leaves a state from which the next one goes on, so an erasure survives the end of whoever does it at
any moment. Objects are named in `garbage` in the transaction that deletes their rows; the tenant itself goes only
when these are unlinked, too. What `TABLES` lists is all that has a tenant: a test holds it against the schema.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.domain import tenants as rules
from camserver.domain.people import Principal
from camserver.domain.picture_keys import Kind, frame_key
from camserver.store import audit, garbage, hourly_stats, search_texts, tenant_desk, tenants
from camserver.store.erasures_asked import ASKED
from camserver.store.sql import Sql
from camserver.store.tenant_desk import TenantSummary
from camserver.store.tx import Row, Scoped, Tx

PAGE = 500
CAMERAS_PAGE = 500
HELD_SHOWN_MAX = 1_000
# So long the tenant itself stays at least: whatever somebody was at when it was asked for has ended by then, and what
# that left behind is deleted with the rest.
LASTS_MS_MIN = 60_000


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a tenant, and the columns that tell its rows apart."""

    name: str
    keys: str
    object_key: str | None = None  # the column that names an object
    object_bytes: str = ""


# Children before their parents. Those of each camera are gone mostly before it comes to this order.
TABLES = (
    Table("frame_tags", "frame_id, tag_id"),
    Table("inference_jobs", "job_id"),
    Table("frame_gaps", "camera_key, generation, first_seq"),
    Table("look_pauses", "camera_key, begin_at"),
    Table("frames", "frame_id"),
    Table("event_tags", "event_id, tag_id"),
    Table("event_scores", "event_id, category"),
    Table("clips", "clip_id", "object_key", "object_bytes"),
    Table("llm_reviews", "review_id"),
    Table("incident_reviews", "incident_id, user_id"),
    Table("events", "event_id"),
    Table("incidents", "incident_id"),
    Table("errands", "errand_id", "object_key", "object_bytes"),
    Table("drive_objects", "object_id"),
    Table("archive_days", "receiver_id, camera_key, day"),
    Table("deliveries", "delivery_id"),
    Table("notifications", "notification_id"),
    Table("cooldowns", "receiver_id, camera_key, scope"),
    Table("receiver_hours", "receiver_id, hour_at"),
    Table("notify_rules", "rule_id"),
    Table("snoozes", "snooze_id"),
    Table("push_subscriptions", "subscription_id"),
    Table("receivers", "receiver_id"),
    Table("search_tokens", "tenant_id, kind, token, at, object_id"),
    Table("search_texts", "kind, object_id"),
    Table("case_items", "item_id"),
    Table("case_notes", "note_id"),
    Table("cases", "case_id"),
    Table("llm_days", "tenant_id, day"),
    Table("hourly_stats", "tenant_id, camera_key, hour_at"),
    Table("camera_usage", "camera_key, retention_class"),
    Table("daily_summaries", "tenant_id, site_id, day"),
    Table("feature_flags", "tenant_id, site_id, name"),
    Table("scoring_results", "result_id"),
    Table("scoring_chunks", "run_id, number"),
    Table("scoring_runs", "run_id"),
    Table("scoring_events", "sheet_id, sheet_row"),
    Table("scoring_files", "file_id", "object_key", "object_bytes"),
    Table("scoring_sheets", "sheet_id"),
    Table("scoring_cache", "tenant_id, question_key"),
    Table("modal_leases", "lease_id"),
    Table("suggestions", "tenant_id"),
    Table("camera_leases", "camera_key, generation"),
    Table("camera_sessions", "camera_key"),
    Table("camera_health", "camera_key"),
    Table("camera_state", "camera_key"),
    Table("camera_overrides", "camera_key"),
    Table("camera_auth", "camera_key"),
    Table("camera_streams", "stream_id"),
    Table("grants", "grant_id"),
    Table("cameras", "camera_key"),
    Table("worker_certificates", "certificate_id"),
    Table("worker_enrolments", "enrolment_id"),
    Table("workers", "worker_key"),
    Table("share_openings", "share_id, address, hour"),
    Table("shares", "share_id"),
    Table("request_keys", "tenant_id, caller, key_hash"),
    Table("api_tokens", "token_id"),
    Table("user_identities", "identity_id"),
    Table("password_links", "link_id"),
    Table("sessions", "session_id"),
    Table("users", "user_id"),
    Table("removed_users", "user_id"),
    Table("sites", "site_id"),
    Table("settings", "tenant_id, name"),
    Table("sweep_reports", "report_id"),
    Table("audit_log", "entry_id"),
    Table("audit_seals", "tenant_id, batch_no"),
    Table("changes", "tenant_id, seq"),
)
# These go last of all, in one transaction; what is in the bin goes with its objects.
LAST = ("garbage", "change_counters", "tenants")


@dataclass(frozen=True, slots=True)
class Wanted:
    tenant: str  # name or uuid
    confirm: str
    also_held: bool
    copies_elsewhere: int = 0  # for the report


@dataclass(frozen=True, slots=True)
class Erased:
    """What a transaction deleted."""

    rows: int = 0
    objects: int = 0
    bytes: int = 0


async def copies_elsewhere(tx: Tx, principal: Principal, tenant: str) -> int:
    """Copies at archives outside. They stay there, and nobody reaches them any more when the receivers are gone."""
    found = await tenant_desk.get(tx, principal, tenant)
    row = await tx.one(
        "SELECT count(*) AS copies FROM drive_objects WHERE tenant_id = :tenant_id AND deleted_at IS NULL",
        tenant_id=found.tenant_id,
    )
    return 0 if row is None else int(row["copies"])


async def begin(tx: Tx, principal: Principal, wanted: Wanted, address: str, now_ms: int) -> TenantSummary:
    """Marks a tenant as being erased: nobody of it signs in any more, and no camera of it is given out."""
    await tenant_desk.require_home(tx, principal, lock=True)
    found = await tenant_desk.get(tx, principal, wanted.tenant)
    rules.refuse_home(found.is_home, "erased")
    held = await tx.all(
        f"SELECT title FROM cases WHERE tenant_id = :tenant_id AND hold = 1 LIMIT {HELD_SHOWN_MAX}",
        tenant_id=found.tenant_id,
    )
    rules.check_erasure(found.name, wanted.confirm, [row["title"] for row in held], wanted.also_held)
    if found.erasing_at is not None:
        return found
    await tx.run(
        "UPDATE tenants SET disabled = 1, erasing_at = :now_ms, erasing_by = :user_id WHERE tenant_id = :tenant_id",
        tenant_id=found.tenant_id,
        user_id=principal.user_id,
        now_ms=now_ms,
    )
    details: dict[str, str | int] = {
        "tenant_id": found.tenant_id,
        "tenant_uuid": found.tenant_uuid,
        "cases_held": len(held),
        "copies_elsewhere": wanted.copies_elsewhere,
    }
    entry = audit.Entry(ASKED, now_ms, address, "tenant", found.name, details)
    await audit.add_own(Scoped(tx, principal), entry)
    return await tenant_desk.get(tx, principal, found.tenant_uuid)


async def next_up(tx: Tx) -> int | None:
    """The tenant whose erasure was asked for first."""
    row = await tx.one(
        "SELECT tenant_id FROM tenants WHERE erasing_at IS NOT NULL ORDER BY erasing_at, tenant_id LIMIT 1"
    )
    return None if row is None else int(row["tenant_id"])


async def is_held(tx: Tx, tenant_id: int, now_ms: int) -> bool:
    """Whether a worker may still be at one of its cameras; control has them stop."""
    row = await tx.one(
        "SELECT camera_key FROM camera_sessions WHERE tenant_id = :tenant_id AND worker_key IS NOT NULL "
        "AND lease_expires_at > :now_ms LIMIT 1",
        tenant_id=tenant_id,
        now_ms=now_ms,
    )
    return row is not None


async def cameras(tx: Tx, tenant_id: int, after: int) -> tuple[int, ...]:
    rows = await tx.all(
        "SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id AND camera_key > :after "
        f"ORDER BY camera_key LIMIT {CAMERAS_PAGE}",
        tenant_id=tenant_id,
        after=after,
    )
    return tuple(row["camera_key"] for row in rows)


# ---------------------------------------------------------------------------------------------------------------
# A page
# ---------------------------------------------------------------------------------------------------------------

_FRAME = "frame_id, frame_uuid, tenant_id, camera_key, captured_at, epoch_id, infer_bytes, full_bytes"


async def erase_of_camera(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> Erased:
    """A page of what a camera left, found by the camera's indexes; nothing when nothing is left."""
    for step in (_some_frames, _some_events, _some_incidents, _some_history):
        erased = await step(tx, tenant_id, camera_key, now_ms)
        if erased.rows:
            await _count(tx, tenant_id, erased)
            return erased
    return Erased()


async def _some_frames(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> Erased:
    rows = await tx.all(
        f"SELECT {_FRAME} FROM frames WHERE camera_key = :camera_key AND tenant_id = :tenant_id "
        f"ORDER BY captured_at LIMIT {PAGE}",
        camera_key=camera_key,
        tenant_id=tenant_id,
    )
    return await _drop_frames(tx, tenant_id, rows, now_ms)


async def _drop_frames(tx: Tx, tenant_id: int, rows: Sequence[Row], now_ms: int) -> Erased:
    if not rows:
        return Erased()
    keys = tuple([key for row in rows for key in pictures(row)])
    await garbage.add(tx, tenant_id, keys, now_ms)
    ids = [row["frame_id"] for row in rows]
    count = await _drop(tx, ("frame_tags", "inference_jobs", "frames"), "frame_id", ids)
    await hourly_stats.step_back(tx)
    size = sum((row["infer_bytes"] or 0) + (row["full_bytes"] or 0) for row in rows if row["epoch_id"] is not None)
    return Erased(count, len(keys), size)


def pictures(row: Row) -> list[str]:
    """The objects that a frame's row names."""
    if row["epoch_id"] is None:
        return []
    return [
        frame_key(row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind)
        for kind in Kind
        if row[f"{kind.value}_bytes"] is not None
    ]


async def _some_events(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> Erased:
    rows = await tx.all(
        "SELECT event_id FROM events WHERE camera_key = :camera_key AND tenant_id = :tenant_id "
        f"ORDER BY start_at LIMIT {PAGE}",
        camera_key=camera_key,
        tenant_id=tenant_id,
    )
    ids = [row["event_id"] for row in rows]
    if not ids:
        return Erased()
    clips = await tx.all(
        "SELECT object_key, object_bytes FROM clips WHERE event_id IN (:ids...) AND object_key IS NOT NULL", ids=ids
    )
    await garbage.add(tx, tenant_id, tuple([clip["object_key"] for clip in clips]), now_ms)
    count = await search_texts.drop_memos(tx, ids)
    count += await _drop(tx, ("event_tags", "event_scores", "clips", "llm_reviews", "events"), "event_id", ids)
    return Erased(count, len(clips), sum(clip["object_bytes"] for clip in clips))


async def _some_incidents(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> Erased:
    rows = await tx.all(
        "SELECT incident_id FROM incidents WHERE camera_key = :camera_key AND tenant_id = :tenant_id "
        f"ORDER BY start_at LIMIT {PAGE}",
        camera_key=camera_key,
        tenant_id=tenant_id,
    )
    ids = [row["incident_id"] for row in rows]
    return Erased(await _drop(tx, ("incident_reviews", "incidents"), "incident_id", ids)) if ids else Erased()


async def _some_history(tx: Tx, tenant_id: int, camera_key: int, now_ms: int) -> Erased:
    count = 0
    for table, keys in (
        ("camera_leases", "camera_key, generation"),
        ("frame_gaps", "camera_key, generation, first_seq"),
        ("look_pauses", "camera_key, begin_at"),
    ):
        sql = _delete_page(table, keys, "camera_key = :camera_key AND tenant_id = :tenant_id")
        count += await tx.run(sql, camera_key=camera_key, tenant_id=tenant_id)
    return Erased(count)


async def _drop(tx: Tx, tables: Sequence[str], key: str, ids: list[int]) -> int:
    return sum([await tx.run(f"DELETE FROM {table} WHERE {key} IN (:ids...)", ids=ids) for table in tables])


def _delete_page(table: str, keys: str, where: str) -> Sql:
    return Sql(
        f"DELETE FROM {table} WHERE ({keys}) IN (SELECT {keys} FROM {table} WHERE {where} LIMIT {PAGE})",
        mariadb=f"DELETE FROM {table} WHERE {where} LIMIT {PAGE}",
    )


async def erase_of_table(tx: Tx, tenant_id: int, table: Table, now_ms: int) -> Erased:
    """A page of a table; nothing when nothing is left."""
    if table.name == "frames":
        rows = await tx.all(
            f"SELECT {_FRAME} FROM frames WHERE tenant_id = :tenant_id LIMIT {PAGE}", tenant_id=tenant_id
        )
        erased = await _drop_frames(tx, tenant_id, rows, now_ms)
    elif table.object_key is not None:
        erased = await _drop_with_objects(tx, tenant_id, table, now_ms)
    else:
        sql = _delete_page(table.name, table.keys, "tenant_id = :tenant_id")
        erased = Erased(await tx.run(sql, tenant_id=tenant_id))
    if erased.rows:
        await _count(tx, tenant_id, erased)
    return erased


async def _drop_with_objects(tx: Tx, tenant_id: int, table: Table, now_ms: int) -> Erased:
    rows = await tx.all(
        f"SELECT {table.keys} AS row_id, {table.object_key} AS object_key, {table.object_bytes} AS object_bytes "
        f"FROM {table.name} WHERE tenant_id = :tenant_id LIMIT {PAGE}",
        tenant_id=tenant_id,
    )
    with_objects = [row for row in rows if row["object_key"] is not None]
    await garbage.add(tx, tenant_id, tuple([row["object_key"] for row in with_objects]), now_ms)
    ids = [row["row_id"] for row in rows]
    count = await _drop(tx, (table.name,), table.keys, ids) if ids else 0
    return Erased(count, len(with_objects), sum(row["object_bytes"] or 0 for row in with_objects))


async def _count(tx: Tx, tenant_id: int, erased: Erased) -> None:
    await tx.run(
        "UPDATE tenants SET erased_rows = erased_rows + :rows, erased_objects = erased_objects + :objects, "
        "erased_bytes = erased_bytes + :bytes WHERE tenant_id = :tenant_id",
        tenant_id=tenant_id,
        rows=erased.rows,
        objects=erased.objects,
        bytes=erased.bytes,
    )


# ---------------------------------------------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------------------------------------------


async def finish(tx: Tx, tenant_id: int, now_ms: int) -> bool:
    """Removes the tenant itself, and tells the home tenant's audit log. False: something of it is still there."""
    row = await tx.one("SELECT * FROM tenants WHERE tenant_id = :tenant_id FOR UPDATE", tenant_id=tenant_id)
    if row is None or row["erasing_at"] is None or now_ms < row["erasing_at"] + LASTS_MS_MIN:
        return False
    for name in ("garbage", *(table.name for table in TABLES)):
        if await tx.one(f"SELECT 1 AS found FROM {name} WHERE tenant_id = :tenant_id LIMIT 1", tenant_id=tenant_id):
            return False
    for name in LAST[1:]:
        await tx.run(f"DELETE FROM {name} WHERE tenant_id = :tenant_id", tenant_id=tenant_id)
    details: dict[str, str | int] = {
        "tenant_id": tenant_id,
        "tenant_uuid": row["tenant_uuid"],
        "asked_at": row["erasing_at"],
        "rows": row["erased_rows"],
        "objects": row["erased_objects"],
        "bytes": row["erased_bytes"],
    }
    home_id = await tenants.home(tx)
    assert home_id is not None
    entry = audit.Entry("tenant_erased", now_ms, "", "tenant", row["name"], details)
    await audit.add(tx, home_id, row["erasing_by"], entry)
    return True
