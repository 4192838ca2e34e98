"""Probes, discovery, moves and imports as the API has them; what a worker does with them is tested there."""

import json
import threading
from typing import Any

import pytest

from camserver.services.web import edge
from camserver.services.web.routes import imports
from camserver.store.tx import Tx
from tests.services.web.rig import Browser, Reply, RunningWeb

REFERENCE = "urn:uuid:3fa1fe68-b915-4053-a3e1-001122334455"
SECRET = "geheimes-passwort"


async def run_sql(tx: Tx, sql: str, params: dict[str, Any]) -> int:
    return await tx.run(sql, **params)


async def errand_row(tx: Tx, errand_uuid: str) -> dict[str, Any] | None:
    names = ("request", "ciphertext", "camera_key", "kind")
    sql = f"SELECT {', '.join(names)} FROM errands WHERE errand_uuid = :errand_uuid"
    row = await tx.one(sql, errand_uuid=errand_uuid)
    return None if row is None else {name: row[name] for name in names}


@pytest.fixture
async def owner(web: RunningWeb) -> Browser:
    return await web.owner()


async def add(owner: Browser, **changes: object) -> None:
    source = {"url": "rtsp://10.0.0.9:8554/main?a=1", "user": "viewer", "password": SECRET}
    body = {"camera_id": "cam_1", "name": "入口", "source": source, "sub": {"url": "rtsp://10.0.0.9/sub"}}
    reply = await owner.post("/api/cameras", body | changes)
    assert reply.status == 201, reply.content


async def request_of(web: RunningWeb, reply: Reply) -> dict[str, Any]:
    assert reply.status == 202, reply.content
    row = await web.store.read(errand_row, reply.body["errand_uuid"])
    assert row is not None
    assert SECRET not in row["request"]
    return {**row, "request": json.loads(row["request"])}


async def test_a_source_is_probed_by_the_site(web: RunningWeb, owner: Browser) -> None:
    asked = {
        "source": {"url": f"rtsp://viewer:{SECRET}@10.0.0.9/live"},
        "tls_pin": "AB:" * 31 + "CD",
        "transport": "udp",
    }
    row = await request_of(web, await owner.post("/api/probes", asked))
    assert row["kind"] == "probe"
    assert row["camera_key"] is None
    assert row["ciphertext"]
    assert row["request"] == {
        "source": {"type": "rtsp", "url": "rtsp://10.0.0.9/live"},
        "transport": "udp",
        "tls_pin": "ab" * 31 + "cd",
        "measure_sec": 4.0,
    }


async def test_a_camera_is_probed_with_its_own_values(web: RunningWeb, owner: Browser) -> None:
    await add(owner, transport="udp")
    row = await request_of(web, await owner.post("/api/cameras/cam_1/probe", {"stream": "sub", "measure_sec": 0}))
    assert row["camera_key"] is not None
    assert row["ciphertext"] is None
    assert (row["request"]["stream"], row["request"]["transport"]) == ("sub", "udp")
    assert row["request"]["hide_picture"] is False


async def test_what_must_not_be_seen_is_not_shown(web: RunningWeb, owner: Browser) -> None:
    mask = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    await add(owner, do_not_process=True, privacy_masks=[mask], rotation=90)
    row = await request_of(web, await owner.post("/api/cameras/cam_1/probe", {}))
    assert row["request"]["hide_picture"] is True
    assert row["request"]["privacy_masks"] == [mask]
    assert row["request"]["rotation"] == 90


async def test_probes_that_can_not_be(owner: Browser) -> None:
    await add(owner, sub=None)
    for path, body, status, reason in (
        ("/api/cameras/none/probe", {}, 404, "no_camera"),
        ("/api/cameras/cam_1/probe", {"stream": "sub"}, 404, "no_sub"),
        ("/api/cameras/cam_1/probe", {"at": "10.0.0.7"}, 404, "no_reference"),
        ("/api/cameras/cam_1/probe", {"at": "999.0.0.7"}, 400, "no_ip_address"),
        ("/api/cameras/cam_1/rediscover", {}, 404, "no_reference"),
        ("/api/cameras/cam_1/move", {"errand_uuid": "0199"}, 409, "move_not_proven"),
        ("/api/probes", {"source": {"url": "ftp://h/x"}}, 400, "url_scheme"),
        ("/api/probes", {"source": {"url": "rtsp://h/x"}, "site": "nowhere"}, 404, "no_site"),
        ("/api/discovery", {"hosts": ["fd00::1"]}, 400, "no_ip_address"),
        ("/api/discovery", {"device": {"url": f"viewer:{SECRET}@10.0.0.9"}}, 400, "url_form"),
    ):
        reply = await owner.post(path, body)
        assert (reply.status, reply.body["details"].get("reason")) == (status, reason), path
        assert SECRET not in reply.content.decode()


