"""Searching and timelines as people with and without permission read them."""

from typing import Any

import pytest

from camserver.store import Tx, search_texts
from tests.services.web.rig import Browser, RunningWeb
from tests.services.web.test_statistics import CAMERAS, _add_person, hour
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, audit_rows

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


async def searched_house(web: RunningWeb) -> tuple[Browser, int]:
    owner = await web.owner()
    for camera in CAMERAS:
        await owner.post("/api/cameras", camera)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    for number in range(5):
        camera_id = f"cam_{number % 2 + 1}"
        tags = (("carry.bag", "notify_safe"), ("behavior.loitering", "investigation_only")) if number % 2 else ()
        frame = FrameRow(tenant_id, camera_id, now_ms - number * 1000, f"f{number}")
        row = EventRow(severity_max=number % 4, best_frame_id=await web.store.write(add_frame, frame))
        event_id = await web.store.write(
            add_event, tenant_id, camera_id, f"e{number}", now_ms - number * 1000, tags, row
        )
        await web.store.write(_memo, tenant_id, event_id, f"memo {number} 赤い服")
    return owner, tenant_id


async def _memo(tx: Tx, tenant_id: int, event_id: int, memo: str) -> None:
    await tx.run(
        "INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label, "
        "memo, created_at) VALUES (:uuid, :tenant_id, 1, :event_id, 1, 'p', 'm', 'person', :memo, 5)",
        tenant_id=tenant_id,
        event_id=event_id,
        uuid=f"r{event_id}",
        memo=memo,
    )
    await search_texts.put_memo(tx, tenant_id, event_id, memo)


def uuids(page: dict[str, Any]) -> list[str]:
    return [one["event_uuid"] for one in page["events"]]


