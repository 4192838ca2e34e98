"""The audit log over HTTP: who reads it, what a check says, and which looks are in it."""

import json
from typing import Any

import pytest

from camserver.base.errors import StoreUnavailable
from camserver.config.secret_files import audit_key_bytes
from camserver.domain.audit import SealKey
from camserver.domain.audit_files import FileCheck
from camserver.domain.people import Role
from camserver.services.dispatcher.sealing import Sealer
from camserver.services.web import audit_check
from camserver.services.web.recent_looks import RecentLooks
from camserver.store import Tx, audit, audit_anchors, tenants
from tests.rig.unguarded import tamper
from tests.services.web.rig import LOGIN, Browser, RunningWeb
from tests.services.web.test_access import set_role
from tests.services.web.test_cases import furnish, new_case
from tests.services.web.test_media import link, opened, owner_with_frame
from tests.store.people_rows import add_event, audit_rows

MINUTE_MS = 60_000


def key_of(web: RunningWeb) -> SealKey:
    key = audit_key_bytes(web.settings)
    assert key is not None
    return SealKey(key)


async def sealed(web: RunningWeb) -> None:
    sealer = Sealer(web.store, web.clock, key_of(web), web.settings.server.data_dir, "test", _token="held")
    await sealer.turn()


async def tenant_of(web: RunningWeb) -> int:
    return (await web.store.read(audit_rows))[0][0]


async def verified(who: Browser, **asked: object) -> Any:
    reply = await who.post("/api/audit/verify", asked)
    assert reply.status == 200, reply.content
    return reply.body


async def actions(web: RunningWeb, *without: str) -> list[str]:
    """What is in the log since the camera was added."""
    found = [row[1] for row in await web.store.read(audit_rows)]
    return [one for one in found if one not in ("set_up", "sign_in", "camera_added", *without)]


# Reading


