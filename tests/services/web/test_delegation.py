"""Workers and where cameras are, over the API: listed, emptied, moved, pinned; and why a camera does not run."""

import pytest

from camserver.domain.people import Role
from camserver.services.web.messages import _JA_BY_REASON
from camserver.store import Tx
from camserver.store.leases import Want
from camserver.store.workers import disconnected, register
from tests.services.web.rig import Browser, RunningWeb
from tests.store.people_rows import audit_rows
from tests.store.singles import ensure_session, take
from tests.store.stage import registration

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
TTL_MS = 90_000
CONNECTED_EPOCH = 1  # of `registration`


async def add_site(tx: Tx, name: str, now_ms: int) -> int:
    return await tx.insert(
        "INSERT INTO sites (tenant_id, site_uuid, name, created_at) SELECT min(tenant_id), :name, :name, :now_ms "
        "FROM tenants RETURNING site_id",
        name=name,
        now_ms=now_ms,
    )


async def add_worker(tx: Tx, worker_id: str, site: str, slots: int, now_ms: int) -> int:
    row = await tx.one("SELECT min(tenant_id) AS tenant_id FROM tenants")
    assert row is not None
    made = await register(tx, row["tenant_id"], registration(worker_id, site, slots=slots, cpu=0.0, mem=0.0), now_ms)
    return made.worker_key


async def hold(tx: Tx, camera_id: str, worker_key: int, now_ms: int) -> None:
    row = await tx.one("SELECT camera_key FROM cameras WHERE camera_id = :camera_id", camera_id=camera_id)
    assert row is not None
    await ensure_session(tx, row["camera_key"], now_ms)
    assert await take(tx, Want(row["camera_key"], worker_key, 0), TTL_MS, now_ms) is not None


async def camera_key(tx: Tx, camera_id: str) -> int:
    row = await tx.one("SELECT camera_key FROM cameras WHERE camera_id = :camera_id", camera_id=camera_id)
    assert row is not None
    return int(row["camera_key"])


async def set_session(tx: Tx, columns: str) -> None:
    await tx.run(f"UPDATE camera_sessions SET {columns}")


async def set_role(tx: Tx, role: str) -> None:
    await tx.run("UPDATE users SET role = :role", role=role)


async def set_quota(tx: Tx, most: int) -> None:
    await tx.run("UPDATE tenants SET cameras_running_max = :most", most=most)


async def furnished(web: RunningWeb) -> tuple[Browser, int, int]:
    owner = await web.owner()
    assert (await owner.post("/api/cameras", CAMERA)).status == 201
    now_ms = web.clock.now_ms()
    await web.store.write(add_site, "annex", now_ms)
    first = await web.store.write(add_worker, "w-1", "main", 2, now_ms)
    second = await web.store.write(add_worker, "w-2", "main", 1, now_ms)
    await web.store.write(add_worker, "far", "annex", 5, now_ms)
    return owner, first, second


async def codes(owner: Browser) -> list[str]:
    reply = await owner.get("/api/cameras/cam_1/why")
    assert reply.status == 200, reply.content
    assert all(line["text_ja"] and line["text_en"] for line in reply.body["lines"])
    return [line["code"] for line in reply.body["lines"]]


async def test_workers_are_listed_and_emptied(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, first, _ = await furnished(web)
    await web.store.write(hold, "cam_1", first, web.clock.now_ms())
    listed = (await owner.get("/api/workers")).body["workers"]
    assert [(one["worker_id"], one["site"], one["used"], one["slots"]) for one in listed] == [
        ("far", "annex", 0, 5),
        ("w-1", "main", 1, 2),
        ("w-2", "main", 0, 1),
    ]
    assert listed[0]["labels"] == {"room": "attic"}
    for _ in range(2):
        drained = await owner.post("/api/workers/w-1/drain", {})
        assert (drained.status, drained.body["is_draining"]) == (200, True)
    assert (await owner.post("/api/workers/w-1/undrain", {})).body["is_draining"] is False
    unknown = await owner.post("/api/workers/w-9/drain", {})
    assert (unknown.status, unknown.body["details"]["reason"]) == (404, "no_worker")
    actions = [(row[1], row[3]) for row in await web.store.read(audit_rows)]
    assert actions[-2:] == [("worker_drained", "w-1"), ("worker_undrained", "w-1")], "once, not for a repeat"


async def test_cameras_are_moved_and_pinned(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, first, second = await furnished(web)
    await web.store.write(hold, "cam_1", first, web.clock.now_ms())
    moved = await owner.post("/api/cameras/cam_1/reassign", {"worker_id": "w-2"})
    assert (moved.status, moved.body["worker_id"], moved.body["wanted_worker_id"]) == (200, "w-1", "w-2")
    for worker_id, status, reason in (("far", 409, "worker_other_site"), ("w-9", 404, "no_worker")):
        for what in ("reassign", "pin"):
            refused = await owner.post(f"/api/cameras/cam_1/{what}", {"worker_id": worker_id})
            assert (refused.status, refused.body["details"]["reason"]) == (status, reason)
    assert (await owner.post("/api/cameras/cam_9/reassign", {"worker_id": "w-2"})).status == 404
    assert (await owner.post("/api/cameras/cam_1/reassign", {"worker_id": "no good"})).status == 400
    pinned = await owner.post("/api/cameras/cam_1/pin", {"worker_id": "w-1"})
    assert pinned.body["pinned_worker_id"] == "w-1"
    refused = await owner.post("/api/cameras/cam_1/reassign", {"worker_id": "w-2"})
    assert (refused.status, refused.body["details"]["reason"]) == (409, "camera_pinned")
    assert (await owner.ask("DELETE", "/api/cameras/cam_1/pin")).body["pinned_worker_id"] is None
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "cam_2"})
    await web.store.write(hold, "cam_2", second, web.clock.now_ms())
    full = await owner.post("/api/cameras/cam_1/reassign", {"worker_id": "w-2"})
    assert (full.status, full.body["details"]["reason"]) == (409, "worker_full")
    await owner.post("/api/workers/w-2/drain", {})
    refused = await owner.post("/api/cameras/cam_1/reassign", {"worker_id": "w-2"})
    assert (refused.status, refused.body["details"]["reason"]) == (409, "worker_draining")
    actions = [row[1] for row in await web.store.read(audit_rows)]
    assert [one for one in actions if one.startswith("camera_") and one != "camera_added"] == [
        "camera_reassigned",
        "camera_pinned",
        "camera_unpinned",
    ]


