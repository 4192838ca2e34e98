"""Searching and timelines as people with and without permission read them."""

from datetime import UTC, datetime
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
        tags = (("carry.bag", "notify_safe"), ("appearance.face_visible", "investigation_only")) if number % 2 else ()
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
    assert [tag["id"] for tag in one["tags"]] == ["appearance.face_visible", "carry.bag"]
    now_ms = web.clock.now_ms()
    for query, expected in {
        "camera_id=cam_1": ["e0", "e2", "e4"],
        "camera_id=cam_1&camera_id=cam_2&severity_min=2": ["e2", "e3"],
        "tag=carry.bag&tag=appearance.face_visible": ["e1", "e3"],
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
    assert {one["value"]: one["count"] for one in found["tags"]} == {"carry.bag": 2, "appearance.face_visible": 2}
    assert all(one["label_ja"] != one["value"] for one in found["tags"])
    assert [one["label_en"] for one in found["primary_events"]] == ["Person detected"]
    assert {one["value"] for one in found["severities"]} == {"1", "3"}
    assert sum(one["count"] for one in found["days"]) == 2


async def test_days_are_counted_by_the_zone_that_is_asked_for(web_on_each: RunningWeb) -> None:
    """A page narrows by days of its reader's own time, so what it counts must be those."""
    web = web_on_each
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERAS[0])).status == 201
    tenant_id = (await web.store.read(audit_rows))[0][0]
    midnight_ms = web.clock.now_ms() // DAY_MS * DAY_MS
    for name, at_ms in (("e1", midnight_ms + 14 * HOUR_MS), ("e2", midnight_ms + 18 * HOUR_MS + 40 * 60_000)):
        await web.store.write(add_event, tenant_id, "cam_1", name, at_ms, (), EventRow())
    day, next_day = (
        datetime.fromtimestamp(at / 1000, UTC).date().isoformat() for at in (midnight_ms, midnight_ms + DAY_MS)
    )
    # India's days begin at half past six in the evening.
    for query, expected in {
        "": {day: 2},
        "?timezone=Asia/Tokyo": {day: 1, next_day: 1},
        "?timezone=Asia/Kolkata": {day: 1, next_day: 1},
    }.items():
        found = (await owner.get(f"/api/search/facets{query}")).body["days"]
        assert {one["value"]: one["count"] for one in found} == expected, query
    refused = await owner.get("/api/search/facets?timezone=Asia/Tokio")
    assert (refused.status, refused.body["details"]["reason"]) == (400, "no_zone")


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
    ("&".join(f"tag=t.{number}" for number in range(11)), 400, "tag"),
    ("tag=carry.bag%20", 400, "tag"),
    ("primary_event=human%20", 400, "primary_event"),
]


@pytest.mark.parametrize(("query", "status", "named"), BAD)
async def test_a_bad_filter_is_named(web: RunningWeb, query: str, status: int, named: str) -> None:
    owner, _ = await searched_house(web)
    reply = await owner.get(f"/api/search?{query}", {"Accept-Language": "en"})
    assert reply.status == status
    assert named in str(reply.body)


@pytest.mark.parametrize("query", ["tag=no.such", "primary_event=no_such"])
async def test_words_that_nothing_has_find_nothing(web: RunningWeb, query: str) -> None:
    owner, _ = await searched_house(web)
    reply = await owner.get(f"/api/search?{query}")
    assert (reply.status, reply.body["events"], reply.body["next_before"]) == (200, [], None)


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
    assert (await person.get("/api/search?tag=appearance.face_visible")).body["events"] == []


@pytest.mark.parametrize("query", ["text=memo", "tag=appearance.face_visible", ""])
async def test_counting_what_is_for_investigation_is_a_look_at_it(web: RunningWeb, query: str) -> None:
    owner, _ = await searched_house(web)
    before = len(await web.store.read(audit_rows))
    assert (await owner.get(f"/api/search/facets?{query}")).body["counted"] > 0
    noted = [row[1] for row in (await web.store.read(audit_rows))[before:]]
    assert noted == ["investigation_listed"]


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
    assert looks["pauses"] == []
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