async def test_what_was_done_is_read_with_names_and_filters(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    await web.browser().get("/api/audit", web.local_admin)
    listed = (await owner.get("/api/audit")).body
    assert [(one["who"], one["action"], one["object_id"]) for one in listed["entries"][:1]] == [
        (LOGIN, "camera_added", "cam_1")
    ]
    assert listed["entries"][0]["batch_no"] is None
    first = (await owner.get("/api/audit?limit=1")).body
    second = (await owner.get(f"/api/audit?limit=1&before={first['next_before']}")).body
    assert first["entries"][0]["entry_id"] > second["entries"][0]["entry_id"]
    for query, count in (
        (f"who={LOGIN}&action=camera_added", 1),
        ("who=nobody", 0),
        ("object_kind=camera&object_id=cam_1", 1),
        (f"from={web.clock.now_ms() + 1}", 0),
        (f"to={web.clock.now_ms()}", 0),
    ):
        assert len((await owner.get(f"/api/audit?{query}")).body["entries"]) == count, query


async def test_people_are_named_by_their_login_also_where_something_was_done_to_them(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    made = await owner.post("/api/users", {"login": "kato"})
    assert (await owner.ask("PATCH", "/api/users/kato", {"display_name": "Kato"})).status == 200
    assert (await owner.post("/api/users", {"login": "other"})).status == 201
    asked = "/api/audit?object_kind=user&object_id="
    by_login = (await owner.get(asked + "Kato")).body["entries"]
    assert [(one["action"], one["object_name"]) for one in by_login] == [
        ("user_changed", "kato"),
        ("password_link_made", "kato"),
        ("user_added", "kato"),
    ]
    assert (await owner.get(asked + made.body["user"]["user_uuid"])).body["entries"] == by_login
    assert (await owner.get(asked + by_login[0]["object_id"])).body["entries"] == by_login
    assert (await owner.get(asked + "nobody")).body["entries"] == []
    assert (await owner.ask("DELETE", "/api/users/kato", None)).status == 204
    removed = (await owner.get(asked + "kato")).body["entries"]
    assert [(one["action"], one["object_name"]) for one in removed[:1]] == [("user_removed", "kato")]
    [of_camera] = (await owner.get("/api/audit?action=camera_added")).body["entries"]
    assert of_camera["object_name"] is None


async def test_only_those_who_may_read_it_do(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    asked = [
        ("GET", "/api/audit"),
        ("GET", "/api/audit/seals"),
        ("GET", "/api/audit/chains"),
        ("GET", "/api/audit/export"),
        ("POST", "/api/audit/verify"),
    ]
    for role in (Role.VIEWER, Role.SITE_MANAGER):
        await web.store.write(set_role, role.value)
        for method, path in asked:
            assert (await owner.ask(method, path, {} if method == "POST" else None)).status == 403, (role, path)
    await web.store.write(set_role, Role.TENANT_ADMIN.value)
    for method, path in asked:
        assert (await owner.ask(method, path, {} if method == "POST" else None)).status == 200, path
    for method, path in asked[:2] + asked[3:]:
        body = {"installation": True} if method == "POST" else None
        query = "" if method == "POST" else "?installation=true"
        assert (await owner.ask(method, path + query, body)).status == 403, path
    assert [one["tenant"] for one in (await owner.get("/api/audit/chains")).body["chains"]] == ["default"]
    # Whether there is such a tenant is none of their business.
    assert (await owner.post("/api/audit/verify", {"tenant": "other"})).status == 403
    await web.store.write(set_role, Role.SYSTEM_ADMIN.value)
    assert (await owner.post("/api/audit/verify", {"tenant": "other"})).status == 404
    assert [one["tenant"] for one in (await owner.get("/api/audit/chains")).body["chains"]] == [None, "default"]


async def test_a_failed_sign_in_under_a_name_nobody_has_is_in_the_installations_log(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    await web.browser().sign_in("nobody", "wrong password")
    assert "nobody" not in json.dumps((await owner.get("/api/audit")).body)
    listed = (await owner.get("/api/audit?installation=true")).body["entries"]
    assert [(one["who"], one["action"]) for one in listed] == [("system", "sign_in_failed")]


# Checking


async def test_a_log_that_nobody_touched_is_whole(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    await sealed(web)
    found = await verified(owner)
    assert (found["batches"], found["findings"], found["next_after"]) == (1, [], None)
    assert found["key_id"] == key_of(web).key_id
    assert (await verified(owner, with_key=False))["key_id"] is None
    [seal] = (await owner.get("/api/audit/seals")).body["seals"]
    assert (seal["batch_no"], seal["entries"]) == (1, found["entries"])
    anchors = audit_anchors.read(web.settings.server.data_dir)
    assert anchors[await tenant_of(web)].hash == seal["hash"]


async def test_a_changed_entry_is_named_with_what_to_do(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    await sealed(web)
    await web.store.write(tamper, "UPDATE audit_log SET address = 'elsewhere' WHERE action = 'camera_added'")
    [finding] = (await verified(owner))["findings"]
    [entry] = (await owner.get("/api/audit?action=camera_added")).body["entries"]
    assert (finding["wrong"], finding["batch_no"]) == ("entry_changed", 1)
    assert finding["entry_ids"] == [entry["entry_id"]]
    assert str(entry["entry_id"]) in finding["message"]
    assert "backup" in finding["what_to_do"]


async def test_seals_that_were_taken_away_are_missed(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    await sealed(web)
    await web.store.write(tamper, "DELETE FROM audit_log", "DELETE FROM audit_seals")
    [finding] = (await verified(owner))["findings"]
    assert (finding["wrong"], finding["batch_no"]) == ("chain_cut", 1)


async def test_a_long_chain_is_checked_in_parts(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_check, "PART_BATCHES", 2)
    owner = await owner_with_frame(web)
    tenant_id = await tenant_of(web)
    for number in range(5):
        await web.store.write(
            audit.add, tenant_id, None, audit.Entry("did", web.clock.now_ms(), "", "x", str(number))
        )
        await sealed(web)
    await web.store.write(tamper, "UPDATE audit_log SET action = 'x' WHERE batch_no = 4")
    after: int | None = 0
    wrong: list[int] = []
    parts = 0
    while after is not None:
        part = await verified(owner, after_batch=after)
        wrong += [one["batch_no"] for one in part["findings"]]
        after = part["next_after"]
        parts += 1
    assert (wrong, parts) == ([4], 3)


async def test_the_log_is_taken_away_as_a_file_that_can_be_checked(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    await sealed(web)
    reply = await owner.get("/api/audit/export")
    assert (reply.status, reply.headers["Cache-Control"]) == (200, "no-store")
    assert "attachment" in reply.headers["Content-Disposition"]
    lines = reply.content.decode().splitlines()
    assert json.loads(lines[2])["who"] == LOGIN
    checking = FileCheck(key_of(web), web.clock.now_ms())
    assert [one for line in lines for one in checking.take(line)] == []
    assert (checking.ended, checking.seals, checking.tenant) == (True, 1, "default")
    assert (await actions(web))[-1] == "audit_exported"


# Looks at evidence


async def test_a_full_picture_is_a_look_and_a_small_one_is_not(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    for path in ("/api/frames/f1/picture", "/api/cameras/cam_1/latest.jpg", "/api/frames/f1", "/api/events"):
        assert (await owner.get(path)).status == 200, path
    assert await actions(web) == []
    for _ in range(3):
        assert (await owner.get("/api/frames/f1/picture?kind=full")).status == 200
    assert await actions(web) == ["picture_opened"]
    await web.clock.advance(10 * MINUTE_MS)
    assert (await owner.get("/api/frames/f1/picture?kind=full")).status == 200
    assert await actions(web) == ["picture_opened"] * 2


async def test_a_clip_that_is_played_in_parts_is_one_look(web: RunningWeb) -> None:
    owner = await furnish(web)
    for asked in ("bytes=0-1", "bytes=2-9", "bytes=10-"):
        assert (await owner.get("/api/events/e1/clip", {"Range": asked})).status == 206
    assert await actions(web) == ["clip_opened"]


async def test_links_are_logged_when_they_are_made_and_when_they_are_opened(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await owner_with_frame(web)
    url = await link(owner, kind="infer")
    for _ in range(2):
        assert (await opened(web, url)).status == 200
    assert (await opened(web, url + "x")).status == 403
    assert await actions(web) == ["media_link_made", "media_link_opened"]
    listed = (await owner.get("/api/audit?who=link")).body["entries"]
    assert [(one["who"], one["object_id"], one["details"]) for one in listed] == [("link", "f1", {"kind": "infer"})]


async def test_what_is_for_investigation_is_a_look_for_those_who_see_it(web: RunningWeb) -> None:
    tags = (("appearance.face_visible", "investigation_only"),)
    owner = await owner_with_frame(web, tags=tags)
    await web.store.write(add_event, await tenant_of(web), "cam_1", "e1", web.clock.now_ms(), tags)
    for _ in range(2):
        for path in ("/api/frames/f1", "/api/events/e1", "/api/events", "/api/events?limit=1"):
            assert (await owner.get(path)).status == 200
    assert await actions(web) == ["investigation_opened", "investigation_opened", "investigation_listed"]
    await web.store.write(set_role, Role.VIEWER.value)
    await web.clock.advance(20 * MINUTE_MS)
    for path in ("/api/frames/f1", "/api/events/e1", "/api/events"):
        assert (await owner.get(path)).status == 200
    assert len(await actions(web)) == 3


async def test_looks_at_a_case_are_in_its_log_and_folded(web: RunningWeb) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"))
    before = len(await actions(web))
    for _ in range(2):
        for path in (
            f"/api/cases/{case}",
            f"/api/cases/{case}/items",
            "/api/frames/f2/picture",
            "/api/frames/f2/picture?kind=full",
            "/api/events/e1/clip",
        ):
            assert (await owner.get(path)).status == 200, path
    assert (await actions(web))[before:] == ["case_opened", *["case_media_opened"] * 3]
    listed = (await owner.get(f"/api/audit?object_kind=case&object_id={case}&action=case_media_opened")).body
    assert [one["details"] for one in listed["entries"]] == [
        {"kind": "clip", "uuid": "e1"},
        {"kind": "full", "uuid": "f2"},
        {"kind": "infer", "uuid": "f2"},
    ]


async def test_evidence_that_can_not_be_logged_is_not_shown_and_ordinary_pictures_are(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await furnish(web)
    url = await link(owner, frame_uuid="f1", kind="infer")
    case = await new_case(owner, ("frame", "f1"))

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(web.store, "write", full)
    for path in (
        "/api/frames/f2/picture?kind=full",
        "/api/frames/f1/picture",
        "/api/events/e1/clip",
        f"/api/cases/{case}",
        f"/api/cases/{case}/export",
        "/api/audit/export",
    ):
        assert (await owner.get(path)).status == 503, path
    assert (await opened(web, url)).status in (403, 503), "it is a case's by now"
    for path in ("/api/frames/f2/picture", "/api/frames/f2", "/api/events", "/api/cameras", "/api/audit"):
        assert (await owner.get(path)).status == 200, path


async def test_a_link_that_can_not_be_logged_opens_nothing(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await owner_with_frame(web)
    url = await link(owner, kind="infer")

    async def full(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(web.store, "write", full)
    assert (await opened(web, url)).status == 503


def test_what_was_noted_a_moment_ago_is_remembered_within_bounds() -> None:
    looks = RecentLooks(size_max=2)
    looks.add(("a",), 1000)
    assert looks.has(("a",), 1000)
    assert looks.has(("a",), 1000 + 10 * MINUTE_MS - 1)
    assert not looks.has(("a",), 1000 + 10 * MINUTE_MS)
    assert not looks.has(("a",), 999), "a clock that was set back"
    looks.add(("b",), 1000)
    looks.add(("c",), 1000)
    assert [looks.has((name,), 1001) for name in "abc"] == [False, True, True]


async def test_anchors_that_can_not_be_read_are_told_and_keep_nobody_from_checking(web: RunningWeb) -> None:
    owner = await owner_with_frame(web)
    await sealed(web)
    (web.settings.server.data_dir / audit_anchors.FILE_NAME).write_text("{")
    await sealed(web)
    for asked in ({}, {"installation": True}):
        [finding] = (await verified(owner, **asked))["findings"]
        assert finding["wrong"] == "anchors_unreadable"
        assert "audit-anchors.json" in finding["message"]
    await web.store.write(tamper, "UPDATE audit_log SET address = 'elsewhere' WHERE action = 'camera_added'")
    found = (await verified(owner))["findings"]
    assert [one["wrong"] for one in found] == ["anchors_unreadable", "entry_changed"]


async def test_a_tenant_whose_log_vanished_is_missed_unless_somebody_asked_to_erase_it(
    web_on_each: RunningWeb,
) -> None:
    web = web_on_each
    owner = await web.owner()
    numbers = []
    for name in ("acme", "beta"):
        assert (await owner.post("/api/tenants", {"name": name, "admin": f"{name}-admin"})).status == 201
        number = await web.store.read(tenants.find, name)
        assert number is not None
        await web.store.write(audit.add, number, None, audit.Entry("did", web.clock.now_ms()))
        numbers.append(number)
    await sealed(web)
    assert (await verified(owner, installation=True))["findings"] == []
    assert (await owner.ask("DELETE", "/api/tenants/beta", {"confirm": "beta"})).status == 202
    # What whoever can write to the database does: they mark a tenant, and the triggers let go.
    await web.store.write(_vanish, *numbers)
    for _ in range(2):
        [finding] = (await verified(owner, installation=True))["findings"]
        assert (finding["wrong"], finding["batch_no"]) == ("chain_gone", 1)
        assert f"number {numbers[0]}," in finding["message"]
        await sealed(web)


async def _vanish(tx: Tx, *numbers: int) -> None:
    for number in numbers:
        await tx.run(f"UPDATE tenants SET erasing_at = 1 WHERE tenant_id = {number}")
        for table in ("audit_log", "audit_seals"):
            await tx.run(f"DELETE FROM {table} WHERE tenant_id = {number}")
