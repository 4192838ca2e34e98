"""Sheets brought over HTTP: uploaded in pieces, looked at, scored by the service, downloaded; events as a sheet."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.scoring_sheets import PART_BYTES
from camserver.services.scoring.service import Serving
from camserver.store import Store, Tx, scoring_desk, tenants
from tests.fakes.scoring_llm import ScoringLlm, truth
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.services.web.rig import Browser, RunningWeb, running_web
from tests.services.web.test_tenants import add_acme
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, count_rows, execute

NAMES = ("delivery", "trespass")


@pytest.fixture
async def llm() -> AsyncIterator[ScoringLlm]:
    async with ScoringLlm() as llm:
        yield llm


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path, llm: ScoringLlm) -> AsyncIterator[RunningWeb]:
    environ = {
        "CAMSERVER_LLM_PROVIDER": "openai",
        "CAMSERVER_LLM_MODEL": "m",
        "CAMSERVER_LLM_BASE_URL": llm.url,
        "CAMSERVER_LLM_PRICE_IN": "1",
        "CAMSERVER_LLM_PRICE_OUT": "2",
        "CAMSERVER_SCORING_FLUSH_INTERVAL_SEC": "0.1",
        "CAMSERVER_SCORING_KEPT_MAX_BYTES": "5000000",
        "CAMSERVER_SCORING_FOLDER": str(tmp_path / "sheets"),
    }
    async with running_web(sqlite_store, clock, tmp_path, environ) as running:
        yield running


@pytest.fixture
async def serving(web: RunningWeb) -> Serving:
    """The service's turns, taken by hand."""
    return Serving(web.store, web.objects, web.clock, web.settings)


def sheet_of(rows: int, filler: str = "") -> bytes:
    out = io.StringIO()
    headers = [["title"], ["", "", "", *NAMES], ["", "", "", "brings something", "enters"], []]
    csv.writer(out).writerows([*headers, *(["", filler, f"text {n % 7}"] for n in range(rows))])
    return out.getvalue().encode()


async def sent(browser: Browser, data: bytes, name: str = "答え.csv", **wishes: object) -> dict[str, Any]:
    asked = {"kind": "file", "name": name, "size_bytes": len(data), **wishes}
    reply = await browser.post("/api/scoring/sheets", asked)
    assert (reply.status, reply.body["state"]) == (201, "coming"), reply.content
    path = f"/api/scoring/sheets/{reply.body['sheet_uuid']}/parts"
    for number, begin in enumerate(range(0, len(data), PART_BYTES)):
        reply = await browser.ask("POST", f"{path}/{number}", data=data[begin : begin + PART_BYTES])
        assert reply.status == 200, reply.content
    assert reply.body["state"] == "waiting"
    return reply.body


