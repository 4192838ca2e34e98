"""Camera health: new looks are taken in, and what follows from them (domain/health.py) is written.

Any number of dispatchers may do this at once: a camera's memory is read and written under the lock of its row in
`camera_health`, and one that somebody else has is passed over. Looks are read in the order of their numbers from
behind the newest one taken in; late ones, and those of earlier generations, touch nothing (decisions 12).
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from camserver.domain import health
from camserver.domain.events import EventPolicy, merge_gap_ms
from camserver.domain.health import LIVE_SOURCES, CameraFacts, Look, Memory, Policies, Standing, Status
from camserver.domain.incidents import IncidentPolicy
from camserver.domain.notices import DeliveryPolicy, NotifyPolicy
from camserver.store.issue_events import Issues, IssueTerms, OpenIssue, apply_issues
from camserver.store.sql import Sql
from camserver.store.tx import Row, Tx

CAMERAS_MAX = 200
LOOKS_MAX = 2000
VIEW_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class HealthTerms:
    """What the rule needs to know besides the rows."""

    default_interval_ms: int
    policies: Policies = field(default_factory=Policies)
    events: EventPolicy = field(default_factory=EventPolicy)
    incidents: IncidentPolicy = field(default_factory=IncidentPolicy)
    notify: NotifyPolicy = field(default_factory=NotifyPolicy)
    deliveries: DeliveryPolicy = field(default_factory=DeliveryPolicy)


@dataclass(frozen=True, slots=True)
class Swept:
    cameras: int  # that were looked through
    changed: int  # whose state or issues are others now
    more: bool  # whether some are left


@dataclass(frozen=True, slots=True)
class _Known:
    """A camera as it was read, under its lock."""

    camera_key: int
    tenant_id: int
    site_id: int
    generation: int  # of the lease whose looks are read
    seen_seq: int  # the newest of them that was taken in
    last_seq: int  # the newest there is
    camera: CameraFacts
    memory: Memory
    view_key: str  # of its address, masks and rotation
    shown: tuple[str, str]  # state and cause as people see them
    issues: str  # as stored


@dataclass(frozen=True, slots=True)
class _Followed:
    """… and after its new looks."""

    known: _Known
    memory: Memory
    seq: int  # the newest look taken in


async def sweep(tx: Tx, now_ms: int, terms: HealthTerms) -> Swept:
    """Looks through cameras with new looks, or whose time has come."""
    await _adopt(tx, now_ms)
    free_before = now_ms - terms.policies.health.unattended_after_sec * 1000
    due = await tx.all(_DUE, now_ms=now_ms, free_before=free_before)
    if not due:
        return Swept(0, 0, more=False)
    keys = [row["camera_key"] for row in due]
    locked = await tx.all(_LOCK, camera_keys=keys)
    # Read again under the lock: another dispatcher may just have been through.
    rows = await tx.all(_CAMERAS, camera_keys=[row["camera_key"] for row in locked], free_before=free_before)
    known = [_known(row, terms) for row in rows]
    looks, is_cut = await _new_looks(tx, known)
    followed = [_followed(one, looks.get(one.camera_key, ()), is_cut, now_ms, terms) for one in known]
    await tx.many(_REMEMBER, [_remembered(one, now_ms, terms) for one in followed])
    changed = 0
    for one in followed:
        changed += await _tell(tx, one, now_ms, terms)
    return Swept(len(known), changed, more=is_cut or len(due) == CAMERAS_MAX)


async def _adopt(tx: Tx, now_ms: int) -> None:
    missing = await tx.all(_WITHOUT)
    if missing:
        await tx.run(_INSERT, camera_keys=[row["camera_key"] for row in missing], now_ms=now_ms)


def _known(row: Row, terms: HealthTerms) -> _Known:
    interval_sec = row["polling_interval_sec"]
    return _Known(
        camera_key=row["camera_key"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        generation=row["generation"],
        seen_seq=row["seen_seq"],
        last_seq=row["last_seq"],
        camera=CameraFacts(
            standing=Standing(row["standing"]),
            interval_ms=terms.default_interval_ms if interval_sec is None else round(interval_sec * 1000),
            is_live=row["source_type"] in LIVE_SOURCES,
        ),
        memory=health.from_plain(json.loads(row["memory"]) if row["memory"] else None),
        view_key=_view_key(row),
        shown=(row["health"], row["health_cause"]),
        issues=row["issues"] or "",
    )


def _view_key(row: Row) -> str:
    """Hashed: it is kept with the memory, and addresses are nobody's business there."""
    shown = [row[name] for name in ("url", "sub_url", "ignore_masks", "privacy_masks", "rotation")]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()[:VIEW_KEY_CHARS]


