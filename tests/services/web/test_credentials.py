"""The key of stored passwords is replaced over the API, step by step, with stops anywhere."""

import json

import pytest

from camserver.base.credentials import Sealed, key_id, open_sealed, seal
from camserver.config import make_secrets
from camserver.services.web import key_rotation
from camserver.services.web.messages import _JA_BY_REASON
from camserver.store import Tx
from tests.services.web.rig import Browser, RunningWeb
from tests.store.people_rows import audit_rows

PATH = "/api/credentials/rotate"


async def auth_rows(tx: Tx) -> list[tuple[int, str, Sealed, int]]:
    rows = await tx.all(
        "SELECT a.tenant_id, c.camera_id, a.key_id, a.nonce, a.ciphertext, a.credential_version FROM camera_auth a "
        "JOIN cameras c ON c.camera_key = a.camera_key ORDER BY c.camera_id"
    )
    return [
        (
            row["tenant_id"],
            row["camera_id"],
            Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"])),
            row["credential_version"],
        )
        for row in rows
    ]


async def set_auth(tx: Tx, camera_id: str, sealed: Sealed) -> None:
    await tx.run(
        "UPDATE camera_auth SET key_id = :key_id, nonce = :nonce, ciphertext = :ciphertext WHERE camera_key = "
        "(SELECT camera_key FROM cameras WHERE camera_id = :camera_id)",
        camera_id=camera_id,
        key_id=sealed.key_id,
        nonce=sealed.nonce,
        ciphertext=sealed.ciphertext,
    )


async def furnished(web: RunningWeb, cameras: int = 5) -> Browser:
    owner = await web.owner()
    for number in range(cameras):
        source = {"url": f"rtsp://192.0.2.{number + 1}/", "user": "viewer", "password": f"pass-{number}"}
        reply = await owner.post("/api/cameras", {"camera_id": f"cam_{number}", "name": "c", "source": source})
        assert reply.status == 201, reply.content
    hook = {"name": "hook", "kind": "webhook", "secrets": {"url": "https://hook.example/x"}}
    assert (await owner.post("/api/receivers", hook)).status == 201
    return owner


async def rotate(owner: Browser) -> list[dict[str, object]]:
    steps: list[dict[str, object]] = []
    cursor = None
    while True:
        reply = await owner.post(PATH, {"cursor": cursor})
        assert reply.status == 200, reply.content
        steps.append(reply.body)
        cursor = reply.body["next_cursor"]
        if cursor is None:
            return steps


async def passwords(web: RunningWeb) -> set[tuple[str, str]]:

    keys = make_secrets(web.settings).credential_keys  # as a process that starts now
    return {
        (camera_id, json.loads(open_sealed(keys, tenant_id, camera_id, sealed))["password"])
        for tenant_id, camera_id, sealed, _ in await web.store.read(auth_rows)
    }


EXPECTED = {(f"cam_{number}", f"pass-{number}") for number in range(5)}


async def test_everything_moves_to_a_new_key_and_stays_readable(
    web_on_each: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = web_on_each
    monkeypatch.setattr(key_rotation, "STEP_ROWS", 2)
    owner = await furnished(web)
    before = await web.store.read(auth_rows)
    # Stopped after the first step: both keys are there, and everything can be read.
    first = (await owner.post(PATH, {})).body
    assert (first["made_key"], first["moved"]) == (True, 2)
    assert await passwords(web) == EXPECTED
    steps = await rotate(owner)
    assert not any(step["made_key"] for step in steps), "the same rotation goes on"
    assert (steps[-1]["left"], sum(int(str(step["unreadable"])) for step in steps)) == (0, 0)
    after = await web.store.read(auth_rows)
    assert {sealed.key_id for _, _, sealed, _ in after} == {first["key_id"]}
    assert {sealed.key_id for _, _, sealed, _ in before} != {first["key_id"]}
    assert [version for *_, version in after] == [version for *_, version in before], "no password changed"
    assert await passwords(web) == EXPECTED
    assert [row[1] for row in await web.store.read(audit_rows)].count("credential_key_replaced") == 1
    again = await rotate(owner)
    assert again[0]["made_key"] is True
    assert await passwords(web) == EXPECTED


async def test_what_can_not_be_read_is_counted_and_left(web: RunningWeb) -> None:
    owner = await furnished(web, 2)
    lost = seal(b"x" * 32, 1, "cam_0", b"{}")
    await web.store.write(set_auth, "cam_0", lost)
    for _ in range(2):  # nor does it keep later rotations from being made
        steps = await rotate(owner)
        assert steps[0]["made_key"] is True
        assert (sum(int(str(step["unreadable"])) for step in steps), steps[-1]["left"]) == (1, 1)
    assert (await web.store.read(auth_rows))[0][2] == lost
    assert key_id(b"x" * 32) == lost.key_id


async def test_only_positions_that_were_given_are_taken(web: RunningWeb) -> None:
    owner = await web.owner()
    for cursor in ("nowhere:1", "cameras:x", "cameras", "cameras:" + "9" * 30):
        reply = await owner.post(PATH, {"cursor": cursor})
        assert (reply.status, reply.body["details"]["reason"]) == (400, "bad_cursor")
    assert "key_not_ours" in _JA_BY_REASON
