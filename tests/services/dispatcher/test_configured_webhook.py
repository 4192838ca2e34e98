"""The receiver that the setting [webhook] url stands for."""

import json
from dataclasses import replace
from typing import Any

from camserver.base.credentials import open_sealed
from camserver.base.errors import StoreUnavailable
from camserver.base.secrets import Secret
from camserver.config.secret_files import make_secrets
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher.configured import NAME, keep_configured
from camserver.store import receivers, tenants
from camserver.store.receivers import ReceiverChange, StoredReceiver, secrets_of
from tests.services.dispatcher.stage import Stage, StoreProxy

FIRST, SECOND = "https://hooks.example/first-token", "https://hooks.example/second-token"


async def keep(stage: Stage, url: str | None, store: Any = None) -> None:
    webhook = replace(stage.settings.webhook, url=None if url is None else Secret(url))
    stage.settings = replace(stage.settings, webhook=webhook)
    key = make_secrets(stage.settings).credential_key_bytes()
    await keep_configured(store or stage.store, stage.clock, stage.settings, key)


async def admin(stage: Stage) -> Principal:
    tenant_id = await stage.store.read(tenants.home)
    assert tenant_id is not None
    return Principal(tenant_id, None, Role.SYSTEM_ADMIN)


async def found(stage: Stage) -> list[StoredReceiver]:
    return list(await stage.store.as_(await admin(stage)).read(receivers.page))


def address(stage: Stage, receiver: StoredReceiver) -> str | None:
    if receiver.sealed is None:
        return None
    key = make_secrets(stage.settings).credential_key_bytes()
    plain = open_sealed(key, receiver.tenant_id, secrets_of(receiver.receiver_uuid), receiver.sealed)
    return str(json.loads(plain)["url"])


async def test_it_follows_the_setting(stage: Stage) -> None:
    await keep(stage, None)
    assert await found(stage) == []
    await keep(stage, FIRST)
    (made,) = await found(stage)
    assert (made.name, made.kind, made.enabled, address(stage, made)) == (NAME, "webhook", True, FIRST)
    await keep(stage, FIRST)
    assert await found(stage) == [made], "nothing is written when nothing changed"
    await keep(stage, SECOND)
    (changed,) = await found(stage)
    assert (changed.receiver_id, address(stage, changed)) == (made.receiver_id, SECOND)
    await keep(stage, None)
    (off,) = await found(stage)
    assert (off.enabled, address(stage, off)) == (False, None)
    await keep(stage, FIRST)
    (again,) = await found(stage)
    assert (again.enabled, address(stage, again)) == (True, FIRST)


async def test_what_people_change_stays(stage: Stage) -> None:
    await keep(stage, FIRST)
    (made,) = await found(stage)
    change = ReceiverChange(enabled=False, language="en", hourly_cap=5)
    await stage.store.as_(await admin(stage)).write(receivers.change, made.receiver_uuid, change, "", 1)
    await keep(stage, SECOND)
    (kept,) = await found(stage)
    assert (kept.enabled, kept.language, kept.hourly_cap, address(stage, kept)) == (False, "en", 5, SECOND)


class FirstAway(StoreProxy):
    failures = 2

    async def around(self, name: str, call: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("cut off by the test")
        return await call()


async def test_a_store_that_is_away_is_waited_for(stage: Stage) -> None:
    await keep(stage, FIRST, FirstAway(stage.store))
    assert len(await found(stage)) == 1