async def test_events_are_searched_by_what_stands_in_the_address(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, _ = await searched_house(web)
    first = (await owner.get("/api/search?limit=3")).body
    assert (uuids(first), first["is_cut"]) == (["e0", "e1", "e2"], False)
    rest = (await owner.get(f"/api/search?limit=3&before={first['next_before']}")).body
    assert (uuids(rest), rest["next_before"]) == (["e3", "e4"], None)
    one = first["events"][1]
    assert (one["camera_name"], one["site"], one["best_frame_uuid"]) == ("Camera 2", "main", "f1")
    assert (one["unknown"], one["reviewed_at"], one["passages"]) == (False, None, [])
    assert [tag["id"] for tag in one["tags"]] == ["behavior.loitering", "carry.bag"]
    now_ms = web.clock.now_ms()
    for query, expected in {
        "camera_id=cam_1": ["e0", "e2", "e4"],
        "camera_id=cam_1&camera_id=cam_2&severity_min=2": ["e2", "e3"],
        "tag=carry.bag&tag=behavior.loitering": ["e1", "e3"],
        "tag=carry.bag&tag=behavior.running": [],
        "site=main&primary_event=human&unknown=false": ["e0", "e1", "e2", "e3", "e4"],
        "unknown=true": [],
        f"from={now_ms - 2000}&to={now_ms}": ["e1", "e2"],
        "text=%E8%B5%A4%E3%81%84%E6%9C%8D%20memo%203": ["e3"],
    }.items():
        assert uuids((await owner.get(f"/api/search?{query}")).body) == expected, query
    (found,) = (await owner.get("/api/search?text=3%20memo")).body["events"]
    assert found["passages"] == [{"kind": "memo", "case_uuid": None, "excerpt": "memo 3 赤い服"}]


async def test_facets_are_labelled_and_say_how_much_they_counted(web_on_each: RunningWeb) -> None:
    owner, _ = await searched_house(web_on_each)
    found = (await owner.get("/api/search/facets?camera_id=cam_2")).body
    assert (found["counted"], found["is_complete"], found["counted_max"]) == (2, True, 1000)
    assert found["cameras"] == [{"value": "cam_2", "label_ja": "Camera 2", "label_en": "Camera 2", "count": 2}]
    assert {one["value"]: one["count"] for one in found["tags"]} == {"carry.bag": 2, "behavior.loitering": 2}
    assert all(one["label_ja"] != one["value"] for one in found["tags"])
    assert [one["label_en"] for one in found["primary_events"]] == ["Person detected"]
    assert {one["value"] for one in found["severities"]} == {"1", "3"}
    assert sum(one["count"] for one in found["days"]) == 2


BAD = [
    ("severity_min=9", 400, "severity_min"),
    ("unknown=perhaps", 400, "unknown"),
    ("from=5&to=5", 400, "from"),
    ("case=../x", 400, "case"),
    ("text=%E3%80%82", 400, "text"),
    ("text=a%20b%20c%20d%20e%20f%20g%20h%20i", 400, "text"),
    ("before=x", 400, "cursor"),
    ("camera_id=cam_9", 404, "cam_9"),
    ("site=nowhere", 404, "nowhere"),
    ("case=no-such", 404, "no-such"),
    ("&".join(f"tag=t{number}" for number in range(11)), 400, "tag"),
]


@pytest.mark.parametrize(("query", "status", "named"), BAD)
async def test_a_bad_filter_is_named(web: RunningWeb, query: str, status: int, named: str) -> None:
    owner, _ = await searched_house(web)
    reply = await owner.get(f"/api/search?{query}", {"Accept-Language": "en"})
    assert reply.status == status
    assert named in str(reply.body)


@pytest.mark.parametrize("role", ["viewer", "site_manager"])
async def test_texts_cases_and_hidden_tags_are_for_investigators(web: RunningWeb, role: str) -> None:
    await searched_house(web)
    await web.store.write(_add_person, role)
    person = web.browser()
    assert (await person.sign_in("person")).status == 201
    for query in ("text=memo", "case=x"):
        for path in ("/api/search", "/api/search/facets"):
            reply = await person.get(f"{path}?{query}")
            assert (reply.status, reply.body["details"]["permission"]) == (403, "investigate")
    page = (await person.get("/api/search")).body
    assert len(page["events"]) == 5
    assert all(tag["id"] == "carry.bag" for one in page["events"] for tag in one["tags"])
    assert (await person.get("/api/search?tag=behavior.loitering")).body["events"] == []


async def test_a_day_of_all_cameras(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, tenant_id = await searched_house(web)
    now_ms = web.clock.now_ms()
    last_hour = now_ms // HOUR_MS * HOUR_MS - HOUR_MS
    await hour(web, tenant_id, "cam_1", last_hour, 60, human=2)
    found = (await owner.get("/api/timeline")).body
    assert found["bucket_ms"] == 900_000
    assert [one["camera_id"] for one in found["cameras"]] == ["cam_1", "cam_2"]
    first = found["cameras"][0]
    place = (last_hour - found["from_at"]) // 900_000
    assert len(first["looked"]) == len(first["severity"]) == (found["to_at"] - found["from_at"]) // 900_000
    assert (first["looked"][place : place + 4], first["severity"][place : place + 4]) == ("mmmm", "2222")
    assert first["events"] == [[place, 2]]
    fine = (await owner.get(f"/api/timeline?from={last_hour}&to={last_hour + 1}&bucket=5m&camera_id=cam_1")).body
    assert [len(one["looked"]) for one in fine["cameras"]] == [12]
    day = (await owner.get("/api/timeline?day=2026-01-02&bucket=1h")).body
    assert day["to_at"] - day["from_at"] == DAY_MS
    for query, named in {
        "day=2026-02-30": "day",
        "day=tomorrow": "day",
        "day=2026-01-02&from=5": "from",
        f"from=0&to={2 * DAY_MS}": "hours",
        f"from=0&to={DAY_MS}&bucket=5m": "hours",
        "bucket=7m": "bucket",
        "from=9&to=8": "from",
    }.items():
        reply = await owner.get(f"/api/timeline?{query}")
        assert reply.status == 400, query
        assert named in str(reply.body), query


async def test_nothing_happened_here_is_answered_with_pictures(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, tenant_id = await searched_house(web)
    now_ms = web.clock.now_ms()
    for number in range(3):
        quiet = FrameRow(tenant_id, "cam_1", now_ms - HOUR_MS - number, f"quiet{number}")
        await web.store.write(add_frame, quiet)
    failed = FrameRow(tenant_id, "cam_1", now_ms - HOUR_MS - 9, "failed", status="timeout", infer_bytes=None)
    await web.store.write(add_frame, failed)
    looks = (await owner.get("/api/cameras/cam_1/looks")).body
    assert looks["interval_ms"] == 60_000
    assert sum(one["pictures"] for one in looks["hours"]) == 6
    assert len(looks["hours"]) * HOUR_MS == looks["to_at"] - looks["from_at"]
    page = (await owner.get("/api/cameras/cam_1/frames?only=quiet&limit=4")).body
    assert [one["frame_uuid"] for one in page["frames"]][-1] == "quiet0"
    rest = (await owner.get(f"/api/cameras/cam_1/frames?only=quiet&limit=4&before={page['next_before']}")).body
    assert [one["frame_uuid"] for one in rest["frames"]] == ["quiet1", "quiet2"]
    (only,) = (await owner.get("/api/cameras/cam_1/frames?only=failed")).body["frames"]
    assert (only["frame_uuid"], only["pictures"]) == ("failed", [])
    for path in ("looks", "frames"):
        assert (await owner.get(f"/api/cameras/cam_9/{path}")).status == 404
    assert (await owner.get("/api/cameras/cam_1/frames?from=5&to=4")).status == 400
    assert (await owner.get(f"/api/cameras/cam_1/looks?from=0&to={3 * DAY_MS}")).status == 400
