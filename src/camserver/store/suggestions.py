"""The camera to watch now, one a tenant. Whether and which is decided in domain/suggest.py, under the row's lock.

Any process may advance it at any time: the answer depends on rows and time alone. A change is a line of the feed for
those who reach the camera. Prewarming its stream is in prewarming.py.
"""

from dataclasses import dataclass

from camserver.base.errors import Conflict
from camserver.domain.change_kinds import ChangeKind
from camserver.domain.suggest import (
    WEIGHT_DEFAULT,
    Board,
    Candidate,
    Suggestion,
    SuggestPolicy,
    advanced,
    chosen,
    counts_from,
    dismissed,
)
from camserver.domain.vocabulary import HAZARD_PREFIX
from camserver.store import audit
from camserver.store.cameras import missing
from camserver.store.core import unlogged
from camserver.store.sql import Sql
from camserver.store.tx import Row, Scoped

# Events of the last minute that are compared; where more happen at once, the severest.
CANDIDATES_MAX = 200
CHANGE_KIND: ChangeKind = "suggestion"


@dataclass(frozen=True, slots=True)
class Shown:
    """A suggestion as somebody sees it who reaches its camera."""

    suggestion: Suggestion
    camera_id: str
    camera_name: str
    site: str
    event_uuid: str | None
    severity: int


async def current(tx: Scoped, now_ms: int) -> Shown | None:
    """What is suggested now, if the principal reaches that camera."""
    row = await tx.one(_SHOWN, now_ms=now_ms)
    suggestion = None if row is None else _suggestion(row)
    if row is None or suggestion is None:
        return None
    severity = int(row["severity_max"] or 0)
    return Shown(suggestion, row["camera_id"], row["name"], row["site"], row["event_uuid"], severity)


async def is_active(tx: Scoped, now_ms: int) -> bool:
    """Whether anything is suggested in the tenant, seen by the principal or not."""
    return await tx.one(f"{_ROW} AND camera_key IS NOT NULL AND until > :now_ms", now_ms=now_ms) is not None


async def is_due(tx: Scoped, policy: SuggestPolicy, now_ms: int) -> bool:
    """Whether `advance` would change something: it costs a write only then."""
    board = _board(await tx.one(_ROW))
    return advanced(board, await _candidates(tx, board, policy, now_ms), now_ms, policy) != board


@unlogged("decided by the server from events; nobody asks for it")
async def advance(tx: Scoped, policy: SuggestPolicy, now_ms: int) -> None:
    """Brings the tenant's suggestion up to this moment."""
    before = await _locked(tx)
    found = await _candidates(tx, before, policy, now_ms)
    await _put(tx, before, advanced(before, found, now_ms, policy), now_ms)


async def choose(tx: Scoped, camera_id: str, duration_sec: int, address: str, now_ms: int) -> None:
    """Somebody chooses a camera for a while."""
    row = await tx.one(
        "SELECT c.camera_key FROM cameras c WHERE c.tenant_id = :tenant_id AND c.camera_id = :camera_id "
        "AND c.deleted_at IS NULL AND IN_REACH(c) FOR SHARE",
        camera_id=camera_id,
    )
    if row is None:
        raise missing(camera_id)
    before = await _locked(tx)
    if await _is_chosen_out_of_reach(tx, before, now_ms):
        raise Conflict(
            "somebody chose another camera, which you do not reach; wait until that is over, or ask them",
            reason="suggestion_taken",
        )
    await _put(tx, before, chosen(before, row["camera_key"], duration_sec, now_ms), now_ms)
    details: dict[str, str | int] = {"duration_sec": duration_sec}
    await audit.add_own(tx, audit.Entry("suggestion_chosen", now_ms, address, "camera", camera_id, details))


async def _is_chosen_out_of_reach(tx: Scoped, board: Board, now_ms: int) -> bool:
    now = board.current
    return now is not None and now.manual and now.until > now_ms and await current(tx, now_ms) is None


async def dismiss(tx: Scoped, policy: SuggestPolicy, address: str, now_ms: int) -> bool:
    """Somebody ends the suggestion. False: there is none that they can see."""
    before = await _locked(tx)
    shown = await current(tx, now_ms)
    if shown is None:
        return False
    await _put(tx, before, dismissed(before, now_ms, policy), now_ms)
    await audit.add_own(tx, audit.Entry("suggestion_ended", now_ms, address, "camera", shown.camera_id))
    return True


async def _locked(tx: Scoped) -> Board:
    row = await tx.one(f"{_ROW} FOR UPDATE")
    if row is None:
        await tx.lock(_INSERT)
        row = await tx.one(f"{_ROW} FOR UPDATE")
    return _board(row)


