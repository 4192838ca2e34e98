"""Changing a camera: rows first, and in the same transaction its session, so that its worker is told at once.

The holder gets START again at the same generation with the new values. Another site or switching it off is a
matter of stopping first, which `camera_sessions.follow_cameras` sees to.
"""

import json
from dataclasses import dataclass

from camserver.base.credentials import Sealed
from camserver.base.errors import BadInput, Forbidden
from camserver.domain import polygons
from camserver.store import audit, overrides, tenants
from camserver.store.cameras import (
    CameraSummary,
    Stream,
    add_stream,
    get,
    host_of,
    missing,
    other_host,
)
from camserver.store.leases import new_intent_id
from camserver.store.tx import Row, Scoped


@dataclass(frozen=True, slots=True)
class CameraChange:
    """None: stays as it is. `values` are columns of `camera_overrides`."""

    name: str | None = None
    enabled: bool | None = None
    do_not_process: bool | None = None
    network_zone: str | None = None
    site: str | None = None
    main: Stream | None = None
    sub: Stream | None = None
    without_sub: bool = False
    credentials: Sealed | None = None
    without_credentials: bool = False
    values: tuple[tuple[str, object], ...] = ()

    @property
    def subjects(self) -> list[str]:
        """What changes, for the log of who did what."""
        named = {
            "name": self.name,
            "enabled": self.enabled,
            "do_not_process": self.do_not_process,
            "network_zone": self.network_zone,
            "site": self.site,
            "source": self.main,
            "sub": self.sub or self.without_sub or None,
            "credentials": self.credentials or self.without_credentials or None,
        }
        return [name for name, value in named.items() if value is not None] + [name for name, _ in self.values]


async def change(tx: Scoped, camera_id: str, wanted: CameraChange, address: str, now_ms: int) -> CameraSummary:
    if wanted.site is not None:
        # Or it might be removed meanwhile, by somebody who saw no camera there.
        await tenants.lock(tx)
    camera = await locked(tx, camera_id)
    camera_key, site_id = camera["camera_key"], camera["site_id"]
    if wanted.site is not None:
        site_id = (await tenants.find_site(tx, wanted.site)).site_id
        if site_id != camera["site_id"] and not tx.principal.reaches(camera["site_id"]):
            raise Forbidden(
                "this camera is at a site of which you reach single cameras only; ask somebody who manages that site",
                reason="site_of_others",
            )
    await _change_row(tx, camera_key, site_id, wanted, now_ms)
    moved = await _change_streams(tx, camera_key, wanted)
    new_login = await _change_credentials(tx, camera_key, wanted, moved, now_ms)
    await _refuse_credentials_elsewhere(tx, camera_key)
    await overrides.change(tx, camera_key, dict(wanted.values), now_ms)
    await _refuse_too_many_points(tx, camera_key)
    anew = moved or new_login or wanted.main is not None or wanted.sub is not None or wanted.without_sub
    if anew or wanted.values or wanted.do_not_process is not None or wanted.network_zone is not None:
        await start_again(tx, camera_key, anew, now_ms)
    # Who reaches only where it was is told, too: it is gone from there.
    for place in sorted({camera["site_id"], site_id}):
        tx.changed(kind="camera", at_ms=now_ms, site_id=place, camera_key=camera_key)
    changed = await get(tx, camera_id)
    details = {"what": ", ".join(wanted.subjects)[:1000], **await _told(tx, camera, changed, wanted)}
    await audit.add_own(tx, audit.Entry("camera_changed", now_ms, address, "camera", camera_id, details))
    return changed


async def _told(tx: Scoped, before: Row, after: CameraSummary, wanted: CameraChange) -> dict[str, str | int]:
    """For the log: what became of it. Addresses and logins are left out, since either may hold a password."""
    told: dict[str, str | int] = {}
    if wanted.name is not None:
        told |= {"name": after.name, "name_before": before["name"]}
    if wanted.enabled is not None:
        told["enabled"] = int(after.enabled)
    if wanted.do_not_process is not None:
        told["do_not_process"] = int(after.do_not_process)
    if wanted.network_zone is not None:
        told["network_zone"] = wanted.network_zone
    if wanted.site is not None:
        former = await tx.one(
            "SELECT name FROM sites WHERE site_id = :site_id AND tenant_id = :tenant_id", site_id=before["site_id"]
        )
        told |= {"site": after.site, "site_before": "" if former is None else former["name"]}
    return told | {name: overrides.told(name, value) for name, value in wanted.values}


async def _refuse_too_many_points(tx: Scoped, camera_key: int) -> None:
    """Of all masks and zones together, also those that were there before."""
    row = await tx.one(
        "SELECT ignore_masks, privacy_masks, zones FROM camera_overrides "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
    )
    if row is None:
        return
    masks = [polygon for name in ("ignore_masks", "privacy_masks") for polygon in json.loads(row[name] or "[]")]
    zones = [zone["points"] for zone in json.loads(row["zones"] or "[]")]
    problem = polygons.total_problem(sum(map(len, [*masks, *zones])))
    if problem is not None:
        raise BadInput(f"{problem.text}; draw simpler ones", reason=problem.code)


async def locked(tx: Scoped, camera_id: str) -> Row:
    row = await tx.one(
        "SELECT c.camera_key, c.site_id, c.name FROM cameras c WHERE c.camera_id = :camera_id "
        "AND c.tenant_id = :tenant_id AND c.deleted_at IS NULL AND IN_REACH(c) FOR UPDATE",
        camera_id=camera_id,
    )
    if row is None:
        raise missing(camera_id)
    return row


