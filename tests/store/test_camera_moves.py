import json
from dataclasses import replace

import pytest

from camserver.base.credentials import seal
from camserver.base.errors import Conflict, NotFound
from camserver.domain.people import Principal
from camserver.store import Store, Tx, camera_moves, cameras, errands
from camserver.store.cameras import NewCamera, Stream
from camserver.store.errands import NewErrand
from camserver.store.overrides import Overrides
from tests.store.people_rows import NOW_MS, admin_of, audit_rows, prepare

SEALED = seal(b"k" * 32, 1, "cam_1", b"secret")
CAMERA = NewCamera(
    "cam_1",
    "Gate",
    "main",
    Stream("rtsp", "rtsp://10.0.0.9:8554/1?a=b"),
    Stream("rtsp", "rtsp://10.0.0.9/2"),
    SEALED,
    Overrides(),
)


async def end_errand(tx: Tx, errand_uuid: str, state: str, done_at: int) -> None:
    await tx.run(
        "UPDATE errands SET state = :state, done_at = :done_at WHERE errand_uuid = :errand_uuid",
        state=state,
        done_at=done_at,
        errand_uuid=errand_uuid,
    )


async def fail_often(tx: Tx) -> None:
    await tx.run("UPDATE camera_sessions SET failures = 7, next_attempt_at = :later", later=NOW_MS + 60_000)


async def failures(tx: Tx) -> int:
    row = await tx.one("SELECT failures FROM camera_sessions")
    assert row is not None
    return int(row["failures"])


async def probed(store: Store, who: Principal, camera_id: str = "cam_1", at: str | None = "10.0.0.7") -> str:
    """The number of a probe that ended well."""
    request = {"stream": "main"} if at is None else {"stream": "main", "at": at}
    uuid = f"e-{camera_id}-{at}"
    errand = NewErrand(uuid, "probe", json.dumps(request), NOW_MS + 60_000)
    await store.as_(who).write(errands.ask_camera, camera_id, errand, "1.2.3.4", NOW_MS)
    await store.write(end_errand, uuid, "done", NOW_MS)
    return uuid


async def test_a_camera_moves_with_its_login(store: Store) -> None:
    admin = admin_of((await prepare(store)).tenant_id)
    await store.as_(admin).write(cameras.add, CAMERA, "1.2.3.4", NOW_MS)
    await store.write(fail_often)
    uuid = await probed(store, admin)
    moved = await store.as_(admin).write(camera_moves.move, "cam_1", uuid, "1.2.3.4", NOW_MS)
    assert moved.main.url == "rtsp://10.0.0.7:8554/1?a=b"
    assert moved.sub is not None
    assert moved.sub.url == "rtsp://10.0.0.7/2"
    assert moved.has_credentials
    # What is known of failures at the old address is void.
    assert await store.read(failures) == 0
    assert "camera_moved" in [row[1] for row in await store.read(audit_rows)]


async def test_what_proves_nothing_moves_nothing(store: Store) -> None:
    admin = admin_of((await prepare(store)).tenant_id)
    for camera_id in ("cam_1", "cam_2"):
        await store.as_(admin).write(cameras.add, replace(CAMERA, camera_id=camera_id), "1.2.3.4", NOW_MS)
    of_another = await probed(store, admin, "cam_2")
    in_place = await probed(store, admin, at=None)
    old = await probed(store, admin, at="10.0.0.7")
    await store.write(end_errand, old, "done", NOW_MS - camera_moves.PROOF_MS)
    failed = await probed(store, admin, at="10.0.0.8")
    await store.write(end_errand, failed, "failed", NOW_MS)
    for uuid in (of_another, in_place, old, failed, "unknown"):
        with pytest.raises(Conflict):
            await store.as_(admin).write(camera_moves.move, "cam_1", uuid, "1.2.3.4", NOW_MS)
    with pytest.raises(NotFound):
        await store.as_(admin).write(camera_moves.move, "none", of_another, "1.2.3.4", NOW_MS)
    camera = await store.as_(admin).read(cameras.get, "cam_1")
    assert camera.main.url == CAMERA.main.url
