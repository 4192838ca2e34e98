"""What people ask of workers and cameras: emptying a worker, moving and pinning a camera; and what `why` needs.

Everything is held to the principal's tenant and sites, and written into the audit log.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.errors import Conflict, NotFound
from camserver.domain.assignment_types import CameraNeed, Quota, WorkerOffer
from camserver.domain.why import CameraFacts, WorkerFacts
from camserver.store import audit, camera_filters
from camserver.store.assignment import NEED_COLUMNS, OFFER_COLUMNS, need_of, offer_of
from camserver.store.camera_changes import locked
from camserver.store.cameras import missing
from camserver.store.tx import Row, Scoped
from camserver.store.worker_news import StreamFault, parse_fault

# Of one site, told to `why`.
WORKERS_MAX = 1_000
PAGE_MAX = 500


@dataclass(frozen=True, slots=True)
class WorkerSummary:
    worker_id: str
    site: str
    status: str
    version: str
    slots: int
    used: int
    cpu: float  # cores; 0: not said
    gpu: float
    mem: float  # bytes
    labels: dict[str, str]
    is_connected: bool
    is_draining: bool
    last_seen_at: int | None
    metrics: dict[str, float]
    metrics_at: int | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a camera is and where it is to be."""

    camera_id: str
    worker_id: str | None  # who holds it
    wanted_worker_id: str | None  # where it goes next
    pinned_worker_id: str | None


@dataclass(frozen=True, slots=True)
class WhyFacts:
    camera: CameraFacts
    need: CameraNeed
    workers: tuple[WorkerFacts, ...]
    offers: tuple[WorkerOffer, ...]
    quota: Quota | None


# Workers -------------------------------------------------------------------------------------------------------


async def workers(
    tx: Scoped, sites: Sequence[str] = (), after: str = "", limit: int = PAGE_MAX
) -> tuple[WorkerSummary, ...]:
    """Those of the principal's sites, or of these, in the order of their ids, from behind `after`."""
    site_ids = await camera_filters.keys_of_sites(tx, sites)
    narrowed = " AND w.site_id IN (:narrowed...)" if site_ids else ""
    rows = await tx.all(
        f"{_WORKERS}{narrowed} AND w.worker_id > :after ORDER BY w.worker_id LIMIT :limit",
        after=after,
        limit=min(limit, PAGE_MAX),
        **({"narrowed": site_ids} if site_ids else {}),
    )
    return tuple(_summary(row) for row in rows)


async def drain(tx: Scoped, worker_id: str, wanted: bool, address: str, now_ms: int) -> WorkerSummary:
    """Wants a worker emptied, or ends that. Its cameras are moved by control, a few at a time."""
    row = await _worker(tx, worker_id)
    if bool(row["drain_wanted"]) != wanted:
        await tx.run(
            "UPDATE workers SET drain_wanted = :wanted WHERE tenant_id = :tenant_id AND worker_key = :worker_key",
            worker_key=row["worker_key"],
            wanted=int(wanted),
        )
        action = "worker_drained" if wanted else "worker_undrained"
        await audit.add_own(tx, audit.Entry(action, now_ms, address, "worker", worker_id))
    return _summary(await _worker(tx, worker_id))


async def _worker(tx: Scoped, worker_id: str) -> Row:
    row = await tx.one(f"{_WORKERS} AND w.worker_id = :worker_id", worker_id=worker_id)
    if row is None:
        raise NotFound(
            f"there is no worker {worker_id!r}; `camserver worker list` names those there are",
            reason="no_worker",
            worker_id=worker_id,
        )
    return row


def _summary(row: Row) -> WorkerSummary:
    offer = offer_of(row, 0)
    return WorkerSummary(
        worker_id=row["worker_id"],
        site=row["site"],
        status=row["status"],
        version=row["version"],
        slots=offer.slots,
        used=offer.used,
        cpu=offer.capacity.cpu,
        gpu=offer.capacity.gpu,
        mem=offer.capacity.mem,
        labels=dict(sorted(offer.labels)),
        is_connected=row["connected_epoch"] is not None,
        is_draining=offer.is_draining,
        last_seen_at=row["last_seen_at"],
        metrics=json.loads(row["metrics"]) if row["metrics"] else {},
        metrics_at=row["metrics_at"],
    )


# Cameras -------------------------------------------------------------------------------------------------------