async def _change_row(tx: Scoped, camera_key: int, site_id: int, wanted: CameraChange, now_ms: int) -> None:
    columns: dict[str, object] = {"site_id": site_id}
    if wanted.name is not None:
        columns["name"] = wanted.name
    if wanted.enabled is not None:
        columns["enabled"] = int(wanted.enabled)
    if wanted.do_not_process is not None:
        columns["do_not_process"] = int(wanted.do_not_process)
    if wanted.network_zone is not None:
        columns["network_zone"] = wanted.network_zone
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    await tx.run(
        f"UPDATE cameras SET {changes}, updated_at = :now_ms "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
        now_ms=now_ms,
        **columns,
    )


# ---------------------------------------------------------------------------------------------------------------
# Streams and credentials
# ---------------------------------------------------------------------------------------------------------------


async def _change_streams(tx: Scoped, camera_key: int, wanted: CameraChange) -> bool:
    """Whether the camera is at another host now."""
    before = await _hosts(tx, camera_key)
    if wanted.main is not None:
        await put_stream(tx, camera_key, "main", wanted.main)
    if wanted.without_sub:
        await tx.run(
            "DELETE FROM camera_streams WHERE camera_key = :camera_key AND tenant_id = :tenant_id AND kind = 'sub'",
            camera_key=camera_key,
        )
    elif wanted.sub is not None:
        await put_stream(tx, camera_key, "sub", wanted.sub)
    return not await _hosts(tx, camera_key) <= before


async def put_stream(tx: Scoped, camera_key: int, kind: str, stream: Stream) -> None:
    matched = await tx.run(
        "UPDATE camera_streams SET source_type = :source_type, url = :url "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id AND kind = :kind",
        camera_key=camera_key,
        kind=kind,
        source_type=stream.source_type,
        url=stream.url,
    )
    if not matched:
        await add_stream(tx, camera_key, kind, stream)


async def _hosts(tx: Scoped, camera_key: int) -> frozenset[str]:
    rows = await tx.all(
        "SELECT url FROM camera_streams WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
    )
    return frozenset(host_of(row["url"]) for row in rows)


async def _change_credentials(tx: Scoped, camera_key: int, wanted: CameraChange, moved: bool, now_ms: int) -> bool:
    """Whether they changed. Those of a camera never go to another host than the one they were given for."""
    if wanted.credentials is not None:
        await put_credentials(tx, camera_key, wanted.credentials, now_ms)
        return True
    if not (wanted.without_credentials or moved):
        return False
    gone = await tx.run(
        "DELETE FROM camera_auth WHERE camera_key = :camera_key AND tenant_id = :tenant_id", camera_key=camera_key
    )
    return gone > 0


async def put_credentials(tx: Scoped, camera_key: int, sealed: Sealed, now_ms: int) -> None:
    columns: dict[str, object] = {
        "camera_key": camera_key,
        "key_id": sealed.key_id,
        "nonce": sealed.nonce,
        "ciphertext": sealed.ciphertext,
        "now_ms": now_ms,
    }
    matched = await tx.run(
        "UPDATE camera_auth SET key_id = :key_id, nonce = :nonce, ciphertext = :ciphertext, "
        "credential_version = credential_version + 1, updated_at = :now_ms "
        "WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        **columns,
    )
    if matched:
        return
    # Counted on from the session's: a worker must not take new credentials for those it knows.
    await tx.run(
        "INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, credential_version, updated_at) "
        "SELECT c.camera_key, c.tenant_id, :key_id, :nonce, :ciphertext, 1 + COALESCE((SELECT s.credential_version "
        "FROM camera_sessions s WHERE s.camera_key = c.camera_key), 0), :now_ms "
        "FROM cameras c WHERE c.camera_key = :camera_key AND c.tenant_id = :tenant_id",
        **columns,
    )


async def _refuse_credentials_elsewhere(tx: Scoped, camera_key: int) -> None:
    """One login serves both streams, so with a login both are at one host."""
    auth = await tx.one(
        "SELECT camera_key FROM camera_auth WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
    )
    if auth is not None and len(await _hosts(tx, camera_key)) > 1:
        raise other_host()


# ---------------------------------------------------------------------------------------------------------------
# Telling the worker
# ---------------------------------------------------------------------------------------------------------------


async def start_again(tx: Scoped, camera_key: int, anew: bool, now_ms: int) -> None:
    """The holder is sent START again. `anew`: another address or login, so what is known of failures is void.

    A camera that is being stopped, or that nobody holds, gets the new values with its next START anyway.
    """
    await tx.run(
        """
        UPDATE camera_sessions SET intent_id = :intent_id, acked_at = NULL, start_sent_at = NULL,
          ready_at = CASE WHEN :anew = 1 THEN NULL ELSE ready_at END,
          reason = CASE WHEN :anew = 1 THEN '' ELSE reason END,
          state = CASE WHEN state = 'ORPHANED' OR (:anew = 0 AND state = 'ACTIVE') THEN state ELSE 'PENDING' END
        WHERE camera_key = :camera_key AND tenant_id = :tenant_id AND worker_key IS NOT NULL AND stop_wanted = 0""",
        camera_key=camera_key,
        intent_id=new_intent_id(),
        anew=int(anew),
    )
    if anew:
        await tx.run(
            """
            UPDATE camera_sessions SET failures = 0, auth_failures = 0, next_attempt_at = NULL, updated_at = :now_ms,
              credential_version = COALESCE((SELECT a.credential_version FROM camera_auth a
                WHERE a.camera_key = camera_sessions.camera_key), 0)
            WHERE camera_key = :camera_key AND tenant_id = :tenant_id""",
            camera_key=camera_key,
            now_ms=now_ms,
        )
