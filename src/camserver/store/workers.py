"""Workers: who they are, when they were last heard, and what a worker's upload may refer to."""

import json
from dataclasses import dataclass
from typing import TypeAlias

from camserver.base.errors import BadInput, Forbidden, NotFound, Unavailable
from camserver.store import tenants
from camserver.store.intents import let_go_elsewhere, returned_without
from camserver.store.renewals import Holding, Renewal, renew, renew_all
from camserver.store.sql import Sql
from camserver.store.tx import Tx

UNHEALTHY = "UNHEALTHY"


@dataclass(frozen=True, slots=True)
class Registration:
    worker_id: str
    site: str  # name or UUID; empty where the tenant has one site only
    version: str
    labels: tuple[tuple[str, str], ...]
    slots: int
    cpu: float
    gpu: float
    mem: float
    boot_id: str
    connected_epoch: int | None  # names the control process that has the socket; None: it has none
    proven_site_id: int | None = None  # the site in its certificate: it may name no other


@dataclass(frozen=True, slots=True)
class Registered:
    worker_key: int
    tenant_id: int
    site_id: int


@dataclass(frozen=True, slots=True)
class SignedIn:
    worker: Registered
    renewal: Renewal  # of what the worker said it holds
    restarted: tuple[str, ...]  # cameras in its name that it no longer knew of


Verdict: TypeAlias = tuple[str, int, bool, int]  # camera_id, captured_at, detected, updated_at


@dataclass(frozen=True, slots=True)
class Heard:
    """A heartbeat."""

    worker: Registered
    status: str
    held: tuple[tuple[str, int], ...]
    verdicts_since: int
    metrics: str = ""  # as JSON, for people to see; empty: what was noted last is new enough


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat gets back. `is_replaced`: another connection of this worker came later."""

    renewal: Renewal
    verdicts: tuple[Verdict, ...]
    is_replaced: bool


@dataclass(frozen=True, slots=True)
class Uploader:
    """What an upload refers to. Without a camera or a lease of this worker there is nothing to record."""

    worker_key: int
    tenant_id: int
    boot_id: str
    camera_key: int | None
    site_id: int | None
    job_priority: int | None
    is_holder: bool  # of that generation, now or once


async def first_tenant(tx: Tx) -> int:
    """The tenant that the first start made: whose workers come with the installation's token."""
    tenant_id = await tenants.home(tx)
    if tenant_id is None:
        raise Unavailable("the installation is not set up yet; try again in a moment")
    return tenant_id


async def sign_in(
    tx: Tx, tenant_id: int, who: Registration, held: tuple[tuple[str, int], ...], ttl_ms: int, now_ms: int
) -> SignedIn:
    """A worker connects: it keeps what it still holds, and is started anew with what it forgot."""
    stood_at = await _known_site(tx, tenant_id, who.worker_id)
    worker = await register(tx, tenant_id, who, now_ms)
    if stood_at is not None and stood_at != worker.site_id:
        await let_go_elsewhere(tx, worker.worker_key, worker.site_id, now_ms)
    renewal = await renew(tx, tenant_id, worker.worker_key, held, ttl_ms, now_ms)
    kept = frozenset(camera_id for camera_id, _ in renewal.renewed)
    restarted = await returned_without(tx, worker.worker_key, kept, ttl_ms, now_ms)
    return SignedIn(worker, renewal, restarted)


async def register(tx: Tx, tenant_id: int, who: Registration, now_ms: int) -> Registered:
    """Makes or updates a worker's row. A site that the tenant does not have is refused."""
    site_id = await _site(tx, tenant_id, who)
    # Held to the end: or it might be removed meanwhile, by somebody who saw no worker there.
    held = await tx.one(
        "SELECT site_id FROM sites WHERE site_id = :site_id AND removed_at IS NULL FOR SHARE", site_id=site_id
    )
    if held is None:
        raise NotFound(f"the site of worker {who.worker_id} was removed just now; connect it to another one")
    await tx.run(
        _UPSERT,
        tenant_id=tenant_id,
        site_id=site_id,
        worker_id=who.worker_id,
        version=who.version,
        labels=json.dumps(dict(who.labels)),
        capacity=json.dumps({"slots": who.slots, "cpu": who.cpu, "gpu": who.gpu, "mem": who.mem}),
        boot_id=who.boot_id,
        connected_epoch=who.connected_epoch,
        now_ms=now_ms,
    )
    row = await tx.one(
        "SELECT worker_key FROM workers WHERE tenant_id = :tenant_id AND worker_id = :worker_id",
        tenant_id=tenant_id,
        worker_id=who.worker_id,
    )
    assert row is not None
    return Registered(row["worker_key"], tenant_id, site_id)