async def move(tx: Scoped, camera_id: str, worker_id: str, address: str, now_ms: int) -> Placement:
    """Sends a camera to another worker of its site: its holder stops first. Later it may move again by itself."""
    camera = await locked(tx, camera_id)
    target = await _target(tx, camera, worker_id)
    pinned = await _pinned_key(tx, camera["camera_key"])
    if pinned is not None and pinned != target["worker_key"]:
        raise Conflict(
            f"camera {camera_id} is pinned to another worker; unpin it first, or pin it to {worker_id}",
            reason="camera_pinned",
            camera_id=camera_id,
        )
    if target["drain_wanted"]:
        raise Conflict(
            f"worker {worker_id} is being emptied and takes no cameras; undrain it first",
            reason="worker_draining",
            worker_id=worker_id,
        )
    await _refuse_full(tx, camera["camera_key"], target, worker_id)
    session = await _session(tx, camera["camera_key"])
    if session is None or session["worker_key"] != target["worker_key"]:
        await _send_to(tx, camera["camera_key"], target["worker_key"])
        entry = audit.Entry("camera_reassigned", now_ms, address, "camera", camera_id, {"worker_id": worker_id})
        await audit.add_own(tx, entry)
        tx.changed(kind="session", at_ms=now_ms, site_id=camera["site_id"], camera_key=camera["camera_key"])
    return await placement(tx, camera_id)


async def pin(tx: Scoped, camera_id: str, worker_id: str | None, address: str, now_ms: int) -> Placement:
    """From now on only that worker may hold the camera; None: any may. Control moves it there when it has room."""
    camera = await locked(tx, camera_id)
    target = None if worker_id is None else await _target(tx, camera, worker_id)
    worker_key = None if target is None else target["worker_key"]
    if await _pinned_key(tx, camera["camera_key"]) != worker_key:
        await tx.run(
            "UPDATE cameras SET pinned_worker_key = :worker_key, updated_at = :now_ms "
            "WHERE tenant_id = :tenant_id AND camera_key = :camera_key",
            camera_key=camera["camera_key"],
            worker_key=worker_key,
            now_ms=now_ms,
        )
        action = "camera_unpinned" if worker_id is None else "camera_pinned"
        details = None if worker_id is None else {"worker_id": worker_id}
        await audit.add_own(tx, audit.Entry(action, now_ms, address, "camera", camera_id, details))
        tx.changed(kind="camera", at_ms=now_ms, site_id=camera["site_id"], camera_key=camera["camera_key"])
    return await placement(tx, camera_id)


async def placement(tx: Scoped, camera_id: str) -> Placement:
    row = await tx.one(_PLACEMENT, camera_id=camera_id)
    if row is None:
        raise missing(camera_id)
    return Placement(row["camera_id"], row["holder_id"], row["wanted_id"], row["pinned_id"])


async def _target(tx: Scoped, camera: Row, worker_id: str) -> Row:
    row = await _worker(tx, worker_id)
    if row["site_id"] != camera["site_id"]:
        raise Conflict(
            f"worker {worker_id} stands in another site than the camera; choose one of the camera's site",
            reason="worker_other_site",
            worker_id=worker_id,
        )
    return row


async def _refuse_full(tx: Scoped, camera_key: int, target: Row, worker_id: str) -> None:
    offer = offer_of(target, 0)
    session = await _session(tx, camera_key)
    holds_it = session is not None and session["worker_key"] == offer.worker_key
    if not holds_it and offer.used >= offer.slots:
        raise Conflict(
            f"worker {worker_id} is full ({offer.used} of {offer.slots} cameras); move another one away first",
            reason="worker_full",
            worker_id=worker_id,
            used=offer.used,
            slots=offer.slots,
        )


async def _session(tx: Scoped, camera_key: int) -> Row | None:
    return await tx.one(
        "SELECT worker_key FROM camera_sessions WHERE tenant_id = :tenant_id AND camera_key = :camera_key",
        camera_key=camera_key,
    )


async def _pinned_key(tx: Scoped, camera_key: int) -> int | None:
    row = await tx.one(
        "SELECT pinned_worker_key FROM cameras WHERE tenant_id = :tenant_id AND camera_key = :camera_key",
        camera_key=camera_key,
    )
    return None if row is None else row["pinned_worker_key"]


async def _send_to(tx: Scoped, camera_key: int, worker_key: int) -> None:
    """Noted with its session; control has the holder stop, or takes it for that worker when nobody holds it."""
    await tx.run(
        "UPDATE camera_sessions SET wanted_worker_key = :worker_key WHERE tenant_id = :tenant_id "
        "AND camera_key = :camera_key",
        camera_key=camera_key,
        worker_key=worker_key,
    )


# Why -----------------------------------------------------------------------------------------------------------