async def _put(tx: Scoped, before: Board, after: Board, now_ms: int) -> None:
    if after == before:
        return
    now = after.current
    await tx.run(
        _UPDATE,
        camera_key=None if now is None else now.camera_key,
        event_id=None if now is None else now.event_id,
        reason="" if now is None else now.reason,
        score=0.0 if now is None else now.score,
        scored_at=0 if now is None else now.scored_at,
        since=0 if now is None else now.since,
        until=0 if now is None else now.until,
        manual=int(now is not None and now.manual),
        rest_until=after.rest_until,
        dismissed_at=after.dismissed_at,
    )
    gone = before.current
    if gone is not None and (now is None or now.camera_key != gone.camera_key):
        # Whoever sees it is shown the next one, under a viewing of its own.
        await tx.run(
            "DELETE FROM modal_leases WHERE tenant_id = :tenant_id AND kind IN ('suggest', 'prewarm') "
            "AND camera_key = :camera_key",
            camera_key=gone.camera_key,
        )
    for camera_key in {one.camera_key for one in (gone, now) if one is not None}:
        await _tell(tx, camera_key, now_ms)


async def _tell(tx: Scoped, camera_key: int, now_ms: int) -> None:
    row = await tx.one(
        "SELECT site_id FROM cameras WHERE tenant_id = :tenant_id AND camera_key = :camera_key", camera_key=camera_key
    )
    if row is not None:
        tx.changed(kind=CHANGE_KIND, at_ms=now_ms, site_id=row["site_id"], camera_key=camera_key)


async def _candidates(tx: Scoped, board: Board, policy: SuggestPolicy, now_ms: int) -> list[Candidate]:
    rows = await tx.all(
        _CANDIDATES,
        since=counts_from(board, now_ms, policy),
        now_ms=now_ms,
        hazard=f"{HAZARD_PREFIX}%",
        most=CANDIDATES_MAX,
    )
    return [
        Candidate(
            camera_key=row["camera_key"],
            event_id=row["event_id"],
            primary_event=row["primary_event"],
            severity=row["severity_max"],
            start_at=row["start_at"],
            weight=WEIGHT_DEFAULT if row["suggest_weight"] is None else row["suggest_weight"],
            is_hazard=bool(row["is_hazard"]),
            is_unknown=bool(row["unknown_flag"]),
        )
        for row in rows
    ]


def _board(row: Row | None) -> Board:
    return Board() if row is None else Board(_suggestion(row), row["rest_until"], row["dismissed_at"])


def _suggestion(row: Row) -> Suggestion | None:
    if row["camera_key"] is None:
        return None
    return Suggestion(
        camera_key=row["camera_key"],
        event_id=row["event_id"],
        reason=row["reason"],
        score=row["score"],
        scored_at=row["scored_at"],
        since=row["since"],
        until=row["until"],
        manual=bool(row["manual"]),
    )


_ROW = "SELECT * FROM suggestions WHERE tenant_id = :tenant_id"
_INSERT = Sql(
    "INSERT INTO suggestions (tenant_id) VALUES (:tenant_id) ON CONFLICT DO NOTHING",
    mariadb="INSERT INTO suggestions (tenant_id) VALUES (:tenant_id) ON DUPLICATE KEY UPDATE tenant_id = tenant_id",
)
_UPDATE = """
UPDATE suggestions SET camera_key = :camera_key, event_id = :event_id, reason = :reason, score = :score,
  scored_at = :scored_at, since = :since, until = :until, manual = :manual, rest_until = :rest_until,
  dismissed_at = :dismissed_at
WHERE tenant_id = :tenant_id"""
_CANDIDATES = """
SELECT e.camera_key, e.event_id, e.primary_event, e.severity_max, e.start_at, e.unknown_flag, o.suggest_weight,
  CASE WHEN EXISTS (SELECT 1 FROM event_tags g WHERE g.event_id = e.event_id AND g.tag_id LIKE :hazard)
    THEN 1 ELSE 0 END AS is_hazard
FROM events e
JOIN cameras c ON c.camera_key = e.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = e.camera_key
WHERE e.tenant_id = :tenant_id AND e.start_at > :since AND e.start_at <= :now_ms
  AND c.deleted_at IS NULL AND c.enabled = 1 AND c.do_not_process = 0
ORDER BY e.severity_max DESC, e.start_at DESC LIMIT :most"""
_SHOWN = """
SELECT g.*, c.camera_id, c.name, s.name AS site, e.event_uuid, e.severity_max
FROM suggestions g
JOIN cameras c ON c.camera_key = g.camera_key
JOIN sites s ON s.site_id = c.site_id
LEFT JOIN events e ON e.event_id = g.event_id
WHERE g.tenant_id = :tenant_id AND g.until > :now_ms AND c.deleted_at IS NULL AND IN_REACH(c)"""
