"""Archives by the API: what may be set, who may set it, and that keys go in and never come out."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from camserver.domain.people import Role
from camserver.store import Store
from tests.fakes.drive.server import account_key, key_file
from tests.rig.clock import ManualClock
from tests.services.web.rig import Browser, LoggedLines, RunningWeb, running_web
from tests.services.web.test_access import set_role

KEY_FILE = key_file(account_key(1))
S3 = {"bucket": "pictures", "endpoint": "http://nas.example:9000", "access_key_id": "AK1"}


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    environ = {"CAMSERVER_ARCHIVE_FOLDERS": str(tmp_path / "mnt")}
    async with running_web(sqlite_store, clock, tmp_path / "data", environ) as running:
        yield running


async def add(browser: Browser, kind: str, config: dict[str, Any], **secrets: str) -> Any:
    return await browser.post(
        "/api/receivers", {"name": f"a {kind}", "kind": kind, "config": config, "secrets": secrets}
    )


async def test_archives_are_added_and_their_keys_are_not_shown(
    web: RunningWeb, tmp_path: Path, logged: LoggedLines
) -> None:
    owner = await web.owner()
    folder = await add(owner, "folder", {"path": str(tmp_path / "mnt" / "archive")})
    bucket = await add(owner, "s3", S3, secret_access_key="the-secret-key-4711")
    drive = await add(owner, "drive", {"folder_id": "abc_DEF-1"}, credentials=KEY_FILE)
    assert [reply.status for reply in (folder, bucket, drive)] == [201, 201, 201], drive.content
    assert bucket.body["config"] == {**S3, "region": "us-east-1", "prefix": "", "path_style": True}
    assert drive.body["secrets"] == {"credentials": {"is_set": True}}
    listed = await owner.get("/api/receivers")
    for told in (listed.content, bucket.content, drive.content, "\n".join(logged.lines).encode()):
        assert b"4711" not in told
        assert b"PRIVATE KEY" not in told


@pytest.mark.parametrize("path", ["relative", "/", "/etc", "/mnt/../etc", "/mnt\x00"])
async def test_a_folder_must_be_one_that_the_settings_allow(web: RunningWeb, path: str) -> None:
    reply = await add(await web.owner(), "folder", {"path": path})
    assert reply.status in (400, 422), reply.content


async def test_a_folder_can_not_be_moved_out(web: RunningWeb, tmp_path: Path) -> None:
    owner = await web.owner()
    made = await add(owner, "folder", {"path": str(tmp_path / "mnt" / "archive")})
    path = f"/api/receivers/{made.body['receiver_uuid']}"
    reply = await owner.ask("PATCH", path, {"config": {"path": "/etc"}})
    assert reply.status == 400
    assert b"[archive] folders" in reply.content


async def test_only_a_system_administrator_adds_folders(web: RunningWeb, tmp_path: Path) -> None:
    owner = await web.owner()
    await web.store.write(set_role, Role.TENANT_ADMIN.value)
    assert (await add(owner, "folder", {"path": str(tmp_path / "mnt" / "archive")})).status == 403
    assert (await add(owner, "s3", S3, secret_access_key="the-secret-key-4711")).status == 201


@pytest.mark.parametrize(
    ("kind", "config", "secrets"),
    [
        ("s3", {**S3, "bucket": "No Bucket"}, {"secret_access_key": "k"}),
        ("s3", {**S3, "endpoint": "ftp://nas"}, {"secret_access_key": "k"}),
        ("s3", {**S3, "prefix": "../x"}, {"secret_access_key": "k"}),
        ("s3", {**S3, "prefix": "a" * 61}, {"secret_access_key": "k"}),
        ("s3", S3, {}),
        ("drive", {"folder_id": "a/b"}, {"credentials": KEY_FILE}),
        ("drive", {"folder_id": "abc", "act_as": "nobody"}, {"credentials": KEY_FILE}),
        ("drive", {"folder_id": "abc"}, {"credentials": '{"type": "authorized_user", "token": "hush-hush"}'}),
        ("drive", {"folder_id": "abc"}, {"credentials": "hush-hush"}),
    ],
)
async def test_what_makes_no_sense_is_refused_without_repeating_it(
    web: RunningWeb, kind: str, config: dict[str, Any], secrets: dict[str, str]
) -> None:
    reply = await add(await web.owner(), kind, config, **secrets)
    assert reply.status == 400, reply.content
    assert b"hush" not in reply.content
