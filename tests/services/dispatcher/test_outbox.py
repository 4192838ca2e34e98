"""The dispatcher as a whole: what is seen is told to whoever is added, and to nobody before."""

import json
from dataclasses import replace

import uuid_utils

from camserver.base.credentials import seal
from camserver.config import make_secrets
from camserver.domain.people import Principal, Role
from camserver.store import receivers
from camserver.store.receivers import NewReceiver, secrets_of
from tests.fakes.analyzer import Seen
from tests.fakes.webhook import FakeWebhook
from tests.rig.polling import poll_async
from tests.services.dispatcher.stage import Stage

DANGER = Seen("human", ("count.single",), severity=2)


async def add_webhook(stage: Stage, hook: FakeWebhook, name: str = "hook") -> str:
    tenant_id = stage.scene.tenant_id
    uuid = str(uuid_utils.uuid7())
    key = make_secrets(stage.settings).credential_key_bytes()
    plain = json.dumps({"url": hook.url, "signing_key": hook.key}).encode()
    sealed = seal(key, tenant_id, secrets_of(uuid), plain)
    scoped = stage.store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    new = NewReceiver(uuid, name, "webhook", "{}", sealed, "en", None)
    await scoped.write(receivers.add, new, "", stage.clock.now_ms())
    return uuid


async def test_an_event_is_told_to_a_receiver_that_was_added_meanwhile(stage: Stage) -> None:
    stage.settings = replace(stage.settings, deliveries=replace(stage.settings.deliveries, allow_loopback=True))
    async with FakeWebhook(key="0123456789abcdef") as hook, stage.dispatcher():
        await stage.analyzed((0, DANGER, stage.clock.now_ms()))
        assert await stage.rows("SELECT 1 AS one FROM deliveries") == [], "nobody receives, so there is no row"

        await add_webhook(stage, hook)
        await stage.clock.advance(10_000)
        await stage.clock.some_turns()
        await stage.analyzed((1, DANGER, stage.clock.now_ms()))

        async def arrived() -> bool:
            found = await stage.rows("SELECT status FROM deliveries")
            return [row["status"] for row in found] == ["done", "done"]

        await poll_async(arrived, "the notice and its message are done")
    (got,) = hook.received
    assert got.signed is True
    assert got.body["severity"] == 2
    assert got.body["title"]
    (message,) = await stage.rows("SELECT delivery_uuid, result FROM deliveries WHERE kind = 'message'")
    assert got.delivery == message["delivery_uuid"]
    assert json.loads(message["result"]) == {"status": 204}
    assert len(await stage.rows("SELECT * FROM notifications")) == 1