async def test_only_who_manages_workers_may_and_only_within_reach(web: RunningWeb) -> None:
    owner, _, _ = await furnished(web)
    await web.store.write(set_role, Role.VIEWER.value)
    body = {"worker_id": "w-1"}
    for path in ("workers/w-1/drain", "workers/w-1/undrain", "cameras/cam_1/reassign", "cameras/cam_1/pin"):
        assert (await owner.post(f"/api/{path}", body)).status == 403, path
    for path in ("workers", "cameras/cam_1/why"):
        assert (await owner.get(f"/api/{path}")).status == 403, path
    assert (await owner.ask("DELETE", "/api/cameras/cam_1/pin")).status == 403
    await web.store.write(set_role, Role.SITE_MANAGER.value)
    assert (await owner.get("/api/workers")).status == 200


async def test_why_a_camera_does_not_run(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, first, _ = await furnished(web)
    assert await codes(owner) == ["about_to_start"]
    await owner.post("/api/cameras/cam_1/pin", {"worker_id": "w-1"})
    await owner.post("/api/workers/w-1/drain", {})
    assert (await codes(owner))[0] == "pin_draining"
    await owner.post("/api/workers/w-1/undrain", {})
    await web.store.write(set_quota, 0)
    assert (await codes(owner))[0] == "quota"
    await web.store.write(set_quota, 9)
    await web.store.write(hold, "cam_1", first, web.clock.now_ms())
    assert await codes(owner) == ["not_sent", "lease", "pinned_here"]
    later = web.clock.now_ms() + 7_000
    await web.store.write(
        set_session,
        f"state = 'PAUSED', reason = 'unauthorized', failures = 5, auth_failures = 5, next_attempt_at = {later}",
    )
    reply = (await owner.get("/api/cameras/cam_1/why")).body
    assert [line["code"] for line in reply["lines"]] == [
        "paused_fault",
        "auth",
        "next_attempt",
        "lease",
        "pinned_here",
    ]
    assert reply["lines"][2]["text_en"] == "The next attempt is in 7 s."
    assert reply["is_running"] is False
    await web.store.write(set_session, "state = 'ACTIVE', failures = 0, auth_failures = 0, next_attempt_at = NULL")
    reply = (await owner.get("/api/cameras/cam_1/why")).body
    assert (reply["is_running"], reply["lines"][0]["code"]) == (True, "running")
    await owner.ask("PATCH", "/api/cameras/cam_1", {"enabled": False})
    assert await codes(owner) == ["disabled"]
    assert (await owner.get("/api/cameras/cam_9/why")).status == 404


@pytest.mark.parametrize(
    "reason", ["no_worker", "worker_other_site", "worker_draining", "worker_full", "camera_pinned"]
)
def test_refusals_are_told_in_japanese_too(reason: str) -> None:
    assert reason in _JA_BY_REASON


async def test_flags_and_the_quota(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, _, _ = await furnished(web)
    for value in ("pack", "spread"):
        reply = await owner.post("/api/flags", {"name": "assignment.style", "site": "annex", "value": value})
        assert reply.status == 200, reply.content
    await owner.post("/api/flags", {"name": "assignment.shadow", "value": "pack"})
    found = [(one["name"], one["site"], one["value"]) for one in (await owner.get("/api/flags")).body["flags"]]
    assert found == [("assignment.shadow", None, "pack"), ("assignment.style", "annex", "spread")]
    cleared = await owner.post("/api/flags", {"name": "assignment.style", "site": "annex", "value": None})
    assert [one["name"] for one in cleared.body["flags"]] == ["assignment.shadow"]
    for wrong in ({"name": "odd", "value": "pack"}, {"name": "assignment.style", "value": "odd"}):
        assert (await owner.post("/api/flags", wrong)).status == 400
    unknown = await owner.post("/api/flags", {"name": "assignment.style", "site": "moon", "value": "pack"})
    assert unknown.status == 404
    assert (await owner.post("/api/quota", {"cameras_running_max": 3})).body == {
        "cameras_running_max": 3,
        "running": 0,
    }
    assert (await owner.post("/api/quota", {"cameras_running_max": None})).body["cameras_running_max"] is None
    assert (await owner.post("/api/quota", {"cameras_running_max": -1})).status == 400
    actions = [row[1] for row in await web.store.read(audit_rows)]
    assert (actions.count("flag_changed"), actions.count("quota_changed")) == (4, 2)
    await web.store.write(set_role, Role.TENANT_ADMIN.value)
    assert (await owner.get("/api/flags")).status == 403
    assert (await owner.post("/api/flags", {"name": "assignment.style", "value": "pack"})).status == 403
    assert (await owner.post("/api/quota", {"cameras_running_max": 3})).status == 403
    assert (await owner.get("/api/quota")).status == 200


async def test_leases_are_listed_and_taken_back_by_hand(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner, first, second = await furnished(web)
    page = (await owner.get("/api/leases")).body
    assert [(one["camera_id"], one["worker_id"], one["left_ms"]) for one in page["leases"]] == [("cam_1", None, None)]
    free = await owner.post("/api/leases/reclaim", {"camera_id": "cam_1"})
    assert (free.status, free.body["outcome"]) == (200, "free")
    await web.store.write(hold, "cam_1", first, web.clock.now_ms())
    web.clock.jump_wall(10_000)
    page = (await owner.get("/api/leases")).body
    (lease,) = page["leases"]
    assert (lease["worker_id"], lease["generation"], lease["state"]) == ("w-1", 1, "PENDING")
    assert (lease["left_ms"], page["ttl_ms"], page["next_after"]) == (TTL_MS - 10_000, TTL_MS, None)
    assert (lease["is_holder_connected"], lease["is_orphaned_soon"]) == (True, False)
    # Connected: it is asked to stop, once.
    for _ in range(2):
        asked = (await owner.post("/api/leases/reclaim", {"camera_id": "cam_1"})).body
        assert (asked["outcome"], asked["lease"]["worker_id"], asked["lease"]["is_stopping"]) == (
            "stopping",
            "w-1",
            True,
        )
    await web.store.write(set_session, "stop_wanted = 0")
    # Away: the lease runs out now, and the next worker gets the camera at the next generation.
    await web.store.write(disconnected, first, CONNECTED_EPOCH)
    assert (await owner.get("/api/leases")).body["leases"][0]["is_orphaned_soon"]
    done = (await owner.post("/api/leases/reclaim", {"camera_id": "cam_1"})).body
    assert (done["outcome"], done["lease"]["state"], done["lease"]["left_ms"]) == ("reclaimed", "ORPHANED", 0)
    key = await web.store.read(camera_key, "cam_1")
    assert await web.store.write(take, Want(key, second, 1), TTL_MS, web.clock.now_ms()) is not None
    forced = (await owner.post("/api/leases/reclaim", {"camera_id": "cam_1", "force": True})).body
    assert (forced["outcome"], forced["lease"]["worker_id"], forced["lease"]["generation"]) == ("reclaimed", "w-2", 2)
    assert (await owner.post("/api/leases/reclaim", {"camera_id": "cam_9"})).status == 404
    reclaims = [row for row in await web.store.read(audit_rows) if row[1] == "lease_reclaimed"]
    assert len(reclaims) == 3, "one each, not for a repeat and not for a free camera"


async def test_the_list_of_leases_comes_in_pages_and_to_managers_only(web: RunningWeb) -> None:
    owner, _, _ = await furnished(web)
    await owner.post("/api/cameras", {**CAMERA, "camera_id": "cam_2"})
    page = (await owner.get("/api/leases?limit=1")).body
    assert ([one["camera_id"] for one in page["leases"]], page["next_after"]) == (["cam_1"], "cam_1")
    page = (await owner.get("/api/leases?after=cam_1")).body
    assert ([one["camera_id"] for one in page["leases"]], page["next_after"]) == (["cam_2"], None)
    await web.store.write(set_role, Role.VIEWER.value)
    assert (await owner.get("/api/leases")).status == 403
    assert (await owner.post("/api/leases/reclaim", {"camera_id": "cam_1"})).status == 403