async def _site(tx: Tx, tenant_id: int, who: Registration) -> int:
    if who.proven_site_id is not None and not who.site:
        return await _proven_site(tx, who)
    if not who.site and (known := await _known_site(tx, tenant_id, who.worker_id)) is not None:
        return known
    rows = await tx.all(
        """
        SELECT site_id FROM sites WHERE tenant_id = :tenant_id AND removed_at IS NULL
          AND (:site = '' OR name = :site OR site_uuid = :site) LIMIT 2""",
        tenant_id=tenant_id,
        site=who.site,
    )
    if not rows:
        raise NotFound(
            f"there is no site {who.site!r} for worker {who.worker_id}; set [worker] site_id to the name or id of "
            "one of your sites"
        )
    if len(rows) > 1:
        raise BadInput(
            f"worker {who.worker_id} names no site and there are several; set [worker] site_id to the one it "
            "stands in"
        )
    if who.proven_site_id is not None and rows[0]["site_id"] != who.proven_site_id:
        raise Forbidden(
            f"the certificate of worker {who.worker_id} is for another site than {who.site!r}; enroll it anew there"
        )
    return int(rows[0]["site_id"])


async def _proven_site(tx: Tx, who: Registration) -> int:
    row = await tx.one(
        "SELECT site_id FROM sites WHERE site_id = :site_id AND removed_at IS NULL", site_id=who.proven_site_id
    )
    if row is None:
        raise NotFound(
            f"the site that the certificate of worker {who.worker_id} is for was removed; add it again under its "
            "name, or enroll the worker anew at another one"
        )
    return int(row["site_id"])


async def _known_site(tx: Tx, tenant_id: int, worker_id: str) -> int | None:
    """Where a worker stood before. One that names no site stands there still, also after a second site was added."""
    row = await tx.one(
        "SELECT s.site_id FROM workers w JOIN sites s ON s.site_id = w.site_id "
        "WHERE w.tenant_id = :tenant_id AND w.worker_id = :worker_id AND s.removed_at IS NULL",
        tenant_id=tenant_id,
        worker_id=worker_id,
    )
    return None if row is None else int(row["site_id"])


async def heartbeats(
    tx: Tx, heard: tuple[Heard, ...], connected_epoch: int, ttl_ms: int, now_ms: int
) -> tuple[Beat, ...]:
    """Notes signs of life, renews what the workers hold and collects what the analyzer said meanwhile."""
    here = await _seen(tx, heard, connected_epoch, now_ms)
    await _note_metrics(tx, [one for one in heard if one.metrics and one.worker.worker_key in here], now_ms)
    holdings = [Holding(one.worker.tenant_id, one.worker.worker_key, one.held) for one in heard]
    renewals = await renew_all(tx, holdings, ttl_ms, now_ms)
    verdicts = await _verdicts(tx, heard)
    return tuple(
        Beat(
            renewal,
            tuple(one for one in verdicts.get(said.worker.worker_key, ()) if one[3] >= said.verdicts_since),
            is_replaced=said.worker.worker_key not in here,
        )
        for said, renewal in zip(heard, renewals, strict=True)
    )


async def _seen(tx: Tx, heard: tuple[Heard, ...], connected_epoch: int, now_ms: int) -> frozenset[int]:
    """Those of the workers that are connected to this process."""
    by_status: dict[str, set[int]] = {}
    for one in heard:
        by_status.setdefault(one.status, set()).add(one.worker.worker_key)
    here: set[int] = set()
    for status, worker_keys in sorted(by_status.items()):
        matched = await tx.run(
            """
            UPDATE workers SET last_seen_at = :now_ms, status = :status
            WHERE worker_key IN (:worker_keys...) AND connected_epoch = :connected_epoch""",
            worker_keys=sorted(worker_keys),
            connected_epoch=connected_epoch,
            status=status,
            now_ms=now_ms,
        )
        if matched < len(worker_keys):
            rows = await tx.all(
                """
                SELECT worker_key FROM workers
                WHERE worker_key IN (:worker_keys...) AND connected_epoch = :connected_epoch""",
                worker_keys=sorted(worker_keys),
                connected_epoch=connected_epoch,
            )
            worker_keys = {row["worker_key"] for row in rows}
        here |= worker_keys
    return frozenset(here)


async def _note_metrics(tx: Tx, heard: list[Heard], now_ms: int) -> None:
    """Keeps the newest. Callers see to it that they do not come with every heartbeat."""
    newest = {one.worker.worker_key: one.metrics for one in heard}
    await tx.by_key(
        "UPDATE workers SET metrics = :metrics, metrics_at = :now_ms WHERE worker_key = :worker_key",
        [
            {"worker_key": worker_key, "metrics": metrics, "now_ms": now_ms}
            for worker_key, metrics in sorted(newest.items())
        ],
    )


