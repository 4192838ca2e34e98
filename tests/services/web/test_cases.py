"""Cases over the API: filled, held, closed, exported as a ZIP whose every byte can be checked."""

import asyncio
import csv
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from camserver.base import signing
from camserver.base.secrets import Secret
from camserver.clients.case_file import check_case_file
from camserver.config.secret_files import CASE_KEY, make_secrets
from camserver.domain.picture_keys import Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.services.web.calls import EXPORTS_MAX
from camserver.services.web.case_export import CaseExport
from camserver.services.web.zip_stream import CHUNK_BYTES
from camserver.store import check
from tests.rig.polling import until
from tests.services.web.rig import Browser, RunningWeb
from tests.services.web.test_access import set_role
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, audit_rows, execute

CAMERA = {"camera_id": "cam_1", "name": "=Gate <b>", "source": {"url": "test://moving"}}
PICTURE = b"\xff\xd8" + b"p" * 1000
CLIP = b"c" * (CHUNK_BYTES + 5)
CLIP_KEY = "e1/t1/errands/d1/x.ab.mp4"
RESULT = json.dumps({"bboxes": [{"x1": 0.1, "y1": 0.2, "x2": 0.5, "y2": 0.6, "label": "<person>", "conf": 0.9}]})
_CLIP = """
INSERT INTO clips (clip_uuid, tenant_id, camera_key, event_id, state, reason, object_key, object_bytes, epoch_id,
  begin_at, end_at, codec, width, height, created_at)
VALUES ('clip-1', :tenant_id, 1, :event_id, 'ready', '', :object_key, :object_bytes, 1, 1000, 16000, 'h264', 1280,
  720, 0)"""


async def furnish(web: RunningWeb) -> Browser:
    """Somebody signed in; frames f1 (alone), f2 and f3 of event e1 with a clip, all with pictures."""
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    at_ms = web.clock.now_ms()
    event = EventRow(last_seen_at=at_ms + 1000)
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", at_ms, (), event)
    size = len(PICTURE)
    for uuid, later, of in (("f1", 500, None), ("f2", 0, event_id), ("f3", 1000, event_id)):
        row = FrameRow(
            tenant_id,
            "cam_1",
            at_ms + later,
            uuid,
            infer_bytes=size,
            full_bytes=size,
            event_id=of,
            result_json=RESULT,
        )
        await web.store.write(add_frame, row)
        for kind in Kind:
            await web.objects.put(frame_key(1, tenant_id, 1, at_ms + later, uuid, kind), PICTURE)
    clip = {"tenant_id": tenant_id, "event_id": event_id, "object_key": CLIP_KEY, "object_bytes": len(CLIP)}
    await web.store.write(execute, _CLIP, clip)
    await web.objects.put(CLIP_KEY, CLIP)
    return owner


async def new_case(who: Browser, *items: tuple[str, str]) -> str:
    made = await who.post("/api/cases", {"title": "Bicycle", "note": "Seen <twice>"})
    assert made.status == 201, made.content
    uuid: str = made.body["case_uuid"]
    for kind, object_uuid in items:
        added = await who.post(f"/api/cases/{uuid}/items", {"kind": kind, "uuid": object_uuid})
        assert (added.status, added.body) == (200, {"added": True}), added.content
    return uuid


async def actions(web: RunningWeb, case_uuid: str) -> list[str]:
    return [row[1] for row in await web.store.read(audit_rows) if row[3] == case_uuid]


