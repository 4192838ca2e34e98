"""What an assignment is decided on (`domain.assignment`), read from rows; and the moves that follow from it.

Taking a camera is in `leases`. What people ask of workers and cameras is in `delegation`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from camserver.base.addresses import address_in
from camserver.domain.assignment_types import CameraNeed, Labels, Load, Quota, Site, Snapshot, WorkerOffer
from camserver.domain.camera_load import camera_load, pixels_of
from camserver.domain.devices import shared_device
from camserver.store.intents import want_stop
from camserver.store.leases import locked
from camserver.store.tx import Row, Tx

# Free cameras looked at in one round; the others wait for the next one.
CANDIDATES_MAX = 5_000
# Held ones that might move.
HELD_MAX = 500
WORKERS_MAX = 20_000

STYLE_FLAG = "assignment.style"
SHADOW_FLAG = "assignment.shadow"
ALL_SITES = 0


@dataclass(frozen=True, slots=True)
class Move:
    """A running camera that is to go to another worker."""

    camera_key: int
    holder_key: int
    generation: int
    target_key: int
    reason: str


@dataclass(frozen=True, slots=True)
class Flag:
    tenant_id: int
    site_id: int  # ALL_SITES: the tenant's
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Assigning:
    snapshot: Snapshot
    flags: tuple[Flag, ...]

    def flag(self, site: Site, name: str) -> str | None:
        """A site's own value comes before its tenant's."""
        found = {(flag.tenant_id, flag.site_id): flag.value for flag in self.flags if flag.name == name}
        return found.get(site, found.get((site[0], ALL_SITES)))


async def assigning(
    tx: Tx,
    site_ids: tuple[int, ...],
    seen_since: int,
    interval_sec: float,
    now_ms: int,
    asking_key: int | None = None,
) -> Assigning | None:
    """Free cameras of these sites, and held ones that are not where they should be. None: there are none.

    `asking_key` is a worker without a socket that asks for cameras just now, and so is there.
    """
    if await tx.one(f"{_FREE} LIMIT 1", site_ids=site_ids, now_ms=now_ms) is None and (
        await tx.one(_MAY_BE_DISPLACED, site_ids=site_ids) is None
    ):
        return None
    workers = tuple(
        replace(one, is_present=True) if one.worker_key == asking_key else one
        for one in await offers(tx, site_ids, seen_since)
    )
    # A site without room must not fill the round with cameras that wait.
    open_ids = {one.site_id for one in workers if one.takes_cameras and one.used < one.slots}
    free: tuple[CameraNeed, ...] = ()
    if open_ids:
        free = await free_cameras(tx, tuple(sorted(open_ids)), interval_sec, now_ms)
    displaced = await tx.all(f"{_DISPLACED} ORDER BY s.camera_key LIMIT :most", site_ids=site_ids, most=HELD_MAX)
    cameras = (*free, *(_held(row, interval_sec) for row in displaced))
    if not cameras:
        return None
    return await _with_rules(tx, site_ids, workers, cameras, now_ms)


async def rebalancing(
    tx: Tx,
    site_ids: tuple[int, ...],
    worker_keys: tuple[int, ...],
    seen_since: int,
    interval_sec: float,
    now_ms: int,
) -> Assigning:
    """Everything that the lopsided workers hold, beside what is on its way already."""
    workers = await offers(tx, site_ids, seen_since)
    rows = await tx.all(
        f"{_HELD} AND s.worker_key IN (:worker_keys...) ORDER BY s.camera_key LIMIT :most",
        site_ids=site_ids,
        worker_keys=worker_keys,
        most=HELD_MAX,
    )
    moving = await tx.all(f"{_DISPLACED} ORDER BY s.camera_key LIMIT :most", site_ids=site_ids, most=HELD_MAX)
    cameras = {row["camera_key"]: _held(row, interval_sec) for row in (*rows, *moving)}
    return await _with_rules(tx, site_ids, workers, tuple(cameras.values()), now_ms)


async def _with_rules(
    tx: Tx,
    site_ids: tuple[int, ...],
    workers: tuple[WorkerOffer, ...],
    cameras: tuple[CameraNeed, ...],
    now_ms: int,
) -> Assigning:
    homes = await _homes(tx, site_ids) if any(need.device is not None for need in cameras) else {}
    snapshot = Snapshot(now_ms, workers, cameras, await quotas(tx, site_ids), homes)
    return Assigning(snapshot, await flags_of_sites(tx, site_ids))


async def _homes(tx: Tx, site_ids: tuple[int, ...]) -> dict[tuple[Site, str], int]:
    """Who holds cameras of a device that people bounded or named."""
    found: dict[tuple[Site, str], int] = {}
    for row in await tx.all(_HOMES, site_ids=site_ids):
        device = shared_device(row["device"], row["streams_max"], *address_in(row["main_url"] or ""))
        if device is not None:
            found.setdefault(((row["tenant_id"], row["site_id"]), device), row["worker_key"])
    return found


async def offers(tx: Tx, site_ids: tuple[int, ...], seen_since: int) -> tuple[WorkerOffer, ...]:
    """The workers of these sites. Present is who has a socket somewhere and was heard of since then."""
    rows = await tx.all(_OFFERS, site_ids=site_ids, most=WORKERS_MAX)
    return tuple(offer_of(row, seen_since) for row in rows)


def offer_of(row: Row, seen_since: int) -> WorkerOffer:
    slots, capacity = _capacity_of(row["capacity"])
    return WorkerOffer(
        worker_key=row["worker_key"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        slots=slots,
        used=int(row["used"]),
        capacity=capacity,
        load=Load(float(row["load_cpu"]), float(row["load_gpu"]), float(row["load_mem"])),
        labels=labels_of(row["labels"]),
        is_present=row["connected_epoch"] is not None
        and row["status"] not in ("UNHEALTHY", "STOPPED", "DRAINING")
        and (row["last_seen_at"] or 0) >= seen_since,
        is_draining=bool(row["drain_wanted"]),
    )


# Workers are many and their kinds are few.
@lru_cache(maxsize=1024)
def _capacity_of(text: str) -> tuple[int, Load]:
    found = json.loads(text)
    return int(found.get("slots") or 0), Load(*(float(found.get(name) or 0) for name in ("cpu", "gpu", "mem")))


@lru_cache(maxsize=1024)
def labels_of(text: str | None) -> Labels:
    return (
        frozenset()
        if text is None
        else frozenset((str(name), str(value)) for name, value in json.loads(text).items())
    )


async def free_cameras(tx: Tx, site_ids: tuple[int, ...], interval_sec: float, now_ms: int) -> tuple[CameraNeed, ...]:
    """Cameras of these sites that can be taken now, those that have waited longest first."""
    rows = await tx.all(
        f"{_FREE} ORDER BY s.updated_at, s.camera_key LIMIT :most",
        site_ids=site_ids,
        now_ms=now_ms,
        most=CANDIDATES_MAX,
    )
    return tuple(need_of(row, interval_sec) for row in rows)


def need_of(row: Row, interval_sec: float) -> CameraNeed:
    """A camera as if nobody held it."""
    return CameraNeed(
        camera_key=row["camera_key"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        generation=row["generation"],
        next_attempt_at=row["next_attempt_at"],
        avoid_worker_key=row["avoid_worker_key"],
        pinned_worker_key=row["pinned_worker_key"],
        wanted_worker_key=row["wanted_worker_key"],
        labels=labels_of(row["needs_labels"]),
        load=camera_load(
            row["polling_interval_sec"] or interval_sec,
            pixels_of(row["caps"]),
            bool(row["has_sub"]),
            bool(row["do_not_process"]),
        ),
        device=shared_device(row["device"], row["streams_max"], *address_in(row["main_url"] or "")),
    )


def _held(row: Row, interval_sec: float) -> CameraNeed:
    need = need_of(row, interval_sec)
    return CameraNeed(
        camera_key=need.camera_key,
        tenant_id=need.tenant_id,
        site_id=need.site_id,
        generation=need.generation,
        next_attempt_at=need.next_attempt_at,
        avoid_worker_key=need.avoid_worker_key,
        pinned_worker_key=need.pinned_worker_key,
        wanted_worker_key=need.wanted_worker_key,
        labels=need.labels,
        load=Load(row["load_cpu"], row["load_gpu"], row["load_mem"]),
        device=need.device,
        holder_key=row["worker_key"],
        held_since=row["granted_at"],
        is_stopping=bool(row["stop_wanted"]),
        is_active=row["state"] == "ACTIVE",
    )


async def quotas(tx: Tx, site_ids: tuple[int, ...]) -> tuple[Quota, ...]:
    rows = await tx.all(_QUOTAS, site_ids=site_ids)
    return tuple(Quota(row["tenant_id"], row["running"], row["cameras_running_max"]) for row in rows)


async def flags_of_sites(tx: Tx, site_ids: tuple[int, ...]) -> tuple[Flag, ...]:
    rows = await tx.all(_FLAGS, site_ids=site_ids, all_sites=ALL_SITES)
    return tuple(Flag(row["tenant_id"], row["site_id"], row["name"], row["value"]) for row in rows)


async def begin_moves(tx: Tx, moves: Sequence[Move], now_ms: int) -> tuple[Move, ...]:
    """Asks the holders to stop; where each camera goes next is noted with it. Those whose holder changed are left."""
    begun = []
    for move in sorted(moves, key=lambda move: move.camera_key):
        session = await locked(tx, move.camera_key, move.generation)
        if session is None or session["worker_key"] != move.holder_key or session["stop_wanted"]:
            continue
        await want_worker(tx, move.camera_key, move.target_key)
        if await want_stop(tx, move.camera_key, move.reason, now_ms):
            begun.append(move)
    return tuple(begun)


async def want_worker(tx: Tx, camera_key: int, worker_key: int) -> None:
    """`camera_key` comes from a row that was looked up within its tenant."""
    await tx.run(
        "UPDATE camera_sessions SET wanted_worker_key = :worker_key WHERE camera_key = :camera_key",
        camera_key=camera_key,
        worker_key=worker_key,
    )


NEED_COLUMNS = """s.camera_key, s.tenant_id, s.site_id, s.generation, s.next_attempt_at, s.avoid_worker_key,
  s.wanted_worker_key, s.updated_at, c.pinned_worker_key, c.needs_labels, c.caps, c.do_not_process,
  o.polling_interval_sec, o.device, o.streams_max,
  (SELECT m.url FROM camera_streams m WHERE m.camera_key = s.camera_key AND m.kind = 'main') AS main_url,
  CASE WHEN EXISTS (SELECT 1 FROM camera_streams u WHERE u.camera_key = s.camera_key AND u.kind = 'sub')
    THEN 1 ELSE 0 END AS has_sub"""
_FREE = f"""
SELECT {NEED_COLUMNS}
FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = s.camera_key
WHERE s.site_id IN (:site_ids...) AND c.enabled = 1
  AND s.tenant_id NOT IN (SELECT n.tenant_id FROM tenants n WHERE n.disabled = 1)
  AND (s.worker_key IS NULL OR (s.state = 'ORPHANED' AND s.lease_expires_at <= :now_ms))
  AND (s.next_attempt_at IS NULL OR s.next_attempt_at <= :now_ms)
  AND EXISTS (SELECT 1 FROM camera_streams f WHERE f.camera_key = s.camera_key)"""
_HELD = f"""
SELECT {NEED_COLUMNS}, s.worker_key, s.state, s.stop_wanted, s.load_cpu, s.load_gpu, s.load_mem, l.granted_at
FROM camera_sessions s JOIN cameras c ON c.camera_key = s.camera_key
JOIN camera_leases l ON l.camera_key = s.camera_key AND l.generation = s.generation
JOIN workers w ON w.worker_key = s.worker_key
LEFT JOIN camera_overrides o ON o.camera_key = s.camera_key
WHERE s.site_id IN (:site_ids...) AND c.enabled = 1 AND s.state <> 'ORPHANED'"""
_DISPLACED = f"""{_HELD}
  AND ((s.stop_wanted = 1 AND s.wanted_worker_key IS NOT NULL)
    OR (s.stop_wanted = 0 AND (w.drain_wanted = 1 OR c.pinned_worker_key <> s.worker_key
      OR s.wanted_worker_key <> s.worker_key)))"""
# Asked every second while nothing is to be done, so it goes over one table at a time and joins what it found only.
_MAY_BE_DISPLACED = """
SELECT 1 AS found FROM camera_sessions s
WHERE s.site_id IN (:site_ids...) AND s.wanted_worker_key IS NOT NULL AND s.worker_key IS NOT NULL
UNION ALL
SELECT 1 FROM workers w JOIN camera_sessions s ON s.worker_key = w.worker_key
WHERE w.drain_wanted = 1 AND s.site_id IN (:site_ids...)
UNION ALL
SELECT 1 FROM cameras c JOIN camera_sessions s ON s.camera_key = c.camera_key
WHERE c.pinned_worker_key IS NOT NULL AND c.pinned_worker_key <> s.worker_key AND s.site_id IN (:site_ids...)
LIMIT 1"""
_HOMES = """
SELECT s.tenant_id, s.site_id, s.worker_key, o.device, o.streams_max,
  (SELECT m.url FROM camera_streams m WHERE m.camera_key = s.camera_key AND m.kind = 'main') AS main_url