async def test_looking_around_and_asking_one_device(web: RunningWeb, owner: Browser) -> None:
    around = await request_of(web, await owner.post("/api/discovery", {"hosts": ["10.0.0.9"], "wait_sec": 1}))
    assert around["request"] == {"wait_sec": 1, "hosts": ["10.0.0.9"]}
    assert around["ciphertext"] is None
    device = {"url": "10.0.0.9:8000", "user": "admin", "password": SECRET}
    one = await request_of(web, await owner.post("/api/discovery", {"device": device}))
    assert one["request"] == {"source": {"type": "http", "url": "10.0.0.9:8000"}}
    assert one["ciphertext"]


async def know_reference(web: RunningWeb) -> None:
    caps = json.dumps({"onvif": {"reference": REFERENCE}})
    await web.store.write(run_sql, "UPDATE cameras SET caps = :caps", {"caps": caps})


async def test_a_camera_is_looked_for_by_its_reference(web: RunningWeb, owner: Browser) -> None:
    await add(owner)
    await know_reference(web)
    row = await request_of(web, await owner.post("/api/cameras/cam_1/rediscover", {}))
    assert (row["kind"], row["request"]["reference"], row["ciphertext"]) == ("discover", REFERENCE, None)
    known = await request_of(web, await owner.post("/api/cameras/cam_1/probe", {}))
    assert known["request"]["reference"] == REFERENCE
    renewed = await request_of(web, await owner.post("/api/cameras/cam_1/probe", {"renew": True}))
    assert renewed["request"]["reference"] is None


async def test_a_camera_moves_with_its_login_only_after_a_probe_has_proven_it(
    web: RunningWeb, owner: Browser
) -> None:
    await add(owner)
    await know_reference(web)
    probe = await owner.post("/api/cameras/cam_1/probe", {"at": "10.0.0.7", "measure_sec": 0})
    row = await request_of(web, probe)
    assert (row["request"]["at"], row["request"]["reference"]) == ("10.0.0.7", REFERENCE)
    move = {"errand_uuid": probe.body["errand_uuid"]}
    assert (await owner.post("/api/cameras/cam_1/move", move)).status == 409
    ended = "UPDATE errands SET state = :state, done_at = :now_ms"
    now_ms = web.clock.now_ms()
    await web.store.write(run_sql, ended, {"state": "failed", "now_ms": now_ms})
    assert (await owner.post("/api/cameras/cam_1/move", move)).status == 409
    await web.store.write(run_sql, ended, {"state": "done", "now_ms": now_ms - 700_000})
    assert (await owner.post("/api/cameras/cam_1/move", move)).status == 409
    await web.store.write(run_sql, ended, {"state": "done", "now_ms": now_ms})
    moved = await owner.post("/api/cameras/cam_1/move", move)
    assert moved.status == 200
    assert moved.body["source"]["url"] == "rtsp://10.0.0.7:8554/main?…"
    assert moved.body["sub"]["url"] == "rtsp://10.0.0.7/sub"
    assert moved.body["source"]["has_credentials"]


async def test_an_ordinary_probe_moves_nothing(web: RunningWeb, owner: Browser) -> None:
    await add(owner)
    probe = await owner.post("/api/cameras/cam_1/probe", {})
    done = {"state": "done", "now_ms": web.clock.now_ms()}
    await web.store.write(run_sql, "UPDATE errands SET state = :state, done_at = :now_ms", done)
    reply = await owner.post("/api/cameras/cam_1/move", {"errand_uuid": probe.body["errand_uuid"]})
    assert reply.status == 409


