"""Sealed values are found by key and moved to another one, and nothing that changed meanwhile is overwritten."""

import pytest

from camserver.base.credentials import Sealed, key_id, open_sealed, seal
from camserver.store import Store, Tx
from camserver.store.credentials import count_of_keys, count_of_other_keys, of_other_keys, reseal
from tests.store.people_rows import admin_of
from tests.store.stage import NOW_MS, build

pytestmark = pytest.mark.asyncio(loop_scope="module")

OLD, NEW = b"o" * 32, b"n" * 32


async def put_auth(tx: Tx, camera_key: int, tenant_id: int, sealed: Sealed) -> None:
    await tx.run("DELETE FROM camera_auth WHERE camera_key = :camera_key", camera_key=camera_key)
    await tx.run(
        "INSERT INTO camera_auth (camera_key, tenant_id, key_id, nonce, ciphertext, updated_at) "
        "VALUES (:camera_key, :tenant_id, :key_id, :nonce, :ciphertext, :now_ms)",
        camera_key=camera_key,
        tenant_id=tenant_id,
        key_id=sealed.key_id,
        nonce=sealed.nonce,
        ciphertext=sealed.ciphertext,
        now_ms=NOW_MS,
    )


async def test_values_move_to_another_key(fresh_store: Store) -> None:
    store = fresh_store
    stage = await build(store, cameras=5)
    for camera in stage.cameras:
        sealed = seal(OLD, stage.tenant_id, camera.id, camera.id.encode())
        await store.write(put_auth, camera.key, stage.tenant_id, sealed)
    assert await store.read(count_of_other_keys, key_id(NEW)) == 5
    assert await store.read(count_of_keys, (key_id(OLD),)) == 5
    first = await store.read(of_other_keys, "cameras", key_id(NEW), 0, 3)
    second = await store.read(of_other_keys, "cameras", key_id(NEW), first[-1].row_id, 3)
    assert [kept.row_id for kept in (*first, *second)] == sorted(camera.key for camera in stage.cameras)
    moves = tuple(
        (kept, seal(NEW, kept.tenant_id, kept.owner, open_sealed(OLD, kept.tenant_id, kept.owner, kept.sealed)))
        for kept in first
    )
    by = (admin_of(stage.tenant_id), "", NOW_MS)
    # Somebody enters a new password in between: theirs stays.
    camera = next(one for one in stage.cameras if one.key == first[0].row_id)
    theirs = seal(OLD, stage.tenant_id, camera.id, b"changed")
    await store.write(put_auth, camera.key, stage.tenant_id, theirs)
    assert await store.write(reseal, moves, *by) == 2
    assert await store.write(reseal, moves, *by) == 0, "again moves nothing"
    left = await store.read(of_other_keys, "cameras", key_id(NEW), 0, 10)
    assert {kept.row_id for kept in left} == {camera.key, *(kept.row_id for kept in second)}
    assert next(kept.sealed for kept in left if kept.row_id == camera.key) == theirs
    (moved,) = await store.read(of_other_keys, "cameras", key_id(OLD), first[0].row_id, 1)
    assert open_sealed(NEW, moved.tenant_id, moved.owner, moved.sealed) == moved.owner.encode()


async def test_every_place_can_be_asked(fresh_store: Store) -> None:
    for place in ("cameras", "receivers", "browsers"):
        assert await fresh_store.read(of_other_keys, place, "none", 0, 10) == ()
