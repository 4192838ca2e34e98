"""Cameras as people see and change them. Everything is held to the principal's tenant and sites.

A camera that was removed keeps its row and its evidence until retention takes them, under a camera_id that nobody
can ask for, so the old id is free at once. Leases and looks are other modules' business.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from camserver.base.credentials import Sealed
from camserver.base.errors import BadInput, Conflict, NotFound
from camserver.base.records import record
from camserver.domain.people import Permission
from camserver.store import audit, overrides, tenant_quotas, tenants
from camserver.store.camera_narrowing import EVERY, CameraFilter
from camserver.store.overrides import Overrides
from camserver.store.tx import Row, Scoped
from camserver.store.worker_news import StreamFault, parse_fault

PAGE_MAX = 500
CAMERA_ID_MAX_CHARS = 64
# No camera_id that people choose may hold it.
REMOVED_MARK = "~"


@dataclass(frozen=True, slots=True)
class Stream:
    source_type: str
    url: str  # without credentials


@dataclass(frozen=True, slots=True)
class NewCamera:
    camera_id: str
    name: str
    site: str | None  # name or uuid; None: the oldest within reach
    main: Stream
    sub: Stream | None
    credentials: Sealed | None  # for both
    values: Overrides
    do_not_process: bool = False
    network_zone: str = "local"


@record
class LatestFrame:
    """The newest look of a camera."""

    frame_uuid: str
    captured_at: int
    received_at: int
    status: str  # ok, timeout, error
    error_code: str | None
    detected: bool
    primary_event: str
    severity: int
    has_picture: bool


@record
class LatestPicture:
    """The newest look that has a picture."""

    frame_uuid: str
    captured_at: int


@record
class OpenEvent:
    event_uuid: str
    primary_event: str
    severity_max: int
    start_at: int


@record
class OpenIssue:
    """Something that is wrong with the camera itself."""

    kind: str  # domain.health.Issue
    since: int
    event_uuid: str


@record
class CameraHealth:
    state: str  # up, down, unknown
    cause: str  # '' or why: an error code, unattended, off
    since: int | None
    issues: tuple[OpenIssue, ...]


@record
class CameraSummary:
    camera_id: str
    name: str
    site: str
    enabled: bool
    main: Stream
    sub: Stream | None
    has_credentials: bool
    own: Overrides
    do_not_process: bool
    network_zone: str
    caps: str | None  # JSON
    last_probe_at: int | None
    state: str  # of its session
    state_reason: str
    worker_id: str | None  # who holds it
    created_at: int
    latest: LatestFrame | None
    latest_picture: LatestPicture | None
    open_event: OpenEvent | None
    health: CameraHealth
    stream_fault: StreamFault | None  # the last one of one of two streams


@dataclass(frozen=True, slots=True)
class PicturePlace:
    """What the key of a frame's picture is made of."""

    epoch_id: int
    tenant_id: int
    camera_key: int
    captured_at: int
    frame_uuid: str
    in_case: bool = False  # whoever opens it is written down
    kept: str = "infer"  # which picture of the frame it is, or is made of: infer, full


IN_REACH = "c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c)"
# What everybody is shown who reaches the camera, and what only those are who manage it. A picture of a case is none
# for people who may not open it; needs `:investigates`.
SHOWN = """c.camera_key, c.camera_id, c.name, c.enabled, c.created_at, s.name AS site, c.do_not_process,
  c.network_zone, c.caps, c.last_probe_at, cs.state, cs.reason, f.frame_uuid, f.captured_at, f.received_at,
  f.collector_status, f.error_code, f.detected, f.primary_event, f.severity,
  CASE WHEN f.retention_class <> 'case' OR :investigates = 1 THEN f.infer_bytes END AS infer_bytes, e.event_uuid,
  e.primary_event AS event_primary, e.severity_max AS event_severity, e.start_at AS event_start_at,
  h.health, h.health_cause, h.health_since, h.issues, cs.stream_fault"""
_MANAGED = f"""st.source_type, st.url, su.source_type AS sub_type, su.url AS sub_url, a.key_id,
  w.worker_id, {overrides.COLUMNS}"""
FROM = """FROM cameras c
JOIN sites s ON s.site_id = c.site_id
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
LEFT JOIN camera_sessions cs ON cs.camera_key = c.camera_key
LEFT JOIN camera_state h ON h.camera_key = c.camera_key
LEFT JOIN events e ON e.open_key = c.camera_key
LEFT JOIN frames f ON f.frame_id = (
  SELECT n.frame_id FROM frames n WHERE n.camera_key = c.camera_key ORDER BY n.captured_at DESC LIMIT 1)"""