CSV = f"camera_id,name,url,user,password,polling_interval_sec\ncam_1,入口,rtsp://10.0.0.9/1,viewer,{SECRET},5\n"


async def imported(owner: Browser, **body: object) -> dict[str, Any]:
    reply = await owner.post("/api/imports", {"format": "csv", **body})
    assert reply.status == 200, reply.content
    assert SECRET not in reply.content.decode()
    answer: dict[str, Any] = reply.body
    return answer


def actions(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["camera_id"], one["action"]) for one in answer["cameras"]]


async def test_a_site_that_is_not_there_is_a_problem_of_its_row(owner: Browser) -> None:
    text = "camera_id,url,site\ncam_1,rtsp://10.0.0.9/1,moon\ncam_2,rtsp://10.0.0.9/2,main\n"
    for dry_run in (True, False):
        answer = await imported(owner, text=text, dry_run=dry_run)
        assert actions(answer) == [("cam_2", "add")]
        [problem] = answer["problems"]
        assert (problem["where"], "moon" in problem["message"]) == ("line 2", True)
    elsewhere = await imported(owner, text=CSV, site="moon", dry_run=True)
    assert (actions(elsewhere), len(elsewhere["problems"])) == ([], 1)
    assert (await owner.get("/api/cameras")).body["cameras"] == []
    added = await imported(owner, text=text, skip_bad=True)
    assert (actions(added), len(added["problems"])) == ([("cam_2", "added")], 1)


async def test_a_list_is_imported_once(owner: Browser) -> None:
    assert actions(await imported(owner, text=CSV, dry_run=True)) == [("cam_1", "add")]
    assert (await owner.get("/api/cameras")).body["cameras"] == []
    assert actions(await imported(owner, text=CSV)) == [("cam_1", "added")]
    [camera] = (await owner.get("/api/cameras")).body["cameras"]
    assert (camera["name"], camera["polling_interval_sec"]) == ("入口", 5)
    assert camera["source"] == {"type": "rtsp", "url": "rtsp://10.0.0.9/1", "has_credentials": True}
    assert actions(await imported(owner, text=CSV)) == [("cam_1", "same")]
    changed = await imported(owner, text=CSV.replace("10.0.0.9/1", "10.0.0.9/2"))
    assert actions(changed) == [("cam_1", "differs")]
    assert changed["cameras"][0]["message"] == "url"
    assert (await owner.get("/api/cameras/cam_1")).body["source"]["url"] == "rtsp://10.0.0.9/1"


async def test_a_preset_is_imported_and_compared(owner: Browser) -> None:
    text = "camera_id,url,preset\ncam_1,rtsp://10.0.0.9/1,shop\n"
    assert actions(await imported(owner, text=text)) == [("cam_1", "added")]
    camera = (await owner.get("/api/cameras/cam_1")).body
    assert camera["own"]["hints"]["preset"] == "shop"
    assert actions(await imported(owner, text=text)) == [("cam_1", "same")]
    changed = await imported(owner, text=text.replace("shop", "road"))
    assert changed["cameras"][0]["message"] == "preset"
    unknown = await imported(owner, text=text.replace("shop", "garden"))
    assert [(one["line"], one["column"]) for one in unknown["problems"]] == [(2, "preset")]
    assert "parking" in unknown["problems"][0]["message"]


async def test_a_file_with_mistakes_adds_nothing_unless_that_is_wanted(owner: Browser) -> None:
    text = CSV + "cam_2,b,nonsense,,,5\ncam_3,c,rtsp://h/1,,,soon\ncam_4,d,rtsp://u:p@h/1,v,,5\n"
    answer = await imported(owner, text=text)
    assert actions(answer) == [("cam_1", "add")]
    assert [(one["line"], one["column"]) for one in answer["problems"]] == [
        (4, "polling_interval_sec"),
        (None, None),
        (None, None),
    ]
    assert [one["where"] for one in answer["problems"][1:]] == ["line 3", "line 5"]
    assert all(one["message"] for one in answer["problems"])
    assert (await owner.get("/api/cameras")).body["cameras"] == []
    assert actions(await imported(owner, text=text, skip_bad=True)) == [("cam_1", "added")]


