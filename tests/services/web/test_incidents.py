"""Incidents over the API: reviewed by a person, and unreviewed by what comes after."""

from tests.services.web.rig import Browser, RunningWeb
from tests.store.people_rows import add_event, add_incident, audit_rows, execute

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}


async def furnish(web: RunningWeb) -> Browser:
    """Somebody signed in, with the incident i1 and its event e1."""
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    incident_id = await web.store.write(add_incident, tenant_id, "cam_1", "i1", now_ms, 1)
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", now_ms)
    await web.store.write(execute, "UPDATE events SET incident_id = :incident_id", {"incident_id": incident_id})
    await web.store.write(execute, "UPDATE incidents SET last_event_id = :event_id", {"event_id": event_id})
    return owner


async def test_an_incident_is_reviewed_and_the_review_taken_back(web: RunningWeb) -> None:
    owner = await furnish(web)
    before = (await owner.get("/api/incidents/i1")).body
    assert (before["reviewed_at"], before["reviewers"]) == (None, 0)
    assert [i["incident_uuid"] for i in (await owner.get("/api/incidents?reviewed=false")).body["incidents"]] == [
        "i1"
    ]
    seen = {"severity_max": 1, "last_event_uuid": "e1"}
    reviewed = await owner.post("/api/incidents/i1/review", seen)
    now_ms = web.clock.now_ms()
    assert (reviewed.status, reviewed.body) == (200, {**before, "reviewed_at": now_ms, "reviewers": 1})
    assert (await owner.get("/api/incidents?reviewed=false")).body["incidents"] == []
    assert (await owner.get("/api/incidents?reviewed=true")).body["incidents"] == [reviewed.body]
    changes = (await owner.get("/api/changes?after=0")).body["changes"]
    assert [(change["kind"], change["object"]) for change in changes if change["kind"] == "incident"] == [
        ("incident", "i1")
    ]
    back = await owner.ask("DELETE", "/api/incidents/i1/review")
    assert (back.status, back.body) == (200, before)


async def test_incidents_are_counted_by_severity(web: RunningWeb) -> None:
    owner = await furnish(web)
    for reviewed, counts in (("false", [0, 1, 0, 0]), ("true", [0, 0, 0, 0])):
        counted = (await owner.get(f"/api/incidents/counts?reviewed={reviewed}")).body
        assert counted == {"by_severity": counts, "is_complete": True}
    await owner.post("/api/incidents/i1/review", {})
    assert (await owner.get("/api/incidents/counts?reviewed=false")).body["by_severity"] == [0, 0, 0, 0]
    assert (await owner.get("/api/incidents/counts?camera_id=cam_1")).body["by_severity"] == [0, 1, 0, 0]
    assert (await owner.get("/api/incidents/counts?site=moon")).status == 404


async def test_an_incident_goes_on_while_its_last_event_does(web: RunningWeb) -> None:
    owner = await furnish(web)
    over = (await owner.get("/api/incidents/i1")).body
    assert (over["is_ongoing"], over["issue"]) == (False, None)
    await web.store.write(execute, "UPDATE events SET state = 'open', subject = 'offline'", {})
    shown = (await owner.get("/api/incidents/i1")).body
    assert (shown["is_ongoing"], shown["issue"]["id"]) == (True, "offline")


async def test_events_and_incidents_of_one_site(web: RunningWeb) -> None:
    owner = await furnish(web)
    for what in ("events", "incidents"):
        assert len((await owner.get(f"/api/{what}?site=main")).body[what]) == 1
        missing = await owner.get(f"/api/{what}?site=moon")
        assert (missing.status, missing.body["details"]["reason"]) == (404, "no_site")


async def test_a_program_is_told_what_anybody_reviewed(web: RunningWeb) -> None:
    owner = await furnish(web)
    await owner.post("/api/incidents/i1/review", {})
    found = [
        await web.browser().ask("GET", f"/api/incidents?reviewed={reviewed}", headers=web.local_admin)
        for reviewed in ("true", "false")
    ]
    assert [len(one.body["incidents"]) for one in found] == [1, 0]


async def test_more_severity_unreviews(web: RunningWeb) -> None:
    owner = await furnish(web)
    await owner.post("/api/incidents/i1/review", {})
    await web.store.write(execute, "UPDATE incidents SET severity_max = 2", {})
    found = (await owner.get("/api/incidents/i1")).body
    assert (found["reviewed_at"], found["reviewers"]) == (None, 0)


async def test_what_a_review_must_not_be(web: RunningWeb) -> None:
    owner = await furnish(web)
    assert (await owner.post("/api/incidents/i2/review", {})).status == 404
    assert (await owner.ask("DELETE", "/api/incidents/i2/review")).status == 404
    assert (await owner.post("/api/incidents/i1/review", {"severity_max": 4})).status == 400
    assert (await owner.post("/api/incidents/i1/review", {"last_event_uuid": "a b"})).status == 400
    refused = await web.browser().ask("POST", "/api/incidents/i1/review", {}, headers=web.local_admin)
    assert (refused.status, refused.body["details"]["reason"]) == (403, "review_needs_person")