async def _new_looks(tx: Tx, known: Sequence[_Known]) -> tuple[Mapping[int, Sequence[Row]], bool]:
    """New looks by camera, and whether there were too many to read them all now."""
    rows = await tx.all(_LOOKS, camera_keys=[one.camera_key for one in known])
    by_camera: dict[int, list[Row]] = {}
    for row in rows:
        by_camera.setdefault(row["camera_key"], []).append(row)
    return by_camera, len(rows) == LOOKS_MAX


def _followed(one: _Known, rows: Sequence[Row], is_cut: bool, now_ms: int, terms: HealthTerms) -> _Followed:
    """Takes in a camera's looks."""
    memory = health.follow_change(one.memory, one.view_key, now_ms)
    for row in rows:
        memory = health.take_in(memory, _look(row), one.camera, terms.policies)
    if rows:
        # Looks that were long on their way came all the same.
        memory = replace(memory, attended_at=now_ms)
    newest = rows[-1]["seq"] if rows else one.seen_seq
    return _Followed(
        one,
        health.pass_time(memory, one.camera, terms.policies, now_ms),
        # Late looks are left out of what was read, so the newest number may be one of theirs.
        newest if is_cut else max(newest, one.last_seq),
    )


def _remembered(followed: _Followed, now_ms: int, terms: HealthTerms) -> dict[str, object]:
    one = followed.known
    return {
        "camera_key": one.camera_key,
        "generation": one.generation,
        "seq": followed.seq,
        "standing": one.camera.standing.value,
        "due_at": health.due_at(followed.memory, one.camera, terms.policies),
        "memory": json.dumps(health.to_plain(followed.memory)),
        "now_ms": now_ms,
    }


async def _tell(tx: Tx, followed: _Followed, now_ms: int, terms: HealthTerms) -> bool:
    """Writes what people see; whether it is something else now."""
    one, memory = followed.known, followed.memory
    open_issues = await apply_issues(
        tx,
        Issues(
            camera_key=one.camera_key,
            tenant_id=one.tenant_id,
            site_id=one.site_id,
            told=tuple(health.told(memory).items()),
            had_some=bool(health.told(one.memory)) or one.issues not in ("", "[]"),
            cause=memory.cause,
            picture_frame_id=memory.picture_frame_id,
            last_at=memory.last_at if memory.last_at is not None else now_ms,
            gap_ms=merge_gap_ms(terms.events, one.camera.interval_ms),
            is_proven=one.camera.standing is Standing.ATTENDED and one.memory.view_key == memory.view_key,
        ),
        now_ms,
        IssueTerms(terms.incidents, terms.notify, terms.deliveries),
    )
    status = health.status(memory, one.camera.standing, now_ms)
    return await _show(tx, one, status, open_issues, now_ms)


def _look(row: Row) -> Look:
    is_good = row["collector_status"] == "ok"
    return Look(
        frame_id=row["frame_id"],
        captured_at=row["captured_at"],
        cause="" if is_good else (row["error_code"] or row["collector_status"])[:32],
        has_picture=row["infer_bytes"] is not None,
        hash_hex=row["infer_hash64_hex"],
        structure=row["structure"],
        view_hex=row["view_hex"],
    )


async def _show(tx: Tx, one: _Known, status: Status, issues: Iterable[OpenIssue], now_ms: int) -> bool:
    """Writes what people see of the camera, when it is not what they see already."""
    plain = [{"kind": issue.kind, "since": issue.since, "event": issue.event_uuid} for issue in issues]
    same_issues = plain == (json.loads(one.issues) if one.issues else [])
    if same_issues and (status.state.value, status.cause) == one.shown:
        return False
    await tx.run(
        _SHOW,
        camera_key=one.camera_key,
        health=status.state.value,
        cause=status.cause,
        same=int((status.state.value, status.cause) == one.shown),
        since=status.since,
        issues=json.dumps(plain),
    )
    tx.changed(tenant_id=one.tenant_id, kind="camera", at_ms=now_ms, site_id=one.site_id, camera_key=one.camera_key)
    return True