async def test_a_sheet_is_sent_looked_at_scored_and_fetched(
    web: RunningWeb, serving: Serving, llm: ScoringLlm
) -> None:
    owner = await web.owner()
    data = sheet_of(40, "x" * 60_000)
    assert len(data) > PART_BYTES
    sheet = await sent(owner, data)
    path = f"/api/scoring/sheets/{sheet['sheet_uuid']}"
    early = await owner.post(f"{path}/runs", {})
    assert (early.status, early.body["details"]["reason"]) == (409, "scoring_not_looked")
    await serving.look()
    looked = (await owner.get(path)).body
    assert (looked["state"], looked["categories"], looked["check"]["rows"]) == ("looked", list(NAMES), 40)
    assert (looked["estimate"]["unique_calls"], looked["estimate"]["same"]) == (7, 33)
    assert looked["estimate"]["cost_usd"] > 0
    assert llm.calls == 0

    key = {"Idempotency-Key": "once"}
    begun = await owner.post(f"{path}/runs", {"budget_micro": 5_000_000}, key)
    assert (begun.status, begun.body["status"]) == (201, "running"), begun.content
    again = await owner.post(f"{path}/runs", {"budget_micro": 5_000_000}, key)
    assert again.body["run_uuid"] == begun.body["run_uuid"]
    second = await owner.post(f"{path}/runs", {})
    assert (second.status, second.body["details"]["reason"]) == (409, "scoring_not_over")
    await serving.work()
    run_path = f"/api/scoring/runs/{begun.body['run_uuid']}"
    assert (await owner.get(f"{run_path}/result")).status == 404
    await serving.fill()
    run = (await owner.get(run_path)).body
    assert (run["status"], run["has_result"], run["brought"]["name"]) == ("completed", True, "答え.csv")
    assert (run["calls"], run["metrics"]["refused_share"]) == (7, 0.0)
    assert run["metrics"]["hit_share"] == round(33 / 40, 5)
    assert run["metrics"]["limit"] is not None

    fetched = await owner.get(f"{run_path}/result")
    assert fetched.status == 200
    assert "filename*=UTF-8''%E7%AD%94%E3%81%88.csv" in fetched.headers["Content-Disposition"]
    rows = list(csv.reader(io.StringIO(fetched.content.decode())))[4:]
    assert [row[3:5] for row in rows] == [
        [f"{truth(f'text {n % 7}', name):.2f}" for name in NAMES] for n in range(40)
    ]
    (chunk,) = (await owner.get(f"{run_path}/files/chunk_meta.json")).body
    assert (chunk["chunk_id"], chunk["status"]) == ("chunk-0001", "completed")
    assert len((await owner.get(f"{run_path}/files/checkpoint.json")).body["completed_blocks"]) == 40
    report = (await owner.get(f"{run_path}/files/run_report.json")).body
    assert (report["refused_429"], report["results"]) == (0, {"written": 40})

    assert (await owner.ask("DELETE", path)).status == 204
    for run, reason in ((run_path, "no_scored_sheet"), ("/api/scoring/runs/none", "no_scoring_run")):
        missing = await owner.get(f"{run}/result")
        assert (missing.status, missing.body["details"]["reason"]) == (404, reason)
    assert (await owner.get(run_path)).body["brought"] is None
    assert await web.store.read(count_rows, "garbage") == 6
    entries = [one["action"] for one in (await owner.get("/api/audit")).body["entries"]]
    for action in ("scoring_sheet_added", "scoring_begun", "scoring_sheet_removed"):
        assert action in entries


async def test_what_can_not_be_scored_is_said_and_changed(web: RunningWeb, serving: Serving) -> None:
    owner = await web.owner()
    plain = b"".join(sheet_of(3).splitlines(keepends=True)[1:])
    sheet = await sent(owner, plain)
    path = f"/api/scoring/sheets/{sheet['sheet_uuid']}"
    await serving.look()
    looked = (await owner.get(path)).body
    assert looked["categories"] == ["brings something", "enters"]
    layout = {"name_row": 1, "definition_row": 2, "detail_row": 0, "first_data_row": 4}
    changed = await owner.ask("PATCH", path, {"layout": layout, "form": "anchors"})
    assert changed.body["state"] == "waiting"
    await serving.look()
    looked = (await owner.get(path)).body
    assert (looked["check"]["ok"], looked["check"]["rows"], looked["categories"]) == (True, 3, list(NAMES))

    broken = await sent(owner, b"\x00\x01\x02 no workbook", "a.xlsx")
    await serving.look()
    refused = (await owner.get(f"/api/scoring/sheets/{broken['sheet_uuid']}")).body
    assert refused["state"] == "refused"
    assert refused["message"]
    for asked, reason in (
        ({"kind": "file", "name": "a.exe", "size_bytes": 5}, "scoring_file_kind"),
        ({"kind": "file", "name": "a.csv", "size_bytes": 0}, "scoring_size"),
        ({"kind": "file", "name": "a.csv", "size_bytes": 4_999_999}, "scoring_sheets_full"),
        ({"kind": "folder", "name": "b.csv"}, "scoring_no_file"),
        ({"kind": "google", "name": "https://example.com/x"}, "scoring_no_google"),
    ):
        reply = await owner.post("/api/scoring/sheets", asked)
        assert reply.status in (400, 409, 422), reply.content
        assert reply.body["details"]["reason"] == reason
    wrong = await owner.ask("POST", f"/api/scoring/sheets/{broken['sheet_uuid']}/parts/0", data=b"x")
    assert (wrong.status, wrong.body["details"]["reason"]) == (409, "scoring_not_coming")


