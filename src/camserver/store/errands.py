"""Errands as people and services ask for them: short tasks for a worker, answered once, bounded and expiring.

Sending them and taking answers is in `errand_orders`. What an errand needs to know is in `request` (JSON);
credentials of a source that is no camera yet are sealed beside it and gone as soon as the errand is over.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from camserver.base.credentials import Sealed
from camserver.base.errors import Conflict, NotFound, Unavailable
from camserver.store import audit, garbage, tenants
from camserver.store.cameras import missing, public_camera_id
from camserver.store.tx import Row, Scoped, Tx

# Unfinished ones of a tenant. People ask a few; whoever asks more has a loop.
UNFINISHED_MAX = 100
# People who ask for the same picture at about the same time get the same one.
SHARED_MS = 2_000
# How long an answer can be read after its errand's time was over.
KEPT_MS = 3_600_000
BATCH = 200
# Everybody may ask for a picture, as often as they like: the log has it once in some minutes.
LOOK = "look"
# Of a camera that nobody holds it is any worker's, so it works with one that is switched off, too.
PROBE = "probe"
# In the request of a film that somebody asked for, and no event.
RECENT = "recent"
_HOST = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)?(?P<host>[^/?#]+)")


@dataclass(frozen=True, slots=True)
class NewErrand:
    errand_uuid: str
    kind: str  # probe, discover, look, explain, clip
    request: str  # JSON
    expires_at: int
    credentials: Sealed | None = None


@dataclass(frozen=True, slots=True)
class ErrandState:
    errand_uuid: str
    kind: str
    camera_id: str | None
    state: str  # waiting, sent, done, failed, expired
    message: str
    result: str | None  # JSON
    has_picture: bool
    created_at: int
    expires_at: int
    done_at: int | None

    @property
    def is_over(self) -> bool:
        return self.state not in ("waiting", "sent")


@dataclass(frozen=True, slots=True)
class ErrandObject:
    kind: str
    object_key: str
    content_type: str


# ---------------------------------------------------------------------------------------------------------------
# Asking
# ---------------------------------------------------------------------------------------------------------------


async def ask_camera(tx: Scoped, camera_id: str, errand: NewErrand, address: str, now_ms: int) -> ErrandState:
    """Sends the camera's holder on an errand (a probe also goes to others). Conflict when nobody will hold it: it is
    switched off."""
    camera = await tx.one(
        "SELECT c.camera_key, c.site_id, c.enabled FROM cameras c WHERE c.camera_id = :camera_id "
        "AND c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c)",
        camera_id=camera_id,
    )
    if camera is None:
        raise missing(camera_id)
    if not camera["enabled"] and errand.kind != PROBE:
        raise Conflict(
            f"camera {camera_id!r} is switched off, so no worker looks at it; switch it on first",
            reason="camera_off",
            camera_id=camera_id,
        )
    shared = await _shared(tx, camera["camera_key"], errand, now_ms)
    if shared is not None:
        return await get(tx, shared, now_ms)
    await _ask(tx, camera["site_id"], camera["camera_key"], errand, now_ms)
    await _note(tx, errand, audit.Entry(f"errand_{errand.kind}", now_ms, address, "camera", camera_id))
    return await get(tx, errand.errand_uuid, now_ms)


async def ask_site(tx: Scoped, site: str | None, errand: NewErrand, address: str, now_ms: int) -> ErrandState:
    """Sends any worker of the site on an errand."""
    found = await tenants.find_site(tx, site)
    await _ask(tx, found.site_id, None, errand, now_ms)
    action, details = f"errand_{errand.kind}", {"name": found.name}
    await _note(tx, errand, audit.Entry(action, now_ms, address, "site", found.site_uuid, details))
    return await get(tx, errand.errand_uuid, now_ms)


async def _shared(tx: Scoped, camera_key: int, errand: NewErrand, now_ms: int) -> str | None:
    """An errand under way that would bring the same answer."""
    if errand.kind != LOOK:
        return None
    rows = await tx.all(
        """
        SELECT errand_uuid, request FROM errands WHERE tenant_id = :tenant_id AND camera_key = :camera_key
          AND kind = 'look' AND state IN ('waiting', 'sent') AND expires_at > :now_ms AND created_at > :since
        ORDER BY errand_id DESC LIMIT 10""",
        camera_key=camera_key,
        now_ms=now_ms,
        since=now_ms - SHARED_MS,
    )
    wanted = json.loads(errand.request)
    return next((str(row["errand_uuid"]) for row in rows if json.loads(row["request"]) == wanted), None)


async def _note(tx: Scoped, errand: NewErrand, entry: audit.Entry) -> None:
    """About the camera or site it is for: the errand itself is gone within hours, the log stays for years."""
    if errand.kind == LOOK:
        await audit.look(tx, replace(entry, action="look_asked"))
        return
    hosts = _hosts(json.loads(errand.request))
    if hosts:
        entry = replace(entry, details={**(entry.details or {}), "host": ", ".join(hosts)})
    await audit.add_own(tx, entry)


def _hosts(request: dict[str, Any]) -> list[str]:
    """Whom the worker is sent to, where that is not the camera's own address. Never more of an address than its host:
    some cameras take their password in what follows."""
    if "at" in request:
        return [request["at"]]
    if "source" not in request:
        return list(request.get("hosts", ()))
    url = str(request["source"]["url"])
    host = _HOST.match(url)
    # What is on the worker's own machine has none.
    return [host["host"] if host else url.partition("?")[0]]


async def _ask(tx: Scoped, site_id: int, camera_key: int | None, errand: NewErrand, now_ms: int) -> None:
    # Clips are asked for by the server itself, as many as there are events.
    row = await tx.one(
        "SELECT count(*) AS unfinished FROM errands WHERE tenant_id = :tenant_id AND state IN ('waiting', 'sent') "
        "AND kind <> 'clip'"
    )
    if row is not None and row["unfinished"] >= UNFINISHED_MAX:
        raise Unavailable(
            f"{UNFINISHED_MAX} errands are under way already; wait until some are done", reason="errands_full"
        )
    await tx.run(_INSERT, **_columns(site_id, camera_key, errand, now_ms))


async def add(tx: Tx, tenant_id: int, site_id: int, camera_key: int | None, errand: NewErrand, now_ms: int) -> None:
    """An errand that the server itself asks for, in the transaction that makes it needed."""
    await tx.run(_INSERT, tenant_id=tenant_id, **_columns(site_id, camera_key, errand, now_ms))


def _columns(site_id: int, camera_key: int | None, errand: NewErrand, now_ms: int) -> dict[str, object]:
    sealed = errand.credentials
    return {
        "errand_uuid": errand.errand_uuid,
        "site_id": site_id,
        "camera_key": camera_key,
        "kind": errand.kind,
        "request": errand.request,
        "key_id": None if sealed is None else sealed.key_id,
        "nonce": None if sealed is None else sealed.nonce,
        "ciphertext": None if sealed is None else sealed.ciphertext,
        "expires_at": errand.expires_at,
        "now_ms": now_ms,
    }


_INSERT = """
INSERT INTO errands (errand_uuid, tenant_id, site_id, camera_key, kind, request, key_id, nonce, ciphertext, state,
  created_at, expires_at)