# A camera that nobody holds, or whose lease has run out, is given some time: it is on its way to the next worker.
_STANDING = """
CASE WHEN c.enabled = 0 OR c.deleted_at IS NOT NULL OR c.do_not_process = 1
       OR c.tenant_id IN (SELECT n.tenant_id FROM tenants n WHERE n.disabled = 1) THEN 'off'
     WHEN s.worker_key IS NULL AND (s.updated_at <= :free_before OR h.standing = 'unattended') THEN 'unattended'
     WHEN s.worker_key IS NOT NULL AND s.lease_expires_at <= :free_before THEN 'unattended'
     ELSE 'attended' END"""
_FROM = """
FROM camera_health h
JOIN cameras c ON c.camera_key = h.camera_key
JOIN camera_sessions s ON s.camera_key = h.camera_key
LEFT JOIN camera_leases l ON l.camera_key = s.camera_key AND l.generation = s.generation"""
_DUE = f"""
SELECT h.camera_key {_FROM}
WHERE COALESCE(l.last_seq, 0) > CASE WHEN h.generation = s.generation THEN h.seq ELSE 0 END
  OR h.due_at <= :now_ms OR h.standing <> {_STANDING}
ORDER BY h.camera_key LIMIT {CAMERAS_MAX}"""
_LOCK = """
SELECT camera_key FROM camera_health WHERE camera_key IN (:camera_keys...)
ORDER BY camera_key FOR UPDATE SKIP LOCKED"""
_CAMERAS = f"""
SELECT h.camera_key, h.tenant_id, h.memory, c.site_id, s.generation,
  COALESCE(l.last_seq, 0) AS last_seq,
  CASE WHEN h.generation = s.generation THEN h.seq ELSE 0 END AS seen_seq,
  o.polling_interval_sec, o.ignore_masks, o.privacy_masks, o.rotation, f.source_type, f.url, u.url AS sub_url,
  t.health, t.health_cause, t.issues, {_STANDING} AS standing
{_FROM}
JOIN camera_state t ON t.camera_key = h.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = h.camera_key
LEFT JOIN camera_streams f ON f.camera_key = h.camera_key AND f.kind = 'main'
LEFT JOIN camera_streams u ON u.camera_key = h.camera_key AND u.kind = 'sub'
WHERE h.camera_key IN (:camera_keys...) ORDER BY h.camera_key"""
_LOOKS = f"""
SELECT f.camera_key, f.seq, f.frame_id, f.captured_at, f.collector_status, f.error_code, f.infer_bytes,
  f.infer_hash64_hex, f.structure, f.view_hex
FROM camera_health h
JOIN camera_sessions s ON s.camera_key = h.camera_key
JOIN frames f ON f.camera_key = h.camera_key AND f.generation = s.generation
  AND f.seq > CASE WHEN h.generation = s.generation THEN h.seq ELSE 0 END
WHERE h.camera_key IN (:camera_keys...) AND f.late = 0
ORDER BY f.camera_key, f.seq LIMIT {LOOKS_MAX}"""
_REMEMBER = """
UPDATE camera_health SET generation = :generation, seq = :seq, standing = :standing, due_at = :due_at,
  memory = :memory, updated_at = :now_ms
WHERE camera_key = :camera_key"""
_SHOW = """
UPDATE camera_state SET health_since = CASE WHEN :same = 1 THEN health_since ELSE :since END,
  health = :health, health_cause = :cause, issues = :issues
WHERE camera_key = :camera_key"""
_WITHOUT = f"""
SELECT t.camera_key FROM camera_state t JOIN camera_sessions s ON s.camera_key = t.camera_key
LEFT JOIN camera_health h ON h.camera_key = t.camera_key
WHERE h.camera_key IS NULL ORDER BY t.camera_key LIMIT {CAMERAS_MAX}"""
_INSERT = Sql(
    sqlite="""
INSERT OR IGNORE INTO camera_health (camera_key, tenant_id, updated_at)
SELECT camera_key, tenant_id, :now_ms FROM cameras WHERE camera_key IN (:camera_keys...)""",
    postgres="""
INSERT INTO camera_health (camera_key, tenant_id, updated_at)
SELECT camera_key, tenant_id, :now_ms FROM cameras WHERE camera_key IN (:camera_keys...) ON CONFLICT DO NOTHING""",
    mariadb="""
INSERT IGNORE INTO camera_health (camera_key, tenant_id, updated_at)
SELECT camera_key, tenant_id, :now_ms FROM cameras WHERE camera_key IN (:camera_keys...)""",
)