FRIGATE = """
cameras:
  front:
    ffmpeg:
      inputs:
        - path: rtsp://{FRIGATE_USER}:{FRIGATE_PASSWORD}@10.0.0.9/main
          roles: [record]
        - path: rtsp://{FRIGATE_USER}:{FRIGATE_PASSWORD}@10.0.0.9/sub
          roles: [detect]
    motion: {mask: "0,0,1,0,1,0.1"}
    zones: {yard: {coordinates: "0,0.5,1,0.5,1,1"}}
"""


async def test_a_configuration_of_frigate(owner: Browser) -> None:
    environment = {"FRIGATE_USER": "viewer", "FRIGATE_PASSWORD": SECRET}
    answer = await imported(owner, format="frigate", text=FRIGATE, environment=environment, zones=True)
    assert actions(answer) == [("front", "added")]
    assert [note["where"] for note in answer["notes"]] == ["cameras.front.zones"]
    camera = (await owner.get("/api/cameras/front")).body
    assert camera["sub"]["url"] == "rtsp://10.0.0.9/sub"
    assert camera["own"]["ignore_masks"] == [[[0, 0], [1, 0], [1, 0.1]]]
    assert camera["own"]["zones"] == [{"name": "yard", "points": [[0, 0.5], [1, 0.5], [1, 1]]}]
    missing = await imported(owner, format="frigate", text=FRIGATE)
    assert "FRIGATE_PASSWORD" in str(missing["problems"]) or "FRIGATE_USER" in str(missing["problems"])


async def test_a_few_lines_that_stand_for_gigabytes_are_refused(owner: Browser) -> None:
    lines = ["l0: &l0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"l{n}: &l{n} [{','.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9)]
    answer = await imported(owner, format="frigate", text="\n".join([*lines, "environment_vars: {X: *l8}", FRIGATE]))
    assert answer["cameras"] == []
    assert [problem["where"] for problem in answer["problems"]] == ["file"]


async def test_lists_are_read_beside_the_loop_and_few_at_once(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    made = imports._camera_asked

    def noted(*given: Any) -> Any:
        names.append(threading.current_thread().name)
        return made(*given)

    monkeypatch.setattr(imports, "_camera_asked", noted)
    await imported(owner, text=CSV, dry_run=True)
    assert names
    assert threading.main_thread().name not in names
    for _ in range(imports.READING_MAX):
        assert imports._READING.acquire(blocking=False)
    try:
        reply = await owner.post("/api/imports", {"format": "csv", "text": CSV})
        assert (reply.status, reply.body["details"]["reason"]) == (503, "imports_full")
    finally:
        for _ in range(imports.READING_MAX):
            imports._READING.release()
    await imported(owner, text=CSV, dry_run=True)


@pytest.mark.parametrize("text", ["cameras: [", "a: b: c", "!!python/object/apply:os.system ['true']", "[" * 5000])
async def test_what_is_no_yaml(owner: Browser, text: str) -> None:
    answer = await imported(owner, format="frigate", text=text)
    assert answer["problems"]
    assert not answer["cameras"]


async def test_a_long_list_passes_the_edge_and_an_endless_one_does_not(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"cam_{number},rtsp://10.0.0.9/{'x' * 50}\n" for number in range(2_500))
    answer = await imported(owner, text="camera_id,url\n" + rows, dry_run=True)
    assert len(answer["problems"]) == 1
    monkeypatch.setitem(edge.LONG_BODIES_MAX_BYTES, "/api/imports", 200_000)
    reply = await owner.ask("POST", "/api/imports", data=b"x" * 200_001)
    assert reply.status == 413


async def test_japanese_readers_get_japanese(web: RunningWeb) -> None:
    browser = web.browser()
    headers = {**web.local_admin, "Accept-Language": "ja"}
    reply = await browser.post("/api/imports", {"format": "csv", "text": "camera_id,url\ncam_1,\n"}, headers)
    assert reply.body["problems"][0]["message"] == "空です。"
    assert reply.body["problems"][0]["where"] == "line 2, column url"
