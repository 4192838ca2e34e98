"""Switching browsers on and off through the API."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.clients.push_sealing import decoded
from camserver.store import Store
from tests.fakes.push import Browser as PushBrowser
from tests.rig.clock import ManualClock
from tests.services.web.rig import LoggedLines, RunningWeb, running_web
from tests.store.people_rows import count_rows

ENDPOINT = "https://push.example/wpush/v2/gAAAAABk"


def asked(endpoint: str = ENDPOINT, **changes: object) -> dict[str, object]:
    browser = PushBrowser()
    return {"endpoint": endpoint, "keys": {"p256dh": browser.p256dh, "auth": browser.auth}, **changes}


async def test_a_browser_is_switched_on_and_off(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    key = (await owner.get("/api/push/key")).body
    assert len(decoded(key["public_key"])) == 65
    assert key["enabled"] is False

    reply = await owner.post("/api/push/subscriptions", asked())
    assert reply.status == 201, reply.content
    assert reply.body["endpoint_hash"] == hashlib.sha256(ENDPOINT.encode()).hexdigest()
    # Switching a browser on is all that is needed.
    assert (await owner.get("/api/push/key")).body["enabled"] is True
    assert (await owner.post("/api/push/subscriptions", asked())).status == 201
    [own] = (await owner.get("/api/push/subscriptions")).body["subscriptions"]
    assert own["failures"] == 0
    assert ENDPOINT not in str(own)

    gone = await owner.ask("DELETE", f"/api/push/subscriptions/{own['subscription_uuid']}")
    assert gone.status == 204
    assert (await owner.get("/api/push/subscriptions")).body == {"subscriptions": []}
    again = await owner.ask("DELETE", f"/api/push/subscriptions/{own['subscription_uuid']}")
    assert again.status == 404
    # The receiver stays for the next one.
    assert await web_on_each.store.read(count_rows, "receivers") == 1


async def test_the_key_is_the_same_after_a_restart(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        async with running_web(sqlite_store, clock, tmp_path) as web:
            keys.append((await web.browser().get("/api/push/key", web.local_admin)).body["public_key"])
    assert keys[0] == keys[1]


async def test_a_program_has_no_browser(web: RunningWeb) -> None:
    reply = await web.browser().post("/api/push/subscriptions", asked(), web.local_admin)
    assert reply.status == 403
    reply = await web.browser().ask("DELETE", "/api/push/subscriptions/x", headers=web.local_admin)
    assert reply.status == 403
    # Nor has one that stands for a person: it would be told where its token no longer works.
    secret = (await (await web.owner()).post("/api/tokens", {"name": "t", "scopes": ["read"]})).body["secret"]
    reply = await web.browser().post("/api/push/subscriptions", asked(), {"Authorization": f"Bearer {secret}"})
    assert (reply.status, reply.body["details"]["reason"]) == (403, "push_needs_person")


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://push.example/1",
        "https://10.0.0.7/1",
        "https://[::1]/1",
        "https://user:word@push.example/1",
        "ftp://push.example/1",
        "https:///1",
        "https://push.example/ 1",
        "https://push.example:99999/1",
        "http://127.0.0.1:9/1",
    ],
)
async def test_addresses_that_no_push_service_has(web: RunningWeb, endpoint: str) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/push/subscriptions", asked(endpoint))
    assert reply.status == 400, reply.content
    assert reply.body["details"]["reason"] == "push_endpoint"


async def test_keys_that_no_browser_makes(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/push/subscriptions", asked(keys={"p256dh": "x", "auth": "y"}))
    assert reply.status == 400
    assert reply.body["details"]["reason"] == "push_keys"


@pytest.fixture
async def loopback_web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    environ = {"CAMSERVER_DELIVERIES_ALLOW_LOOPBACK": "true"}
    async with running_web(sqlite_store, clock, tmp_path, environ) as running:
        yield running


async def test_a_push_service_on_this_machine_where_that_is_allowed(loopback_web: RunningWeb) -> None:
    owner = await loopback_web.owner()
    assert (await owner.post("/api/push/subscriptions", asked("http://127.0.0.1:9/1"))).status == 201
    assert (await owner.post("/api/push/subscriptions", asked("http://10.0.0.7:9/1"))).status == 400


async def test_no_secret_of_a_browser_is_logged(web: RunningWeb, logged: LoggedLines) -> None:
    owner = await web.owner()
    body = asked()
    keys = body["keys"]
    assert isinstance(keys, dict)
    assert (await owner.post("/api/push/subscriptions", body)).status == 201
    assert (await owner.post("/api/push/subscriptions", {**body, "more": 1})).status == 400
    text = "\n".join(logged.lines)
    assert keys["auth"] not in text
    assert ENDPOINT not in text


async def test_pages_may_have_a_worker_of_their_own_and_a_manifest(web: RunningWeb) -> None:
    policy = (await web.browser().get("/healthz")).headers["Content-Security-Policy"]
    assert "worker-src 'self'" in policy
    assert "manifest-src 'self'" in policy
