"""Statistics, summaries and a model's opinion, as people with and without permission read them."""

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from camserver.domain import reviews
from camserver.domain.summaries import Period, SiteDay, Totals, body
from camserver.store import Tx
from tests.services.web.rig import Browser, RunningWeb
from tests.store.people_rows import FrameRow, add_event, add_frame, add_user, audit_rows, execute

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
CAMERAS = [{"camera_id": f"cam_{n}", "name": f"Camera {n}", "source": {"url": "test://moving"}} for n in (1, 2)]
_HOUR = """
INSERT INTO hourly_stats (tenant_id, camera_key, hour_at, looks, looks_failed, analyzed, detected, unknown, events,
  severity_max, by_event, bytes)
SELECT tenant_id, camera_key, :hour_at, :looks, 1, 5, 2, 0, :events, 2, :by_event, 100 FROM cameras
WHERE tenant_id = :tenant_id AND camera_id = :camera_id"""
_SUMMARY = """
INSERT INTO daily_summaries (tenant_id, site_id, day, body, created_at)
SELECT tenant_id, site_id, :day, :body, :now_ms FROM sites WHERE tenant_id = :tenant_id"""
_REVIEW = """
INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label, memo,
  created_at)
VALUES ('r1', :tenant_id, 1, :event_id, 1, 'openai', 'm-1', :label, 'A cat. <b>bold</b>', 5)"""


async def owner_with_cameras(web: RunningWeb) -> tuple[Browser, int]:
    owner = await web.owner()
    for camera in CAMERAS:
        await owner.post("/api/cameras", camera)
    return owner, (await web.store.read(audit_rows))[0][0]


async def hour(web: RunningWeb, tenant_id: int, camera_id: str, hour_at: int, looks: int, **by_event: int) -> None:
    values = {
        "tenant_id": tenant_id,
        "camera_id": camera_id,
        "hour_at": hour_at,
        "looks": looks,
        "events": sum(by_event.values()),
        "by_event": json.dumps(by_event),
    }
    await web.store.write(execute, _HOUR, values)


