"""Moves a camera to the host where a probe has found it, with its login.

Anywhere else a new host costs the camera its login (see `camera_changes`). Here it stays, because the probe has shown
that the device at that host has the camera's ONVIF reference and takes the login as a digest.
"""

import json

from camserver.base.errors import Conflict
from camserver.base.hosts import at_host
from camserver.store import audit
from camserver.store.camera_changes import locked, put_stream, start_again
from camserver.store.cameras import CameraSummary, Stream, get, host_of
from camserver.store.tx import Scoped

# A proof gets old: addresses are given to other devices.
PROOF_MS = 600_000


async def move(tx: Scoped, camera_id: str, errand_uuid: str, address: str, now_ms: int) -> CameraSummary:
    """Conflict when that probe does not prove anything about this camera as it is now."""
    camera = await locked(tx, camera_id)
    camera_key = camera["camera_key"]
    errand = await tx.one(
        "SELECT request, created_at FROM errands WHERE tenant_id = :tenant_id AND errand_uuid = :errand_uuid "
        "AND camera_key = :camera_key AND kind = 'probe' AND state = 'done' AND done_at > :since",
        errand_uuid=errand_uuid,
        camera_key=camera_key,
        since=now_ms - PROOF_MS,
    )
    host = None if errand is None else json.loads(errand["request"]).get("at")
    if not host:
        raise Conflict(
            "no probe of the last ten minutes has found this camera at another address; look for it again",
            reason="move_not_proven",
        )
    streams = await tx.all(
        "SELECT kind, source_type, url FROM camera_streams WHERE camera_key = :camera_key AND tenant_id = :tenant_id",
        camera_key=camera_key,
    )
    before = sorted({host_of(row["url"]) for row in streams})
    for row in streams:
        await put_stream(tx, camera_key, row["kind"], Stream(row["source_type"], at_host(row["url"], host)))
    await start_again(tx, camera_key, True, now_ms)
    tx.changed(kind="camera", at_ms=now_ms, site_id=camera["site_id"], camera_key=camera_key)
    details = {"from": ", ".join(before), "to": host}
    await audit.add_own(tx, audit.Entry("camera_moved", now_ms, address, "camera", camera_id, details))
    return await get(tx, camera_id)