async def test_the_last_piece_may_be_sent_again(web: RunningWeb, serving: Serving) -> None:
    owner = await web.owner()
    data = sheet_of(3)
    sheet = await sent(owner, data)
    part = f"/api/scoring/sheets/{sheet['sheet_uuid']}/parts/0"
    for _ in range(2):
        again = await owner.ask("POST", part, data=data)
        assert (again.status, again.body) == (200, sheet)
        await serving.look()
        sheet = (await owner.get(f"/api/scoring/sheets/{sheet['sheet_uuid']}")).body
    assert sheet["state"] == "looked"
    for other in (data[:-1] + b"x", data + b"x"):
        refused = await owner.ask("POST", part, data=other)
        assert (refused.status, refused.body["details"]["reason"]) == (409, "scoring_not_coming")


async def test_a_sheet_of_the_server_is_filled_where_it_is(web: RunningWeb, serving: Serving, tmp_path: Path) -> None:
    owner = await web.owner()
    folder = tmp_path / "sheets"
    folder.mkdir()
    (folder / "here.csv").write_bytes(sheet_of(3))
    (folder / "out.csv").symlink_to("/etc/passwd")
    offer = (await owner.get("/api/scoring")).body
    assert (offer["is_configured"], offer["files"]) == (True, ["here.csv", "out.csv"])
    out = (await owner.post("/api/scoring/sheets", {"kind": "folder", "name": "out.csv"})).body
    sheet = (await owner.post("/api/scoring/sheets", {"kind": "folder", "name": "here.csv"})).body
    await serving.look()
    assert (await owner.get(f"/api/scoring/sheets/{out['sheet_uuid']}")).body["state"] == "refused"
    assert (await owner.post(f"/api/scoring/sheets/{sheet['sheet_uuid']}/runs", {})).status == 201
    await serving.work()
    rows = list(csv.reader(io.StringIO((folder / "here.csv").read_text())))[4:]
    assert [row[3] for row in rows] == [f"{truth(f'text {n}', 'delivery'):.2f}" for n in range(3)]


async def test_a_service_that_stops_is_followed_by_the_next(
    web: RunningWeb, serving: Serving, llm: ScoringLlm
) -> None:
    """What is in flight when it stops is paid for again at most; a pause is heeded by whoever works."""
    owner = await web.owner()
    sheet = await sent(owner, sheet_of(7))
    await serving.look()
    run = (await owner.post(f"/api/scoring/sheets/{sheet['sheet_uuid']}/runs", {})).body
    llm.hold = asyncio.Event()
    working = asyncio.create_task(serving.work())
    await until(lambda: llm.in_flight > 0, "questions in flight")
    working.cancel()
    llm.hold.set()
    await asyncio.wait([working])
    asked = llm.calls
    follower = Serving(web.store, web.objects, web.clock, web.settings)
    await follower.work()
    await follower.fill()
    shown = (await owner.get(f"/api/scoring/runs/{run['run_uuid']}")).body
    assert (shown["status"], shown["totals"]["written"], shown["has_result"]) == ("completed", 7, True)
    assert llm.calls <= 7 + asked


async def add_events(tx: Tx, tenant_id: int, now_ms: int, count: int) -> None:
    for number in range(count):
        at = now_ms - 1000 * number
        frame = FrameRow(tenant_id, "door", at, f"frame-{number}", infer_bytes=5 if number else None)
        frame_id = await add_frame(tx, frame)
        event = EventRow(best_frame_id=frame_id)
        await add_event(tx, tenant_id, "door", f"event-{number}", at, (("person", "who"),), event)