async def why_facts(tx: Scoped, camera_id: str, seen_since: int, interval_sec: float) -> WhyFacts:
    row = await tx.one(_WHY, camera_id=camera_id)
    if row is None:
        raise missing(camera_id)
    rows = await tx.all(
        f"{_WORKERS} AND w.site_id = :site_id ORDER BY w.worker_key LIMIT :most",
        site_id=row["camera_site_id"],
        most=WORKERS_MAX,
    )
    offers = tuple(offer_of(one, seen_since) for one in rows)
    quota = await tx.one(_QUOTA)
    named = tuple(
        WorkerFacts(offer.worker_key, one["worker_id"], offer.is_present, offer.is_draining, offer.used, offer.slots)
        for one, offer in zip(rows, offers, strict=True)
    )
    return WhyFacts(
        camera=CameraFacts(
            camera_id=row["camera_id"],
            site=row["site"],
            is_enabled=bool(row["enabled"]),
            do_not_process=bool(row["do_not_process"]),
            has_stream=bool(row["has_stream"]),
            state=row["state"] or "",
            reason=row["reason"] or "",
            holder_key=row["worker_key"],
            holder_id=row["holder_id"],
            generation=row["generation"] or 0,
            lease_expires_at=row["lease_expires_at"],
            is_stopping=bool(row["stop_wanted"]),
            is_started=row["start_sent_at"] is not None,
            is_acked=row["acked_at"] is not None,
            next_attempt_at=row["next_attempt_at"],
            failures=row["failures"] or 0,
            auth_failures=row["auth_failures"] or 0,
            pinned_id=row["pinned_id"],
            stream_fault=_lasting(parse_fault(row["stream_fault"])),
            needs_labels=tuple(sorted((json.loads(row["needs_labels"]) if row["needs_labels"] else {}).items())),
        ),
        need=need_of(row, interval_sec),
        workers=named,
        offers=offers,
        quota=None if quota is None else Quota(quota["tenant_id"], quota["running"], quota["cameras_running_max"]),
    )


def _lasting(fault: StreamFault | None) -> tuple[str, str] | None:
    return None if fault is None or fault.over_at is not None else (fault.stream, fault.fault)


_WORKERS = f"""
SELECT {OFFER_COLUMNS}, w.worker_id, w.version, w.metrics, w.metrics_at, i.name AS site
FROM workers w JOIN sites i ON i.site_id = w.site_id AND i.removed_at IS NULL LEFT JOIN (
  SELECT s.worker_key, count(*) AS used, sum(s.load_cpu) AS load_cpu, sum(s.load_gpu) AS load_gpu,
    sum(s.load_mem) AS load_mem
  FROM camera_sessions s WHERE s.tenant_id = :tenant_id AND s.worker_key IS NOT NULL GROUP BY s.worker_key
) u ON u.worker_key = w.worker_key
WHERE w.tenant_id = :tenant_id AND IN_SITE_REACH(w)"""
_IN_REACH = """c.tenant_id = :tenant_id AND c.camera_id = :camera_id AND c.deleted_at IS NULL
  AND IN_REACH(c)"""
_PLACEMENT = f"""
SELECT c.camera_id, h.worker_id AS holder_id, t.worker_id AS wanted_id, p.worker_id AS pinned_id
FROM cameras c LEFT JOIN camera_sessions s ON s.camera_key = c.camera_key
LEFT JOIN workers h ON h.worker_key = s.worker_key
LEFT JOIN workers t ON t.worker_key = s.wanted_worker_key
LEFT JOIN workers p ON p.worker_key = c.pinned_worker_key
WHERE {_IN_REACH}"""
# A camera that has no session yet is free; its columns come from the camera then.
_WHY = f"""
SELECT {
    NEED_COLUMNS.replace(
        "s.camera_key, s.tenant_id, s.site_id, s.generation",
        "c.camera_key, c.tenant_id, c.site_id, COALESCE(s.generation, 0) AS generation",
    ).replace("u.camera_key = s.camera_key", "u.camera_key = c.camera_key")
}, c.camera_id, c.enabled, c.site_id AS camera_site_id, i.name AS site, s.state, s.reason, s.worker_key,
  s.lease_expires_at, s.stop_wanted, s.start_sent_at, s.acked_at, s.failures, s.auth_failures, s.stream_fault,
  h.worker_id AS holder_id, p.worker_id AS pinned_id,
  CASE WHEN EXISTS (SELECT 1 FROM camera_streams f WHERE f.camera_key = c.camera_key)
    THEN 1 ELSE 0 END AS has_stream
FROM cameras c JOIN sites i ON i.site_id = c.site_id
LEFT JOIN camera_sessions s ON s.camera_key = c.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
LEFT JOIN workers h ON h.worker_key = s.worker_key
LEFT JOIN workers p ON p.worker_key = c.pinned_worker_key
WHERE {_IN_REACH}"""
_QUOTA = """
SELECT t.tenant_id, t.cameras_running_max,
  (SELECT count(*) FROM camera_sessions s WHERE s.tenant_id = t.tenant_id AND s.worker_key IS NOT NULL
    AND s.state <> 'ORPHANED') AS running
FROM tenants t WHERE t.tenant_id = :tenant_id AND t.cameras_running_max IS NOT NULL"""
