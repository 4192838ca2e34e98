from pathlib import Path

import pytest

from camserver.domain.people import Role
from camserver.store import Store
from camserver.store.first_start import prepare_store
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, RunningWeb, running_web
from tests.services.web.test_api import CAMERA
from tests.store.people_rows import FrameRow, add_event, add_frame, audit_rows, execute


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


async def test_a_vocabulary_is_added_and_used(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    shipped = (await owner.get("/api/vocabulary/versions/2025-12-28.1")).body["document"]
    tag = {"id": "vehicle.forklift", "group": "notify_safe", "label_ja": "フォークリフト", "label_en": "Forklift"}
    changed = {**shipped, "schema_version": "2026-11-16.1", "tags": [*shipped["tags"], {**shipped["tags"][0], **tag}]}
    added = await owner.post("/api/vocabulary", {"document": changed})
    assert added.status == 200, added.body
    assert {one["schema_version"]: one["is_active"] for one in added.body["versions"]} == {
        "2026-11-16.1": False,
        "2025-12-28.1": True,
    }
    assert (await owner.post("/api/vocabulary", {"document": changed})).status == 200, "the same again is fine"
    used = await owner.post("/api/vocabulary/active", {"schema_version": "2026-11-16.1"})
    assert [one["schema_version"] for one in used.body["versions"] if one["is_active"]] == ["2026-11-16.1"]
    shown = (await owner.get("/api/vocabulary")).body
    assert "vehicle.forklift" in {one["id"] for one in shown["tags"]}
    # What a start does: the choice stays.
    await prepare_store(web.store, web.settings.vocabulary.schema_version, 1)
    assert (await owner.get("/api/vocabulary")).body["schema_version"] == "2026-11-16.1"
    actions = [row[1] for row in await web.store.read(audit_rows)]
    assert (actions.count("vocabulary_added"), actions.count("vocabulary_activated")) == (1, 1)


async def test_what_a_new_vocabulary_keeps_for_investigation_is_hidden_in_old_events_too(
    web_on_each: RunningWeb,
) -> None:
    web = web_on_each
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    tags = (("carry.bag", "notify_safe"), ("outfit.suit_like", "investigation_only"), ("old.tag", "notify_safe"))
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", web.clock.now_ms(), tags)
    frame_id = await web.store.write(
        add_frame, FrameRow(tenant_id, "cam_1", web.clock.now_ms(), "f1", event_id=event_id)
    )
    for tag_id, group in tags:
        row = {"frame_id": frame_id, "tag_id": tag_id, "tenant_id": tenant_id, "tag_group": group}
        await web.store.write(execute, _TAG, row)
    shipped = (await owner.get("/api/vocabulary/versions/2025-12-28.1")).body["document"]
    groups = {"carry.bag": "investigation_only", "outfit.suit_like": "notify_safe"}
    moved = [
        {**tag, "group": groups[tag["id"]], "notify_allowed": False} if tag["id"] in groups else tag
        for tag in shipped["tags"]
    ]
    changed = {**shipped, "schema_version": "2026-11-16.1", "tags": moved}
    assert (await owner.post("/api/vocabulary", {"document": changed})).status == 200
    viewer = web.browser()
    await owner.post("/api/users", {"login": "viewer", "role": "viewer", "password": PASSWORD})
    await viewer.sign_in("viewer")

    async def seen() -> list[list[str]]:
        event = (await viewer.get("/api/events/e1")).body["tags"]
        facets = (await viewer.get("/api/search/facets")).body["tags"]
        frame = (await viewer.get("/api/frames/f1")).body["tags"]
        return [
            sorted(tag["id"] for tag in event),
            sorted(tag["value"] for tag in facets),
            sorted(tag["id"] for tag in frame if tag["id"] in {"old.tag", *groups}),
        ]

    assert await seen() == [["carry.bag", "old.tag"]] * 3
    assert (await owner.post("/api/vocabulary/active", {"schema_version": "2026-11-16.1"})).status == 200
    assert await seen() == [["old.tag"]] * 3, "what was written for investigation stays so"
    assert (await viewer.get("/api/search?tag=carry.bag")).body["events"] == []
    assert (await viewer.get("/api/events?tag=carry.bag")).body["events"] == []
    # A dispatcher that still works by the vocabulary of before writes its groups.
    await web.store.write(add_event, tenant_id, "cam_1", "late", web.clock.now_ms(), (tags[0],))
    assert (await viewer.get("/api/events/late")).body["tags"] == []
    assert [tag["id"] for tag in (await owner.get("/api/events/late")).body["tags"]] == ["carry.bag"]
    assert (await owner.post("/api/vocabulary/active", {"schema_version": "2025-12-28.1"})).status == 200
    assert await seen() == [["carry.bag", "old.tag"]] * 3


_TAG = """
INSERT INTO frame_tags (frame_id, tag_id, tenant_id, tag_group) VALUES (:frame_id, :tag_id, :tenant_id, :tag_group)"""


async def test_vocabularies_that_make_no_sense_are_refused(web: RunningWeb) -> None:
    owner = await web.owner()
    shipped = (await owner.get("/api/vocabulary/versions/2025-12-28.1")).body["document"]
    for document, status in (
        ({}, 400),
        ({**shipped, "schema_version": "no spaces"}, 400),
        ({**shipped, "schema_version": "2", "tags": []}, 400),
        ({**shipped, "schema_version": "2", "note": "\0"}, 400),
        ({**shipped, "tags": shipped["tags"][:-1]}, 409),
    ):
        assert (await owner.post("/api/vocabulary", {"document": document})).status == status
    assert (await owner.post("/api/vocabulary/active", {"schema_version": "9"})).status == 404
    assert (await owner.get("/api/vocabulary/versions/9")).status == 404
    assert len((await owner.get("/api/vocabulary/versions")).body["versions"]) == 1


async def test_only_system_administrators_change_it(web: RunningWeb) -> None:
    owner = await web.owner()
    await web.store.write(execute, "UPDATE users SET role = :role", {"role": Role.TENANT_ADMIN.value})
    assert (await owner.get("/api/vocabulary/versions")).status == 403
    assert (await owner.post("/api/vocabulary/active", {"schema_version": "2025-12-28.1"})).status == 403


@pytest.mark.parametrize("db_kind", ["sqlite"], indirect=True)
async def test_a_version_that_settings_pin_is_the_only_choice(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_web(store, clock, tmp_path, {"SCHEMA_VERSION": "2025-12-28.1"}) as web:
        owner = await web.owner()
        refused = await owner.post("/api/vocabulary/active", {"schema_version": "2026-11-16.1"})
        assert refused.status == 409
        assert (await owner.post("/api/vocabulary/active", {"schema_version": "2025-12-28.1"})).status == 200


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
    for camera_id in ("cam_1", "cam_2"):
        await owner.post("/api/cameras", {**CAMERA, "camera_id": camera_id})
    for query, status in (
        ("camera_id=cam_1&camera_id=cam_2&primary_event=human&severity_min=2&state=open&from=1&to=2", 200),
        ("site=main&site=main", 200),
        ("incident=abc", 404),
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