async def test_figures_by_hour_and_day(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, tenant_id = await owner_with_cameras(web)
    now = web.clock.now_ms() // HOUR_MS * HOUR_MS
    await hour(web, tenant_id, "cam_1", now - HOUR_MS, 60, human=2)
    await hour(web, tenant_id, "cam_2", now - HOUR_MS, 50, human=1, animal=1)
    await hour(web, tenant_id, "cam_1", now - 30 * HOUR_MS, 40)
    found = (await owner.get("/api/statistics")).body
    assert (found["by"], found["to_at"] - found["from_at"] >= 24 * HOUR_MS) == ("hour", True)
    (bucket,) = found["buckets"]
    assert bucket == {
        "start_at": now - HOUR_MS, "day": None, "looks": 110, "looks_failed": 2, "analyzed": 10, "detected": 4,
        "unknown": 0, "events": 4, "severity_max": 2, "bytes": 200, "by_event": {"human": 3, "animal": 1},
    }  # fmt: skip
    days = (await owner.get("/api/statistics?by=day")).body["buckets"]
    assert sum(day["looks"] for day in days) == 150
    assert all(day["day"] for day in days)
    one = (await owner.get("/api/statistics?camera_id=cam_2&site=main")).body["buckets"]
    assert [bucket["looks"] for bucket in one] == [50]


async def test_what_can_not_be_answered_is_said(web: RunningWeb) -> None:
    owner, _ = await owner_with_cameras(web)
    long = await owner.get(f"/api/statistics?from=0&to={400 * DAY_MS}&by=day")
    assert (long.status, long.body["details"]["days"]) == (400, 367)
    assert (await owner.get("/api/statistics?site=nowhere")).status == 404
    assert (await owner.get("/api/summaries?site=nowhere")).status == 404
    assert (await owner.get("/api/summaries?day=yesterday")).status == 400
    assert (await owner.get("/api/summaries?before=x")).status == 400


async def test_summaries_newest_first_in_the_reader_s_language(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, tenant_id = await owner_with_cameras(web)
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        period = Period(day, 1000, 2000)
        facts = SiteDay("main", period, (), 0, (("human", 3),), (), Totals(cameras=2, looks=7), 3000)
        values = {
            "tenant_id": tenant_id,
            "day": day,
            "body": json.dumps(body(facts, ZoneInfo("UTC"))),
            "now_ms": 3000,
        }
        await web.store.write(execute, _SUMMARY, values)
    page = (await owner.get("/api/summaries?limit=2")).body
    assert [one["day"] for one in page["summaries"]] == ["2026-01-03", "2026-01-02"]
    rest = (await owner.get(f"/api/summaries?limit=2&before={page['next_before']}")).body
    assert ([one["day"] for one in rest["summaries"]], rest["next_before"]) == (["2026-01-01"], None)
    (one,) = (await owner.get("/api/summaries?day=2026-01-02&site=main")).body["summaries"]
    assert (one["site"], one["title"], one["late"]) == ("main", "main: summary of 2026-01-02", False)
    assert one["ordinary"] == [
        {"primary_event": {"id": "human", "label_ja": "人を検知", "label_en": "Person detected"}, "count": 3}
    ]
    assert one["totals"]["looks"] == 7
    local = await owner.get("/api/summaries?day=2026-01-02", {**web.local_admin, "Accept-Language": "ja"})
    assert local.status == 200


async def _reviewed_event(web: RunningWeb, label: str) -> Browser:
    owner, tenant_id = await owner_with_cameras(web)
    now_ms = web.clock.now_ms()
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", now_ms)
    await web.store.write(add_frame, FrameRow(tenant_id, "cam_1", now_ms, "f1", event_id=event_id))
    await web.store.write(execute, _REVIEW, {"tenant_id": tenant_id, "event_id": event_id, "label": label})
    return owner


async def test_a_model_s_opinion_is_shown_to_those_who_may_investigate(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await _reviewed_event(web, "animal")
    assert (await owner.get("/api/events/e1")).body["llm_review"] == {
        "label": {"id": "animal", "label_ja": "動物", "label_en": "Animal"},
        "memo": "A cat. <b>bold</b>",
        "provider": "openai",
        "model": "m-1",
        "created_at": 5,
    }


@pytest.mark.parametrize(("role", "sees"), [("viewer", False), ("site_manager", False), ("tenant_admin", True)])
async def test_others_do_not_see_it(web: RunningWeb, role: str, sees: bool) -> None:
    await _reviewed_event(web, "animal")
    await web.store.write(_add_person, role)
    person = web.browser()
    assert (await person.sign_in("person")).status == 201
    reply = await person.get("/api/events/e1")
    assert (reply.status, reply.body["llm_review"] is not None) == (200, sees)


async def _add_person(tx: Tx, role: str) -> None:
    owner: Any = await tx.one("SELECT tenant_id, password_hash FROM users WHERE login = 'owner'")
    await add_user(tx, owner["tenant_id"], "person", role, owner["password_hash"], 0)


async def test_a_question_that_is_still_open_is_no_opinion(web: RunningWeb) -> None:
    owner = await _reviewed_event(web, "")
    assert (await owner.get("/api/events/e1")).body["llm_review"] is None


async def test_the_budget_of_the_language_model(web: RunningWeb) -> None:
    owner = await web.owner()
    found = (await owner.get("/api/llm/budget")).body
    assert (found["is_configured"], found["calls"], found["calls_max"]) == (False, 0, web.settings.llm.daily_calls)
    day, now_ms = found["day"], web.clock.now_ms()
    assert day == reviews.day_of(now_ms)
    sql = """INSERT INTO llm_days (tenant_id, day, calls, tokens_in, tokens_out, cost_micro)
        SELECT tenant_id, :day, 3, 2700, 180, 3600 FROM users"""
    await web.store.write(execute, sql, {"day": day})
    found = (await owner.get("/api/llm/budget")).body
    assert (found["calls"], found["tokens_in"], found["tokens_out"], found["cost_micro"]) == (3, 2700, 180, 3600)
    await web.store.write(execute, "UPDATE users SET role = 'viewer'", {})
    assert (await owner.get("/api/llm/budget")).status == 403