async def test_events_of_a_search_are_scored_by_their_pictures_and_found_by_their_scores(
    web: RunningWeb, serving: Serving, llm: ScoringLlm
) -> None:
    owner = await web.owner()
    home = (await web.store.read(tenants.home)) or 0
    camera = {"camera_id": "door", "name": "Door", "source": {"url": "rtsp://10.0.0.9/x"}}
    assert (await owner.post("/api/cameras", camera)).status == 201
    now_ms = web.clock.now_ms()
    await web.store.write(add_events, home, now_ms, 6)
    for number in range(1, 5):  # the picture of the last one is lost
        at = now_ms - 1000 * number
        await web.objects.put(frame_key(1, home, 1, at, f"frame-{number}", Kind.INFER), b"\xff\xd8\xff\xe0 jpeg")
    asked = {
        "name": "last night",
        "search": {"camera_ids": ["door"]},
        "categories": [{"name": "delivery", "definition": "somebody brings something"}, {"name": "trespass"}],
    }
    made = await owner.post("/api/scoring/event-sheets", asked)
    assert made.status == 201, made.content
    await serving.look()
    sheet = (await owner.get(f"/api/scoring/sheets/{made.body['sheet_uuid']}")).body
    assert (sheet["check"]["rows"], sheet["estimate"]["unique_calls"]) == (6, 6)
    run = await owner.post(f"/api/scoring/sheets/{made.body['sheet_uuid']}/runs", {})
    assert run.status == 201, run.content
    await serving.work()
    shown = (await owner.get(f"/api/scoring/runs/{run.body['run_uuid']}")).body
    assert (shown["totals"]["written"], shown["totals"]["failed"], llm.pictured) == (5, 1, 4)
    assert [note["note"] for note in shown["notes"]] == ["m: the picture is gone"]

    detail = (await owner.get("/api/events/event-1")).body
    scores = {one["category"]: one["score"] for one in detail["scores"]}
    assert set(scores) == {"delivery", "trespass"}
    assert (await owner.get("/api/events/event-5")).body["scores"] == []
    for condition, expected in ((">=", True), ("<=", False)):
        bound = round(scores["delivery"], 2)
        found = (await owner.get(f"/api/search?score=delivery{condition}{bound}")).body["events"]
        assert "event-1" in [one["event_uuid"] for one in found]
        other = bound + 0.01 if expected else bound - 0.01
        if 0 <= other <= 1:
            found = (await owner.get(f"/api/search?score=delivery{condition}{other:.2f}")).body["events"]
            assert "event-1" not in [one["event_uuid"] for one in found]
    both = await owner.get("/api/search?score=delivery>=0&score=trespass<=1&camera_id=door")
    assert len(both.body["events"]) == 5
    facets = (await owner.get("/api/search/facets")).body["scores"]
    assert {one["value"] for one in facets} <= {"delivery", "trespass"}
    bad = await owner.get("/api/search?score=delivery")
    assert (bad.status, bad.body["details"]["reason"]) == (400, "score_filter")


async def test_sheets_that_nobody_uses_go(web: RunningWeb, serving: Serving) -> None:
    owner = await web.owner()
    await sent(owner, sheet_of(3))
    long_ago = {"at": web.clock.now_ms() - 91 * 86_400_000}
    await web.store.write(execute, "UPDATE scoring_sheets SET updated_at = :at", long_ago)
    await serving.fill()
    assert (await owner.get("/api/scoring/sheets")).body["sheets"] == []
    assert await web.store.read(count_rows, "garbage") == 1
    assert await web.store.read(scoring_desk.unfilled) == ()


async def test_what_the_servers_key_and_folder_open_is_for_the_first_tenant(web: RunningWeb) -> None:
    """Sheets that somebody shared with the installation's account would else be open to every tenant."""
    owner = await web.owner()
    kato = await add_acme(web, owner)
    link = "https://docs.google.com/spreadsheets/d/1AbCdEfGhIjKlMnOpQrStUvWxYz0123456789/edit"
    for kind, name, reason in (("google", link, "scoring_google_home"), ("folder", "a.csv", "scoring_folder")):
        reply = await kato.post("/api/scoring/sheets", {"kind": kind, "name": name})
        assert (reply.status, reply.body["details"]["reason"]) == (403, reason)
    assert (await kato.get("/api/scoring")).body["has_google"] is False