VALUES (:errand_uuid, :tenant_id, :site_id, :camera_key, :kind, :request, :key_id, :nonce, :ciphertext, 'waiting',
  :now_ms, :expires_at)"""


# ---------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------


async def get(tx: Scoped, errand_uuid: str, now_ms: int) -> ErrandState:
    return _state(await _found(tx, errand_uuid), now_ms)


async def picture(tx: Scoped, errand_uuid: str) -> ErrandObject:
    """The picture that an errand brought."""
    row = await _found(tx, errand_uuid)
    if not _has_picture(row):
        raise NotFound(f"errand {errand_uuid} brought no picture", reason="no_errand_picture")
    return ErrandObject(row["kind"], row["object_key"], row["object_type"])


async def _found(tx: Scoped, errand_uuid: str) -> Row:
    row = await tx.one(
        """
        SELECT e.*, c.camera_id FROM errands e LEFT JOIN cameras c ON c.camera_key = e.camera_key
        WHERE e.tenant_id = :tenant_id AND e.errand_uuid = :errand_uuid
          AND IN_REACH(e)""",
        errand_uuid=errand_uuid,
    )
    if row is None:
        raise NotFound(
            f"there is no errand {errand_uuid}; answers are kept for an hour, ask again", reason="no_errand"
        )
    return row


def _state(row: Row, now_ms: int) -> ErrandState:
    state, message = row["state"], row["message"]
    if state in ("waiting", "sent") and row["expires_at"] <= now_ms:
        state, message = "expired", why_expired(state, row["camera_key"] is not None)
    return ErrandState(
        errand_uuid=row["errand_uuid"],
        kind=row["kind"],
        camera_id=None if row["camera_id"] is None else public_camera_id(row["camera_id"]),
        state=state,
        message=message,
        result=row["result"],
        has_picture=_has_picture(row),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        done_at=row["done_at"],
    )


def _has_picture(row: Row) -> bool:
    """Whether there is something for whoever asked: a picture, or a film that was asked for by itself.

    The film of an event is the event's, and opened there.
    """
    if row["object_key"] is None:
        return False
    is_asked_for = row["kind"] == "clip" and bool(json.loads(row["request"]).get(RECENT))
    return is_asked_for or row["object_type"].startswith("image/")


def why_expired(state: str, has_camera: bool) -> str:
    if state == "sent":
        return "the worker did not answer in time"
    return "no worker holds this camera now" if has_camera else "no worker of this site is connected now"


# ---------------------------------------------------------------------------------------------------------------
# The end
# ---------------------------------------------------------------------------------------------------------------


async def expire(tx: Tx, now_ms: int) -> int:
    """Ends errands whose time is over, and forgets the credentials they were given."""
    rows = await tx.all(
        """
        SELECT errand_id, state, camera_key FROM errands
        WHERE state IN ('waiting', 'sent') AND expires_at <= :now_ms
        ORDER BY errand_id LIMIT :batch FOR UPDATE SKIP LOCKED""",
        now_ms=now_ms,
        batch=BATCH,
    )
    await tx.many(
        """
        UPDATE errands SET state = 'expired', message = :message, done_at = :now_ms, key_id = NULL, nonce = NULL,
          ciphertext = NULL
        WHERE errand_id = :errand_id""",
        [
            {
                "errand_id": row["errand_id"],
                "message": why_expired(row["state"], row["camera_key"] is not None),
                "now_ms": now_ms,
            }
            for row in rows
        ],
    )
    return len(rows)


async def prune(tx: Tx, now_ms: int) -> int:
    """Forgets errands some time after they were over. Their objects become garbage in the same transaction."""
    rows = await tx.all(
        """
        SELECT errand_id, tenant_id, object_key FROM errands
        WHERE expires_at <= :before AND state NOT IN ('waiting', 'sent')
        ORDER BY errand_id LIMIT :batch FOR UPDATE SKIP LOCKED""",
        before=now_ms - KEPT_MS,
        batch=BATCH,
    )
    if not rows:
        return 0
    for row in rows:
        if row["object_key"] is not None:
            await garbage.add(tx, row["tenant_id"], (row["object_key"],), now_ms)
    await tx.run(
        "DELETE FROM errands WHERE errand_id IN (:errand_ids...)", errand_ids=[row["errand_id"] for row in rows]
    )
    return len(rows)