FROM camera_overrides o JOIN camera_sessions s ON s.camera_key = o.camera_key
WHERE s.site_id IN (:site_ids...) AND s.worker_key IS NOT NULL AND s.state <> 'ORPHANED'
  AND (o.device IS NOT NULL OR o.streams_max IS NOT NULL)
ORDER BY s.worker_key"""
OFFER_COLUMNS = """w.worker_key, w.tenant_id, w.site_id, w.labels, w.capacity, w.status, w.connected_epoch,
  w.last_seen_at, w.drain_wanted, COALESCE(u.used, 0) AS used, COALESCE(u.load_cpu, 0) AS load_cpu,
  COALESCE(u.load_gpu, 0) AS load_gpu, COALESCE(u.load_mem, 0) AS load_mem"""
_OFFERS = f"""
SELECT {OFFER_COLUMNS}
FROM workers w LEFT JOIN (
  SELECT s.worker_key, count(*) AS used, sum(s.load_cpu) AS load_cpu, sum(s.load_gpu) AS load_gpu,
    sum(s.load_mem) AS load_mem
  FROM camera_sessions s JOIN workers v ON v.worker_key = s.worker_key
  WHERE v.site_id IN (:site_ids...) GROUP BY s.worker_key
) u ON u.worker_key = w.worker_key
WHERE w.site_id IN (:site_ids...) ORDER BY w.worker_key LIMIT :most"""
_QUOTAS = """
SELECT t.tenant_id, t.cameras_running_max,
  (SELECT count(*) FROM camera_sessions s WHERE s.tenant_id = t.tenant_id AND s.worker_key IS NOT NULL
    AND s.state <> 'ORPHANED') AS running
FROM tenants t WHERE t.cameras_running_max IS NOT NULL
  AND t.tenant_id IN (SELECT i.tenant_id FROM sites i WHERE i.site_id IN (:site_ids...))
ORDER BY t.tenant_id"""
_FLAGS = """
SELECT f.tenant_id, f.site_id, f.name, f.value FROM feature_flags f
WHERE (f.site_id IN (:site_ids...) OR (f.site_id = :all_sites
  AND f.tenant_id IN (SELECT i.tenant_id FROM sites i WHERE i.site_id IN (:site_ids...))))
ORDER BY f.tenant_id, f.site_id, f.name"""