async def test_a_gap_says_that_looks_waited_for_somebody_who_watched(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, tenant_id = await searched_house(web)
    hour_at = web.clock.now_ms() // HOUR_MS * HOUR_MS - 3 * HOUR_MS
    span = f"from={hour_at}&to={hour_at + HOUR_MS}"
    await web.store.write(born_before, hour_at)
    [before] = (await owner.get(f"/api/cameras/cam_2/looks?{span}")).body["gaps"]
    assert before["cause"] is None
    await web.store.write(put_off, tenant_id, "cam_2", hour_at, hour_at + HOUR_MS * 3 // 4)
    looks = (await owner.get(f"/api/cameras/cam_2/looks?{span}")).body
    [gap], [pause] = looks["gaps"], looks["pauses"]
    assert (gap["start_at"], gap["end_at"]) == (before["start_at"], before["end_at"])
    assert gap["cause"] == pause["cause"]
    assert gap["cause"]["id"] == "watched_live"
    assert "watched live" in gap["cause"]["label_en"]
    assert "ライブ視聴中" in gap["cause"]["label_ja"]
    assert (pause["start_at"], pause["end_at"]) == (hour_at, hour_at + HOUR_MS * 3 // 4)
    [strip] = (await owner.get(f"/api/timeline?{span}&bucket=15m&camera_id=cam_2")).body["cameras"]
    assert strip["looked"] == "www."


async def born_before(tx: Tx, at_ms: int) -> None:
    await tx.run("UPDATE cameras SET created_at = :at_ms", at_ms=at_ms)


async def put_off(tx: Tx, tenant_id: int, camera_id: str, begin_at: int, end_at: int) -> None:
    await tx.run(
        "INSERT INTO look_pauses (camera_key, begin_at, tenant_id, generation, end_at, cause) "
        "SELECT camera_key, :begin_at, tenant_id, 1, :end_at, 'watched_live' FROM cameras "
        "WHERE tenant_id = :tenant_id AND camera_id = :camera_id",
        tenant_id=tenant_id,
        camera_id=camera_id,
        begin_at=begin_at,
        end_at=end_at,
    )


async def test_a_day_is_meant_in_the_time_of_the_cameras_asked_for(web_on_each: RunningWeb) -> None:
    """Two cameras are in London's winter (UTC), one is in Tokyo, where most sites are."""
    web = web_on_each
    owner, tenant_id = await searched_house(web)
    assert (await owner.ask("PATCH", "/api/sites/main", {"timezone": "UTC"})).status == 200
    for name in ("tokyo", "an empty one"):
        assert (await owner.post("/api/sites", {"name": name, "timezone": "Asia/Tokyo"})).status == 201
    far = {"camera_id": "cam_3", "name": "Far", "site": "tokyo", "source": {"url": "test://moving"}}
    assert (await owner.post("/api/cameras", far)).status == 201
    day_ms = 20_455 * DAY_MS  # 2026-01-02 00:00 UTC
    for camera_id in ("cam_1", "cam_3"):
        await hour(web, tenant_id, camera_id, day_ms + 20 * HOUR_MS, 355)  # the 3rd in Tokyo already

    async def looks(camera_id: str, day: str) -> tuple[str, int, int]:
        found = (await owner.get(f"/api/cameras/{camera_id}/looks?day={day}")).body
        return found["timezone"], found["from_at"] - day_ms, sum(one["looks"] for one in found["hours"])

    assert await looks("cam_1", "2026-01-02") == ("UTC", 0, 355)
    assert await looks("cam_1", "2026-01-03") == ("UTC", DAY_MS, 0)
    assert await looks("cam_3", "2026-01-02") == ("Asia/Tokyo", -9 * HOUR_MS, 0)
    assert await looks("cam_3", "2026-01-03") == ("Asia/Tokyo", 15 * HOUR_MS, 355)
    for query, zone in {
        "": "UTC",
        "&camera_id=cam_3": "Asia/Tokyo",
        "&camera_id=cam_1&camera_id=cam_2&camera_id=cam_3": "UTC",
        "&site=tokyo": "Asia/Tokyo",
        "&site=main&site=tokyo": "UTC",
        "&after=cam_2": "UTC",
        "&camera_id=cam_1&camera_id=cam_3": "Asia/Tokyo",
    }.items():
        found = (await owner.get(f"/api/timeline?day=2026-01-02&bucket=1h{query}")).body
        begin_ms = day_ms if zone == "UTC" else day_ms - 9 * HOUR_MS
        assert (found["timezone"], found["from_at"]) == (zone, begin_ms), query
    assert (await owner.get("/api/timeline")).body["timezone"] is None
    assert (await owner.get("/api/cameras/cam_1/looks")).body["timezone"] is None
    assert (await owner.get("/api/cameras/cam_9/looks?day=2026-01-02")).status == 404