_MANAGED_FROM = """LEFT JOIN camera_streams st ON st.camera_key = c.camera_key AND st.kind = 'main'
LEFT JOIN camera_streams su ON su.camera_key = c.camera_key AND su.kind = 'sub'
LEFT JOIN camera_auth a ON a.camera_key = c.camera_key
LEFT JOIN workers w ON w.worker_key = cs.worker_key"""
_SUMMARY = f"SELECT {SHOWN}, {_MANAGED} {FROM} {_MANAGED_FROM} WHERE {IN_REACH}"


def public_camera_id(camera_id: str) -> str:
    """The id people knew a removed camera by."""
    return camera_id.partition(REMOVED_MARK)[0]


async def find_key(tx: Scoped, camera_id: str) -> int:
    """The key of a camera within the principal's reach."""
    row = await tx.one(
        f"SELECT c.camera_key FROM cameras c WHERE c.camera_id = :camera_id AND {IN_REACH}", camera_id=camera_id
    )
    if row is None:
        raise missing(camera_id)
    return int(row["camera_key"])


async def page(tx: Scoped, after: str, limit: int, wanted: CameraFilter = EVERY) -> tuple[CameraSummary, ...]:
    """Cameras in the order of their ids, from behind `after`. `camera_tiles` has a shorter one."""
    conditions, values = await wanted.narrowing(tx)
    rows = await tx.all(
        f"{_SUMMARY}{conditions} AND c.camera_id > :after ORDER BY c.camera_id LIMIT :limit",
        after=after,
        limit=min(limit, PAGE_MAX),
        investigates=investigates(tx),
        **values,
    )
    return await _with_pictures(tx, rows)


async def get(tx: Scoped, camera_id: str) -> CameraSummary:
    row = await tx.one(f"{_SUMMARY} AND c.camera_id = :camera_id", camera_id=camera_id, investigates=investigates(tx))
    if row is None:
        raise missing(camera_id)
    [summary] = await _with_pictures(tx, [row])
    return summary


def missing(camera_id: str) -> NotFound:
    return NotFound(
        f"there is no camera {camera_id!r}; `camserver camera list` names those there are",
        reason="no_camera",
        camera_id=camera_id,
    )


def investigates(tx: Scoped) -> int:
    """Whether the principal may open pictures of cases."""
    return int(tx.principal.may(Permission.INVESTIGATE))


async def _with_pictures(tx: Scoped, rows: Sequence[Row]) -> tuple[CameraSummary, ...]:
    """The newest look usually has the newest picture; only for the others is it looked for behind."""
    without = [row["camera_key"] for row in rows if row["frame_uuid"] is not None and row["infer_bytes"] is None]
    older = await older_pictures(tx, without)
    return tuple([_summary(row, older.get(row["camera_key"])) for row in rows])


async def older_pictures(tx: Scoped, camera_keys: Sequence[int]) -> dict[int, LatestPicture]:
    """The newest pictures of cameras whose newest look has none."""
    if not camera_keys:
        return {}
    rows = await tx.all(_OLDER_PICTURES, camera_keys=camera_keys, investigates=investigates(tx))
    return {row["camera_key"]: LatestPicture(row["frame_uuid"], row["captured_at"]) for row in rows}


_OLDER_PICTURES = """
SELECT c.camera_key, f.frame_uuid, f.captured_at FROM cameras c JOIN frames f ON f.frame_id = (
  SELECT n.frame_id FROM frames n WHERE n.camera_key = c.camera_key AND n.infer_bytes IS NOT NULL
    AND (n.retention_class <> 'case' OR :investigates = 1)
  ORDER BY n.captured_at DESC LIMIT 1)
WHERE c.tenant_id = :tenant_id AND c.camera_key IN (:camera_keys...)"""


def _summary(row: Row, older_picture: LatestPicture | None) -> CameraSummary:
    picture = older_picture
    if row["infer_bytes"] is not None:
        picture = LatestPicture(row["frame_uuid"], row["captured_at"])
    return CameraSummary(
        camera_id=row["camera_id"],
        name=row["name"],
        site=row["site"],
        enabled=bool(row["enabled"]),
        main=Stream(row["source_type"] or "", row["url"] or ""),
        sub=None if row["sub_url"] is None else Stream(row["sub_type"], row["sub_url"]),
        has_credentials=row["key_id"] is not None,
        own=overrides.from_row(row),
        do_not_process=bool(row["do_not_process"]),
        network_zone=row["network_zone"],
        caps=row["caps"],
        last_probe_at=row["last_probe_at"],
        state=row["state"] or "",
        state_reason=row["reason"] or "",
        worker_id=row["worker_id"],
        created_at=row["created_at"],
        latest=None if row["frame_uuid"] is None else _latest(row),
        latest_picture=picture,
        open_event=None if row["event_uuid"] is None else _open_event(row),
        health=_health(row),
        stream_fault=parse_fault(row["stream_fault"]),
    )


