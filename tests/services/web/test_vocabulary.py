from camserver.domain.people import Role
from tests.services.web.rig import RunningWeb
from tests.store.people_rows import execute


async def test_the_words_are_named_in_both_languages(web: RunningWeb) -> None:
    owner = await web.owner()
    found = (await owner.get("/api/vocabulary")).body

    assert found["schema_version"] == "2025-12-28.1"
    human = {event["id"]: event for event in found["primary_events"]}["human"]
    assert (human["label_ja"], human["label_en"]) == ("人を検知", "Person detected")
    assert {tag["group"] for tag in found["tags"]} == {"notify_safe", "investigation_only"}
    assert all(tag["label_ja"] and tag["label_en"] for tag in found["tags"])
    assert "Picture frozen" in [tag["label_en"] for tag in found["tags"]]  # the server's own

    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.VIEWER.value})
    seen = (await owner.get("/api/vocabulary")).body
    assert {tag["group"] for tag in seen["tags"]} == {"notify_safe"}
    assert (await web.browser().get("/api/vocabulary")).status == 401


async def test_the_status_says_how_analysis_gets_on(web: RunningWeb) -> None:
    owner = await web.owner()
    status = (await owner.get("/api/system/status")).body
    assert status["analyzer"] == {
        "standing": "idle",
        "last_done_at": None,
        "oldest_waiting_at": None,
        "last_error_kind": None,
    }


async def test_events_are_narrowed_by_what_the_address_says(web: RunningWeb) -> None:
    owner = await web.owner()
    for query, status in (
        ("camera_id=cam_1&camera_id=cam_2&primary_event=human&severity_min=2&state=open&from=1&to=2", 200),
        ("incident=abc", 200),
        ("severity_min=4", 400),
        ("state=ajar", 400),
        ("from=yesterday", 400),
        ("camera_id=../x", 400),
        ("&".join(f"camera_id=c{number}" for number in range(51)), 400),
    ):
        assert (await owner.get(f"/api/events?{query}")).status == status, query
    assert (await owner.get("/api/incidents?severity_min=1&camera_id=cam_1&from=1&to=2")).status == 200
    assert (await owner.get("/api/incidents?before=x")).status == 400
    assert (await owner.get("/api/incidents/none")).status == 404
