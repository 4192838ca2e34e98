"""Requests with an Idempotency-Key: done once, answered again."""

import asyncio
from typing import Any

import pytest

from camserver.services.web.once import HEADER, REPLAYED
from camserver.store import Tx, request_keys
from camserver.store.tx import Scoped
from tests.services.web.rig import PASSWORD, Browser, Reply, RunningWeb
from tests.store.people_rows import execute

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "rtsp://10.0.0.9/", "user": "u", "password": "p"}}
CASE = {"title": "One"}


async def keyed(who: Browser, path: str, body: object, key: str = "k1") -> Reply:
    return await who.post(path, body, {HEADER: key})


async def cases(who: Browser) -> list[str]:
    return [one["title"] for one in (await who.get("/api/cases")).body["cases"]]


def reason(reply: Reply) -> tuple[int, str]:
    return reply.status, reply.body["details"]["reason"]


async def test_a_repeat_gets_the_first_answer_for_a_day(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    first = await keyed(owner, "/api/cases", CASE)
    assert (first.status, REPLAYED in first.headers) == (201, False)
    again = await keyed(owner, "/api/cases", CASE)
    assert (again.status, again.body, again.headers[REPLAYED]) == (201, first.body, "true")
    assert await cases(owner) == ["One"]

    assert reason(await keyed(owner, "/api/cases", {"title": "Two"})) == (422, "request_key_reused")
    assert reason(await keyed(owner, "/api/snoozes", {"duration_sec": 60})) == (422, "request_key_reused")
    assert reason(await keyed(owner, "/api/cases", CASE, "k 1")) == (400, "bad_request_key")
    assert (await keyed(owner, "/api/cases", {"title": "Two"}, "k2")).status == 201
    assert (await owner.post("/api/cases", CASE)).status == 201
    assert sorted(await cases(owner)) == ["One", "One", "Two"]

    web.clock.jump_wall(request_keys.KEPT_MS)
    await owner.sign_in()
    assert REPLAYED not in (await keyed(owner, "/api/cases", CASE)).headers
    assert await web.store.write(request_keys.sweep, web.clock.now_ms()) == 1
    assert await web.store.write(request_keys.sweep, web.clock.now_ms()) == 0


async def test_many_at_once_do_it_once(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    replies = await asyncio.gather(*(keyed(owner, "/api/cases", CASE) for _ in range(6)))
    assert {reply.status for reply in replies} <= {201, 409}
    assert len({reply.body["case_uuid"] for reply in replies if reply.status == 201}) == 1
    assert await cases(owner) == ["One"]


async def test_a_repeat_that_is_overtaken_is_not_in_its_own_way(
    web_on_each: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It saw no answer yet, and then what the first one made meanwhile."""
    owner = await web_on_each.owner()
    body = {"login": "kato", "role": "viewer", "password": PASSWORD}
    first = await keyed(owner, "/api/users", body)

    looks: list[bool] = []
    find = request_keys.find

    async def find_the_second_time(tx: Scoped, claim: request_keys.Claim) -> request_keys.Kept | None:
        looks.append(len(looks) % 2 == 1)
        return await find(tx, claim) if looks[-1] else None

    monkeypatch.setattr(request_keys, "find", find_the_second_time)
    again = await keyed(owner, "/api/users", body)
    assert (again.status, again.content, again.headers[REPLAYED]) == (201, first.content, "true")
    other = await keyed(owner, "/api/users", {**body, "role": "site_manager"})
    assert reason(other) == (422, "request_key_reused")
    assert reason(await keyed(owner, "/api/users", body, "k2")) == (409, "login_taken")


async def test_a_key_is_its_callers_own(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/users", {"login": "other", "role": "tenant_admin", "password": PASSWORD})
    other = web.browser()
    await other.sign_in("other")
    assert (await keyed(owner, "/api/cases", CASE)).status == 201
    assert REPLAYED not in (await keyed(other, "/api/cases", CASE)).headers
    assert len(await cases(owner)) == 2


async def test_an_answer_is_not_told_again_to_who_may_not_see_it_now(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/cameras", {"camera_id": "cam_1", "name": "G", "source": {"url": "test://moving"}})
    body = {"login": "manager", "role": "site_manager", "password": PASSWORD, "grants": {"sites": ["main"]}}
    assert (await owner.post("/api/users", body)).status == 201
    manager = web.browser()
    await manager.sign_in("manager")
    headers = {"Idempotency-Key": "k1"}
    change = ("PATCH", "/api/cameras/cam_1", {"name": "New"}, headers)
    assert (await manager.ask(*change)).status == 200
    assert REPLAYED in (await manager.ask(*change)).headers
    assert (await owner.ask("PATCH", "/api/users/manager", {"grants": {}})).status == 200
    assert reason(await manager.ask(*change)) == (422, "request_key_reused")


async def test_what_was_refused_can_be_sent_again(web: RunningWeb) -> None:
    owner = await web.owner()
    assert (await keyed(owner, "/api/cameras", {**CAMERA, "site": "nowhere"})).status == 404
    assert (await keyed(owner, "/api/cameras", {})).status == 400
    made = await keyed(owner, "/api/cameras", {"camera_id": "cam_1", "name": "G", "source": {"url": "test://moving"}})
    assert made.status == 201


async def test_a_secret_is_not_said_twice(web: RunningWeb) -> None:
    owner = await web.owner()
    first = await keyed(owner, "/api/tokens", {"name": "robot"})
    assert first.status == 201
    assert reason(await keyed(owner, "/api/tokens", {"name": "robot"})) == (409, "repeat_secret")
    assert len((await owner.get("/api/tokens")).body["tokens"]) == 1
    rows = await web.store.read(_rows)
    assert not any(first.body["secret"] in str(row) for row in rows)


async def test_somebody_with_a_password_is_told_of_twice(web: RunningWeb) -> None:
    """The answer holds no secret then; without a password it holds a link."""
    owner = await web.owner()
    with_one = {"login": "kato", "role": "viewer", "password": PASSWORD}
    first = await keyed(owner, "/api/users", with_one)
    again = await keyed(owner, "/api/users", with_one)
    assert (again.status, again.content, again.headers[REPLAYED]) == (201, first.content, "true")
    assert PASSWORD not in str(await web.store.read(_rows))
    without = {"login": "sato", "role": "viewer"}
    assert (await keyed(owner, "/api/users", without, "k2")).status == 201
    assert reason(await keyed(owner, "/api/users", without, "k2")) == (409, "repeat_secret")


async def test_a_tenant_is_made_once(web: RunningWeb) -> None:
    """It is written beyond the caller's own tenant, with the key at the caller's."""
    owner = await web.owner()
    acme = {"name": "acme", "admin": "kato"}
    assert (await keyed(owner, "/api/tenants", acme)).status == 201
    assert reason(await keyed(owner, "/api/tenants", acme)) == (409, "repeat_secret")
    assert reason(await keyed(owner, "/api/tenants", acme, "k2")) == (409, "tenant_taken")
    page = (await owner.get("/api/tenants?limit=1")).body
    assert ([one["name"] for one in page["tenants"]], page["next_after"]) == (["acme"], "acme")
    rest = (await owner.get("/api/tenants?limit=2&after=acme")).body
    assert ([one["name"] for one in rest["tenants"]], rest["next_after"]) == (["default"], None)


async def test_an_errand_is_asked_for_once(web: RunningWeb) -> None:
    owner = await web.owner()
    assert (await owner.post("/api/cameras", {**CAMERA, "name": "Gate"})).status == 201
    first = await keyed(owner, "/api/cameras/cam_1/look", None)
    again = await keyed(owner, "/api/cameras/cam_1/look", None)
    assert (first.status, again.status, again.body) == (202, 202, first.body)


async def test_when_the_answer_was_lost_it_is_known_that_it_was_done(web: RunningWeb) -> None:
    owner = await web.owner()
    await keyed(owner, "/api/cases", CASE)
    await web.store.write(execute, "UPDATE request_keys SET status = NULL, body = NULL", {})
    assert reason(await keyed(owner, "/api/cases", CASE)) == (409, "repeat_no_answer")
    assert await cases(owner) == ["One"]


async def test_keys_are_bounded(web: RunningWeb) -> None:
    owner = await web.owner()
    fill = (
        "INSERT INTO request_keys (tenant_id, caller, key_hash, fingerprint, created_at) "
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) "
        "SELECT 1, u.user_id || '.', 'x' || i, '', 0 FROM n, users u"
    )
    await web.store.write(execute, fill, {"most": request_keys.KEYS_PER_CALLER_MAX})
    assert reason(await keyed(owner, "/api/cases", CASE)) == (429, "request_keys_full")
    assert await cases(owner) == []


async def _rows(tx: Tx) -> list[tuple[Any, ...]]:
    rows = await tx.all("SELECT caller, key_hash, fingerprint, status, body FROM request_keys")
    return [(row["caller"], row["key_hash"], row["fingerprint"], row["status"], row["body"]) for row in rows]