def _health(row: Row) -> CameraHealth:
    return CameraHealth(
        state=row["health"] or "unknown",
        cause=row["health_cause"] or "",
        since=row["health_since"],
        issues=open_issues(row["issues"]),
    )


def open_issues(kept: str | None) -> tuple[OpenIssue, ...]:
    if not kept or kept == "[]":
        return ()  # nearly always, and of every camera of a wall
    issues = json.loads(kept)
    return tuple([OpenIssue(issue["kind"], issue["since"], issue["event"]) for issue in issues])


def _open_event(row: Row) -> OpenEvent:
    return OpenEvent(row["event_uuid"], row["event_primary"], row["event_severity"], row["event_start_at"])


def _latest(row: Row) -> LatestFrame:
    return LatestFrame(
        frame_uuid=row["frame_uuid"],
        captured_at=row["captured_at"],
        received_at=row["received_at"],
        status=row["collector_status"],
        error_code=row["error_code"],
        detected=bool(row["detected"]),
        primary_event=row["primary_event"],
        severity=row["severity"],
        has_picture=row["infer_bytes"] is not None,
    )


async def latest_picture(tx: Scoped, camera_id: str) -> PicturePlace:
    """Where the newest picture of a camera lies; failed looks since then have none."""
    row = await tx.one(
        "SELECT f.epoch_id, f.camera_key, f.captured_at, f.frame_uuid, f.retention_class FROM cameras c "
        "JOIN frames f ON f.camera_key = c.camera_key "
        f"WHERE c.camera_id = :camera_id AND {IN_REACH} AND f.infer_bytes IS NOT NULL AND f.epoch_id IS NOT NULL "
        "AND (f.retention_class <> 'case' OR :investigates = 1) ORDER BY f.captured_at DESC LIMIT 1",
        camera_id=camera_id,
        investigates=investigates(tx),
    )
    if row is None:
        await get(tx, camera_id)
        raise NotFound(
            f"camera {camera_id} has no picture yet; wait for its first look, or see its state",
            reason="no_picture",
            camera_id=camera_id,
        )
    return PicturePlace(
        row["epoch_id"],
        tx.principal.tenant_id,
        row["camera_key"],
        row["captured_at"],
        row["frame_uuid"],
        in_case=row["retention_class"] == "case",
    )


async def add(tx: Scoped, camera: NewCamera, address: str, now_ms: int) -> CameraSummary:
    """Adds a camera with everything a worker needs to be given it."""
    if camera.credentials and camera.sub and host_of(camera.sub.url) != host_of(camera.main.url):
        raise other_host()
    # Or the site might be removed meanwhile, by somebody who saw no camera there.
    await tenants.lock(tx)
    site = await tenants.find_site(tx, camera.site)
    if await tx.one(
        "SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        camera_id=camera.camera_id,
    ):
        raise Conflict(
            f"there is a camera {camera.camera_id!r} already; choose another camera_id, or remove that one",
            reason="camera_exists",
            camera_id=camera.camera_id,
        )
    await tenant_quotas.require_room(tx, "cameras_max")
    camera_key = await tx.insert(
        "INSERT INTO cameras (tenant_id, site_id, camera_id, name, do_not_process, network_zone, created_at, "
        "updated_at) VALUES (:tenant_id, :site_id, :camera_id, :name, :do_not_process, :network_zone, :now_ms, "
        ":now_ms) RETURNING camera_key",
        site_id=site.site_id,
        camera_id=camera.camera_id,
        name=camera.name,
        do_not_process=int(camera.do_not_process),
        network_zone=camera.network_zone,
        now_ms=now_ms,
    )
    await _add_parts(tx, camera_key, site.site_id, camera, now_ms)
    tx.changed(kind="camera", at_ms=now_ms, site_id=site.site_id, camera_key=camera_key)
    details: dict[str, str | int] = {
        "name": camera.name,
        "site": site.name,
        "do_not_process": int(camera.do_not_process),
    }
    await audit.add_own(tx, audit.Entry("camera_added", now_ms, address, "camera", camera.camera_id, details))
    return await get(tx, camera.camera_id)