async def _verdicts(tx: Tx, heard: tuple[Heard, ...]) -> dict[int, list[Verdict]]:
    """By worker, from the earliest time that any of them asks about."""
    rows = await tx.all(
        _VERDICTS,
        worker_keys=sorted({one.worker.worker_key for one in heard}),
        since=min(one.verdicts_since for one in heard),
    )
    found: dict[int, list[Verdict]] = {}
    for row in rows:
        verdict = (row["camera_id"], row["last_analyzed_at"], bool(row["last_detected"]), row["updated_at"])
        found.setdefault(row["worker_key"], []).append(verdict)
    return found


async def disconnected(tx: Tx, worker_key: int, connected_epoch: int) -> None:
    """The socket is gone. Its leases stay: the worker has until they expire to come back."""
    await tx.run(
        """
        UPDATE workers SET connected_epoch = NULL
        WHERE worker_key = :worker_key AND connected_epoch = :connected_epoch""",
        worker_key=worker_key,
        connected_epoch=connected_epoch,
    )


async def mark_unhealthy(tx: Tx, seen_before: int) -> tuple[str, ...]:
    """Workers that missed their heartbeats, each told once. One that stopped on purpose is not missed."""
    rows = await tx.all(
        """
        SELECT worker_key, worker_id FROM workers
        WHERE last_seen_at < :seen_before AND status NOT IN ('UNHEALTHY', 'STOPPED') LIMIT 500""",
        seen_before=seen_before,
    )
    if rows:
        await tx.run(
            """
            UPDATE workers SET status = 'UNHEALTHY'
            WHERE worker_key IN (:worker_keys...) AND last_seen_at < :seen_before""",
            worker_keys=[row["worker_key"] for row in rows],
            seen_before=seen_before,
        )
    return tuple(row["worker_id"] for row in rows)


async def uploader(tx: Tx, tenant_id: int, worker_id: str, camera_id: str, generation: int) -> Uploader | None:
    """Who sends a look and of what. None: no such worker."""
    row = await tx.one(
        """
        SELECT w.worker_key, w.boot_id, c.camera_key, c.site_id, o.job_priority, l.worker_key AS lease_worker_key
        FROM workers w
        LEFT JOIN cameras c ON c.tenant_id = w.tenant_id AND c.camera_id = :camera_id
        LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
        LEFT JOIN camera_leases l ON l.camera_key = c.camera_key AND l.generation = :generation
        WHERE w.tenant_id = :tenant_id AND w.worker_id = :worker_id""",
        tenant_id=tenant_id,
        worker_id=worker_id,
        camera_id=camera_id,
        generation=generation,
    )
    if row is None:
        return None
    return Uploader(
        row["worker_key"],
        tenant_id,
        row["boot_id"],
        row["camera_key"],
        row["site_id"],
        row["job_priority"],
        row["lease_worker_key"] == row["worker_key"],
    )


_COLUMNS = """INSERT INTO workers (tenant_id, site_id, worker_id, version, labels, capacity, status, boot_id,
  connected_epoch, last_seen_at, created_at)
VALUES (:tenant_id, :site_id, :worker_id, :version, :labels, :capacity, 'REGISTERED', :boot_id,
  :connected_epoch, :now_ms, :now_ms)"""
_ON_CONFLICT = """
ON CONFLICT (tenant_id, worker_id) DO UPDATE SET site_id = excluded.site_id, version = excluded.version,
  labels = excluded.labels, capacity = excluded.capacity, status = excluded.status, boot_id = excluded.boot_id,
  connected_epoch = excluded.connected_epoch, last_seen_at = excluded.last_seen_at"""
_UPSERT = Sql(
    _COLUMNS + _ON_CONFLICT,
    mariadb=_COLUMNS
    + """
ON DUPLICATE KEY UPDATE site_id = VALUES(site_id), version = VALUES(version), labels = VALUES(labels),
  capacity = VALUES(capacity), status = VALUES(status), boot_id = VALUES(boot_id),
  connected_epoch = VALUES(connected_epoch), last_seen_at = VALUES(last_seen_at)""",
)

_VERDICTS = """
SELECT s.worker_key, c.camera_id, t.last_analyzed_at, t.last_detected, t.updated_at
FROM camera_sessions s
JOIN camera_state t ON t.camera_key = s.camera_key
JOIN cameras c ON c.camera_key = s.camera_key
WHERE s.worker_key IN (:worker_keys...) AND t.updated_at >= :since AND t.last_analyzed_at IS NOT NULL
ORDER BY t.updated_at, s.camera_key"""