async def test_a_case_is_filled_read_and_closed(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"), ("frame", "f1"), ("clip", "e1"))
    again = await owner.post(f"/api/cases/{case}/items", {"kind": "frame", "uuid": "f1"})
    assert again.body == {"added": False}
    detail = (await owner.get(f"/api/cases/{case}")).body
    assert (detail["title"], detail["state"], detail["hold"], detail["items"]) == ("Bicycle", "open", False, 3)
    assert [(note["body"], note["by"]) for note in detail["note_list"]] == [("Seen <twice>", "owner")]
    page = (await owner.get(f"/api/cases/{case}/items?limit=2")).body
    rest = (await owner.get(f"/api/cases/{case}/items?after={page['next_after']}")).body
    items = page["items"] + rest["items"]
    assert [(item["kind"], item["uuid"], item["held"], item["gone"]) for item in items] == [
        ("event", "e1", True, False),
        ("frame", "f1", True, False),
        ("clip", "e1", True, False),
    ]
    assert (await owner.get("/api/frames/f2")).body["retention_class"] == "case"
    assert (await owner.ask("DELETE", f"/api/cases/{case}/items/frame/f1")).status == 204
    assert (await owner.get("/api/frames/f1")).body["retention_class"] == "normal"
    closed = await owner.ask("PATCH", f"/api/cases/{case}", {"state": "closed"})
    assert (closed.status, closed.body["state"], closed.body["closed_at"]) == (200, "closed", web.clock.now_ms())
    assert (await owner.get("/api/frames/f2")).body["retention_class"] == "normal"
    listed = (await owner.get("/api/cases?state=closed")).body["cases"]
    assert [one["case_uuid"] for one in listed] == [case]
    assert (await owner.get("/api/cases?state=open")).body["cases"] == []
    assert await actions(web, case) == [
        "case_created",
        "case_note_added",
        "case_item_added",
        "case_item_added",
        "case_item_added",
        "case_opened",
        "case_item_removed",
        "case_closed",
    ]


@pytest.mark.parametrize(
    ("change", "reason", "told"),
    [({"hold": True}, "case_on_hold", "保全中"), ({"state": "closed"}, "case_closed", "終了しています")],
)
async def test_a_case_that_is_closed_or_on_hold_gives_nothing_away(
    web: RunningWeb, change: dict[str, Any], reason: str, told: str
) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("frame", "f1"))
    await owner.ask("PATCH", f"/api/cases/{case}", change)
    headers = {**web.local_admin, "Accept-Language": "ja"}
    refused = await web.browser().ask("DELETE", f"/api/cases/{case}/items/frame/f1", headers=headers)
    assert (refused.status, refused.body["details"]["reason"]) == (409, reason)
    assert told in refused.body["message"]
    assert (await owner.get(f"/api/cases/{case}")).body["items"] == 1


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/cases", {"title": "  "}, 400),
        ("POST", "/api/cases/{case}/items", {"kind": "frame", "uuid": "nobody"}, 404),
        ("POST", "/api/cases/{case}/items", {"kind": "camera", "uuid": "f1"}, 400),
        ("POST", "/api/cases/none/items", {"kind": "frame", "uuid": "f1"}, 404),
        ("DELETE", "/api/cases/{case}/items/frame/f3", None, 404),
        ("PATCH", "/api/cases/{case}", {}, 400),
        ("POST", "/api/cases/{case}/notes", {"body": " "}, 400),
        ("GET", "/api/cases/none/export", None, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(
    web: RunningWeb, method: str, path: str, body: dict[str, Any] | None, status: int
) -> None:
    owner = await furnish(web)
    case = await new_case(owner)
    reply = await owner.ask(method, path.format(case=case), body, headers={"Accept-Language": "ja"})
    assert reply.status == status, reply.content


async def test_evidence_of_a_case_is_for_those_who_investigate_and_each_look_is_noted(web: RunningWeb) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"))
    link = {"frame_uuid": "f2", "kind": "infer", "ttl_sec": 60}
    assert (await owner.post("/api/media/link", link)).body["details"]["reason"] == "case_link"
    assert (await owner.post("/api/media/link", {**link, "kind": "clip"})).status == 403
    assert (await owner.get("/api/frames/f2/picture")).status == 200
    assert (await owner.get("/api/events/e1/clip")).status == 200
    assert (await owner.get("/api/frames/f1/picture")).status == 200
    looked = [row for row in await web.store.read(audit_rows) if row[1] == "case_media_opened"]
    assert [(row[3], row[4]) for row in looked] == [
        (case, {"kind": "infer", "uuid": "f2"}),
        (case, {"kind": "clip", "uuid": "e1"}),
    ]
    await web.store.write(set_role, "viewer")
    assert (await owner.get("/api/cases")).status == 403
    assert (await owner.get("/api/frames/f2/picture")).body["details"]["reason"] == "case_media"
    assert (await owner.get("/api/frames/f1/picture")).status == 200
    latest = await owner.get("/api/cameras/cam_1/latest.jpg")
    assert latest.headers["ETag"] == '"f1.infer"', "the newest that is no case's"


async def exported(web: RunningWeb, who: Browser, case: str, folder: Path, language: str = "en") -> Path:
    reply = await who.get(f"/api/cases/{case}/export", {"Accept-Language": language})
    assert (reply.status, reply.headers["Content-Type"]) == (200, "application/zip")
    assert f"case-{case}.zip" in reply.headers["Content-Disposition"]
    path = folder / "case.zip"
    path.write_bytes(reply.content)
    return path


def own_key(web: RunningWeb) -> str:
    return signing.public_key(make_secrets(web.settings).case_key_bytes())


async def test_an_export_holds_everything_and_proves_it(web_on_each: RunningWeb, tmp_path: Path) -> None:
    web = web_on_each
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"), ("frame", "f1"), ("frame", "f2"), ("clip", "e1"))
    path = await exported(web, owner, case, tmp_path)
    checked = check_case_file(path, own_key(web))
    assert checked.differences == ()
    assert checked.manifest is not None
    assert checked.manifest.missing == []
    assert [line.action for line in checked.manifest.audit][-1] == "case_export_begun"
    assert (await actions(web, case))[-1] == "case_exported"
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        names = file.namelist()
        pictures = [name for name in names if name.startswith("pictures/cam_1/")]
        assert len(pictures) == 6, "three frames with two pictures each, none twice"
        [clip] = [name for name in names if name.startswith("clips/cam_1/")]
        assert file.read(clip) == CLIP
        assert {file.read(name) for name in pictures} == {PICTURE}
        frames = json.loads(file.read("frames.json"))
        assert [frame["frame_uuid"] for frame in frames] == ["f2", "f3", "f1"]
        events = list(csv.DictReader(io.StringIO(file.read("events.csv").decode())))
        assert (events[0]["event_uuid"], events[0]["camera_name"]) == ("e1", "'=Gate <b>")
        assert json.loads(file.read("notes.json"))[0]["body"] == "Seen <twice>"
        page = file.read("index.html").decode()
    assert page.count("<figure>") == 3
    assert "Seen &lt;twice&gt;" in page
    assert "&lt;person&gt;" in page
    assert "left:10.00%;top:20.00%;width:40.00%;height:40.00%" in page
    assert "<script" not in page
    assert '<video controls preload="none"' in page


async def test_the_page_of_an_export_is_in_the_readers_language(web: RunningWeb, tmp_path: Path) -> None:
    await furnish(web)
    admin = web.browser()
    admin.csrf_token = None
    headers = {**web.local_admin, "Accept-Language": "ja"}
    case = (await admin.post("/api/cases", {"title": "自転車"}, headers)).body["case_uuid"]
    await admin.post(f"/api/cases/{case}/items", {"kind": "event", "uuid": "e1"}, headers)
    reply = await admin.get(f"/api/cases/{case}/export", headers)
    with zipfile.ZipFile(io.BytesIO(reply.content)) as file:
        page = file.read("index.html").decode()
    assert '<html lang="ja">' in page
    assert "人を検知" in page
    assert "自転車" in page


async def test_what_is_missing_is_named_and_never_left_out(web: RunningWeb, tmp_path: Path) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"), ("frame", "f1"))
    tenant_id = (await web.store.read(audit_rows))[0][0]
    key = frame_key(1, tenant_id, 1, web.clock.now_ms(), "f2", Kind.FULL)
    await web.objects.delete(key)
    await web.objects.delete(CLIP_KEY)
    await web.store.write(execute, "DELETE FROM frames WHERE frame_uuid = 'f1'", {})
    path = await exported(web, owner, case, tmp_path)
    checked = check_case_file(path, own_key(web))
    assert checked.manifest is not None
    assert checked.differences == ()
    assert [(line.kind, line.uuid, line.reason) for line in checked.manifest.missing] == [
        ("clip", "e1", "no_object"),
        ("picture", "f2", "no_object"),
        ("frame", "f1", "gone"),
    ]
    gone = await owner.get("/api/frames/f2/picture?kind=full")
    assert (gone.status, gone.body["details"]["reason"]) == (404, "picture_gone")
    assert key not in gone.content.decode()


def rewritten(path: Path, change: dict[str, bytes | None], more: dict[str, bytes] | None = None) -> Path:
    """The same ZIP with other contents: None leaves a file out."""
    made = path.with_name("forged.zip")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = change.get(name, old.read(name))
            if data is not None:
                new.writestr(name, data)
        for name, data in (more or {}).items():
            new.writestr(name, data)
    return made


async def test_whatever_differs_is_found(web: RunningWeb, tmp_path: Path) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"))
    path = await exported(web, owner, case, tmp_path)
    key = own_key(web)
    with zipfile.ZipFile(path) as file:
        picture = next(name for name in file.namelist() if name.endswith(".full.jpg"))
        manifest = file.read("manifest.json")

    def found(forged: Path, trusted: str | None = key) -> list[tuple[str, str]]:
        return [(one.kind, one.path) for one in check_case_file(forged, trusted).differences]

    assert found(rewritten(path, {picture: PICTURE[:-1] + b"q"})) == [("changed", picture)]
    assert found(rewritten(path, {picture: PICTURE + b"q"})) == [("changed", picture)]
    assert found(rewritten(path, {picture: None})) == [("missing", picture)]
    assert found(rewritten(path, {}, {"more.txt": b"x"})) == [("added", "more.txt")]
    assert found(rewritten(path, {"manifest.sig": None})) == [("unsigned", "manifest.sig")]
    other = manifest.replace(b"Bicycle", b"Boat")
    assert ("forged", "manifest.json") in found(rewritten(path, {"manifest.json": other}))
    assert found(rewritten(path, {"manifest.json": None})) == [("missing", "manifest.json")]
    stranger = b"\x01" * 32
    signed = json.dumps(
        {
            "algorithm": "Ed25519",
            "public_key": signing.public_key(stranger),
            "signature": signing.sign(stranger, manifest),
        }
    ).encode()
    assert found(rewritten(path, {"manifest.sig": signed})) == [("other_key", "manifest.sig")]
    assert found(path, None) == [("unknown_key", "manifest.sig")]
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert found(path)[0][0] == "no_zip"


async def test_an_export_never_holds_the_case_in_memory(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent at a time stays small, however large the clip is."""
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"))
    sizes: list[int] = []
    asked: list[int] = []
    real_chunks, real_range = CaseExport.chunks, LocalObjects.get_range

    async def watched(self: CaseExport) -> Any:
        async for chunk in real_chunks(self):
            sizes.append(len(chunk))
            yield chunk

    async def ranged(self: LocalObjects, key: str, begin: int, length: int) -> bytes:
        asked.append(length)
        return await real_range(self, key, begin, length)

    monkeypatch.setattr(CaseExport, "chunks", watched)
    monkeypatch.setattr(LocalObjects, "get_range", ranged)
    assert (await owner.get(f"/api/cases/{case}/export")).status == 200
    assert max(sizes) < CHUNK_BYTES + 10_000
    assert asked == [CHUNK_BYTES, CHUNK_BYTES]


async def test_only_so_many_cases_are_exported_at_once(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await furnish(web)
    case = await new_case(owner, ("event", "e1"))
    may_go_on = asyncio.Event()
    begun: list[str] = []
    real_chunks, real_close = CaseExport.chunks, CaseExport.close

    async def held(self: CaseExport) -> Any:
        begun.append(self.case.case_uuid)
        await may_go_on.wait()
        async for chunk in real_chunks(self):
            yield chunk

    monkeypatch.setattr(CaseExport, "chunks", held)
    asked = [asyncio.ensure_future(owner.get(f"/api/cases/{case}/export")) for _ in range(12)]
    # One person has half of the places, of all that come together.
    await until(lambda: sum(one.done() for one in asked) == 12 - EXPORTS_MAX // 2, "the refusals")
    await until(lambda: len(begun) == EXPORTS_MAX // 2, "the others")
    refused = [one.result() for one in asked if one.done()]
    refused.append(await owner.get("/api/audit/export"))
    assert {(one.status, one.body["details"]["reason"]) for one in refused} == {(503, "own_exports_full")}
    assert (await actions(web, case)).count("case_export_begun") == EXPORTS_MAX // 2
    may_go_on.set()
    assert [one.status for one in await asyncio.gather(*asked)].count(200) == EXPORTS_MAX // 2
    # And every place is free again, also those of answers that nobody waited for.
    may_go_on.clear()
    closed: list[str] = []

    def close(self: CaseExport) -> None:
        closed.append("")
        real_close(self)

    monkeypatch.setattr(CaseExport, "close", close)
    for number in range(1, EXPORTS_MAX + 1):
        left = asyncio.ensure_future(owner.get(f"/api/cases/{case}/export"))
        await until(lambda count=EXPORTS_MAX // 2 + number: len(begun) == count, "it is under way")  # type: ignore[misc]
        left.cancel()
        await until(lambda count=number: len(closed) == count, "its end")  # type: ignore[misc]
    assert (await owner.get("/api/cases/no-such-case/export")).status != 200
    may_go_on.set()
    assert (await owner.get(f"/api/cases/{case}/export")).status == 200


async def test_the_key_that_signs_is_made_once_and_checked(web: RunningWeb) -> None:
    folder = web.settings.server.secrets_dir
    assert (folder / CASE_KEY).exists()
    assert isinstance(make_secrets(web.settings).case_key, Secret)
    assert own_key(web) == own_key(web)


async def test_the_database_says_when_a_class_and_its_case_differ(web: RunningWeb) -> None:
    owner = await furnish(web)
    await new_case(owner, ("event", "e1"))

    async def kinds() -> set[str]:
        return {finding.kind for finding in await web.store.read(check._run_checks)} & {"case_class", "case_unheld"}

    assert await kinds() == set()
    await web.store.write(execute, "UPDATE frames SET retention_class = 'normal' WHERE frame_uuid = 'f2'", {})
    assert await kinds() == {"case_unheld"}
    await web.store.write(execute, "UPDATE frames SET retention_class = 'case'", {})
    assert await kinds() == {"case_class"}


async def test_retention_tells_what_is_kept_and_what_would_go(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await furnish(web)
    status = (await owner.get("/api/retention")).body
    assert status["days"]["frames"] == 14
    assert (status["kept"], status["sweeps"], status["round_ended_at"]) == ([], [], None)
    assert status["free_bytes"] > 0
    assert status["counted_at"] is None
    counted = (await owner.get("/api/retention?now=true")).body
    assert counted["counted_at"] == web.clock.now_ms()
    assert [(one["camera_id"], one["kept"][0]["pictures"]) for one in counted["cameras"]] == [("cam_1", 4)]
    assert counted["kept"][0]["bytes"] == 6 * len(PICTURE) + len(CLIP)
    assert (await owner.get("/api/retention/preview")).body["frames"] == 0
    await web.store.write(execute, "UPDATE frames SET captured_at = captured_at - :ago", {"ago": 40 * 86_400_000})
    preview = (await owner.get("/api/retention/preview")).body
    # The newest picture of the camera stays.
    all_bytes = 4 * len(PICTURE) + len(CLIP)
    assert (preview["frames"], preview["bytes"], preview["whole"]) == (2, all_bytes, True)
    assert preview["cameras"] == [{"camera_id": "cam_1", "count": 3, "bytes": all_bytes}]
    aged = [
        {"what": "clips", "reason": "age", "count": 1, "bytes": len(CLIP)},
        {"what": "frames", "reason": "age", "count": 2, "bytes": 4 * len(PICTURE)},
    ]
    assert preview["going"] == aged
    trash = "INSERT INTO garbage (tenant_id, object_key, created_at) SELECT tenant_id, :key, 0 FROM cameras"
    await web.store.write(execute, trash, {"key": CLIP_KEY})
    preview = (await owner.get("/api/retention/preview")).body
    binned = {"what": "garbage", "reason": "unlinked", "count": 1, "bytes": len(CLIP)}
    assert preview["going"] == [*aged, binned]
    assert preview["bytes"] == all_bytes + len(CLIP)
    asked = await owner.post("/api/retention/run", None)
    assert (asked.status, asked.body) == (202, {"asked_at": web.clock.now_ms()})
    assert (await owner.get("/api/retention")).body["round_wanted_at"] == web.clock.now_ms()
    await web.store.write(set_role, "viewer")
    assert (await owner.get("/api/retention")).status == 403