async def _add_parts(tx: Scoped, camera_key: int, site_id: int, camera: NewCamera, now_ms: int) -> None:
    await add_stream(tx, camera_key, "main", camera.main)
    if camera.sub is not None:
        await add_stream(tx, camera_key, "sub", camera.sub)
    await overrides.insert(tx, camera_key, camera.values, now_ms)
    await tx.run(
        "INSERT INTO camera_state (camera_key, tenant_id, updated_at) VALUES (:camera_key, :tenant_id, :now_ms)",
        camera_key=camera_key,
        now_ms=now_ms,
    )
    await tx.run(
        "INSERT INTO camera_sessions (camera_key, tenant_id, site_id, generation, credential_version, updated_at) "
        "VALUES (:camera_key, :tenant_id, :site_id, :generation, :credential_version, :now_ms)",
        camera_key=camera_key,
        site_id=site_id,
        generation=await _last_removed_generation(tx),
        credential_version=0 if camera.credentials is None else 1,
        now_ms=now_ms,
    )
    if camera.credentials is not None:
        await tx.run(
            "INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at) "
            "VALUES (:camera_key, :tenant_id, :key_id, :nonce, :ciphertext, :now_ms)",
            camera_key=camera_key,
            key_id=camera.credentials.key_id,
            nonce=camera.credentials.nonce,
            ciphertext=camera.credentials.ciphertext,
            now_ms=now_ms,
        )


async def add_stream(tx: Scoped, camera_key: int, kind: str, stream: Stream) -> None:
    await tx.run(
        "INSERT INTO camera_streams (tenant_id, camera_key, kind, source_type, url) "
        "VALUES (:tenant_id, :camera_key, :kind, :source_type, :url)",
        camera_key=camera_key,
        kind=kind,
        source_type=stream.source_type,
        url=stream.url,
    )


def host_of(url: str) -> str:
    return (urlsplit(url).hostname or "").lower()


def other_host() -> BadInput:
    return BadInput(
        "the two streams of a camera with a login must be at the same host; change one of the addresses",
        reason="sub_other_host",
    )


async def _last_removed_generation(tx: Scoped) -> int:
    """Where a new camera's generations begin.

    It may have the name of one that was removed, whose looks still wait in some worker's spool: they must never pass
    for its own, so its generations are later than theirs.
    """
    row = await tx.one(
        """
        SELECT max(l.generation) AS generation FROM cameras c JOIN camera_leases l ON l.camera_key = c.camera_key
        WHERE c.tenant_id = :tenant_id AND c.deleted_at IS NOT NULL"""
    )
    return 0 if row is None or row["generation"] is None else int(row["generation"])


async def remove(tx: Scoped, camera_id: str, address: str, now_ms: int) -> None:
    """Removes a camera: its address, credentials and lease at once, its evidence when retention says so.

    Without its session nothing is renewed, so its worker learns with the next heartbeat that the camera is lost.
    """
    # Or it might be granted to somebody meanwhile.
    await tenants.lock(tx)
    row = await tx.one(
        f"SELECT c.camera_key, c.site_id FROM cameras c WHERE c.camera_id = :camera_id AND {IN_REACH} FOR UPDATE",
        camera_id=camera_id,
    )
    if row is None:
        raise missing(camera_id)
    camera_key = row["camera_key"]
    # Without grants, which no list would show: its evidence is for those who reach its site.
    for table in ("camera_sessions", "camera_auth", "camera_streams", "camera_overrides", "grants"):
        await tx.run(
            f"DELETE FROM {table} WHERE camera_key = :camera_key AND tenant_id = :tenant_id", camera_key=camera_key
        )
    await tx.run(
        "UPDATE camera_leases SET ended_at = :now_ms, end_reason = 'camera removed' "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id AND ended_at IS NULL",
        camera_key=camera_key,
        now_ms=now_ms,
    )
    # Whoever chose it by hand chose it for up to an hour, in which nobody could choose another one.
    ended = await tx.run(
        "UPDATE suggestions SET until = :now_ms WHERE camera_key = :camera_key AND tenant_id = :tenant_id "
        "AND until > :now_ms",
        camera_key=camera_key,
        now_ms=now_ms,
    )
    if ended:
        tx.changed(kind="suggestion", at_ms=now_ms, site_id=row["site_id"], camera_key=camera_key)
    mark = f"{REMOVED_MARK}{camera_key}"
    await tx.run(
        "UPDATE cameras SET camera_id = :removed_id, enabled = 0, deleted_at = :now_ms, updated_at = :now_ms "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        removed_id=camera_id[: CAMERA_ID_MAX_CHARS - len(mark)] + mark,
        camera_key=camera_key,
        now_ms=now_ms,
    )
    tx.changed(kind="camera", at_ms=now_ms, site_id=row["site_id"], camera_key=camera_key)
    await audit.add_own(tx, audit.Entry("camera_removed", now_ms, address, "camera", camera_id))
