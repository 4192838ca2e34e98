import hashlib

import pytest
from uuid_utils import uuid7

from camserver.base.credentials import Sealed
from camserver.base.errors import NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, push_subscriptions
from camserver.store.push_subscriptions import FAILURES_MAX, PER_USER_MAX, NewSubscription, Subscribed
from camserver.store.receivers import NewReceiver
from tests.store.people_rows import NOW_MS, add_tenant, add_user, audit_rows, count_rows, disable_user, execute

pytestmark = pytest.mark.asyncio(loop_scope="module")


def browser(name: str) -> NewSubscription:
    endpoint = f"https://push.example/{name}"
    return NewSubscription(
        subscription_uuid=str(uuid7()),
        endpoint=endpoint,
        endpoint_hash=hashlib.sha256(endpoint.encode()).hexdigest(),
        p256dh="point",
        sealed=Sealed("key", b"n" * 12, b"sealed"),
        language="en",
        user_agent="Browser " * 100,
    )


async def subscribe(store: Store, tenant_id: int, user_id: int, name: str) -> NewSubscription:
    made = browser(name)
    await store.write(push_subscriptions.add, tenant_id, user_id, made, "10.0.0.1", NOW_MS)
    return made


async def told(
    store: Store, tenant_id: int, site_id: int | None = None, logins: tuple[str, ...] | None = None
) -> list[str]:
    found = await store.read(push_subscriptions.to_tell, tenant_id, site_id, logins)
    return [one.endpoint.rpartition("/")[2] for one in found]


def named(tenant_id: int, user_id: int) -> Principal:
    return Principal(tenant_id, user_id, Role.VIEWER)


async def test_a_browser_belongs_to_who_switched_it_on_last(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    other = await store.write(add_tenant, "two", NOW_MS)
    ann = await store.write(add_user, home.tenant_id, "ann", "viewer", None, NOW_MS)
    bob = await store.write(add_user, other.tenant_id, "bob", "viewer", None, NOW_MS)
    first = await subscribe(store, home.tenant_id, ann, "shared")
    own = await store.as_(named(home.tenant_id, ann)).read(push_subscriptions.own)
    assert [(one.subscription_uuid, one.endpoint_hash) for one in own] == [
        (first.subscription_uuid, first.endpoint_hash)
    ]
    assert len(own[0].user_agent) == 255

    await subscribe(store, other.tenant_id, bob, "shared")
    assert await told(store, home.tenant_id) == []
    assert await told(store, other.tenant_id) == ["shared"]
    assert await store.as_(named(home.tenant_id, ann)).read(push_subscriptions.own) == ()


async def test_those_who_may_see_are_told(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    other = await store.write(add_tenant, "two", NOW_MS)
    for login, role in (("ann", "viewer"), ("bob", "tenant_admin"), ("machine", "worker")):
        user_id = await store.write(add_user, home.tenant_id, login, role, None, NOW_MS)
        await subscribe(store, home.tenant_id, user_id, login)
    stranger = await store.write(add_user, other.tenant_id, "eve", "system_admin", None, NOW_MS)
    await subscribe(store, other.tenant_id, stranger, "eve")

    assert await told(store, home.tenant_id, home.site_id) == ["ann", "bob"]
    assert await told(store, home.tenant_id, None) == ["ann", "bob"]
    assert await told(store, home.tenant_id, home.site_id, ("bob", "eve")) == ["bob"]
    assert await told(store, home.tenant_id, home.site_id, ()) == []
    await store.write(disable_user, "ann")
    assert await told(store, home.tenant_id, home.site_id) == ["bob"]
    [subscribed] = await store.read(push_subscriptions.to_tell, home.tenant_id, None, None)
    assert isinstance(subscribed, Subscribed)
    assert subscribed.sealed == Sealed("key", b"n" * 12, b"sealed")
    assert "sealed" not in repr(subscribed)


async def test_one_removes_only_ones_own(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    ann = await store.write(add_user, home.tenant_id, "ann", "viewer", None, NOW_MS)
    bob = await store.write(add_user, home.tenant_id, "bob", "viewer", None, NOW_MS)
    made = await subscribe(store, home.tenant_id, ann, "anns")
    with pytest.raises(NotFound):
        await store.as_(named(home.tenant_id, bob)).write(
            push_subscriptions.remove, made.subscription_uuid, "", NOW_MS
        )
    await store.as_(named(home.tenant_id, ann)).write(push_subscriptions.remove, made.subscription_uuid, "", NOW_MS)
    assert await told(store, home.tenant_id) == []
    assert [row[1] for row in await store.read(audit_rows)] == ["push_subscribed", "push_unsubscribed"]


async def test_a_person_has_so_many_browsers_and_they_go_with_the_person(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    ann = await store.write(add_user, home.tenant_id, "ann", "viewer", None, NOW_MS)
    for number in range(PER_USER_MAX + 2):
        await subscribe(store, home.tenant_id, ann, str(number))
    assert await told(store, home.tenant_id) == [str(number) for number in range(2, PER_USER_MAX + 2)]
    await store.write(execute, "DELETE FROM users WHERE user_id = :user_id", {"user_id": ann})
    assert await store.read(count_rows, "push_subscriptions") == 0


async def test_what_an_attempt_teaches(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    ann = await store.write(add_user, home.tenant_id, "ann", "viewer", None, NOW_MS)
    for name in ("good", "bad", "gone"):
        await subscribe(store, home.tenant_id, ann, name)
    good, bad, gone = (
        one.subscription_id for one in await store.read(push_subscriptions.to_tell, home.tenant_id, None, None)
    )
    await store.write(push_subscriptions.settle, (good,), (bad,), (gone,), NOW_MS + 5)
    own = await store.as_(named(home.tenant_id, ann)).read(push_subscriptions.own)
    assert [(one.last_ok_at, one.failures) for one in own] == [(None, 1), (NOW_MS + 5, 0)]

    for _ in range(FAILURES_MAX - 2):
        await store.write(push_subscriptions.settle, (), (bad,), (), NOW_MS)
    assert await told(store, home.tenant_id) == ["good", "bad"]
    await store.write(push_subscriptions.settle, (bad,), (), (), NOW_MS)
    for _ in range(FAILURES_MAX):
        await store.write(push_subscriptions.settle, (), (bad,), (), NOW_MS)
    assert await told(store, home.tenant_id) == ["good"]


async def test_the_first_browser_makes_the_receiver(fresh_store: Store) -> None:
    store = fresh_store
    home = await store.write(add_tenant, "one", NOW_MS)
    ann = await store.write(add_user, home.tenant_id, "ann", "viewer", None, NOW_MS)
    anns = store.as_(named(home.tenant_id, ann))
    assert not await anns.read(push_subscriptions.is_sent)
    for _ in range(2):
        new = NewReceiver(str(uuid7()), "Browser push", "push", "{}", None, "en", None)
        await anns.write(push_subscriptions.ensure_receiver, new, "", NOW_MS)
    assert await anns.read(push_subscriptions.is_sent)
    assert await store.read(count_rows, "receivers") == 1

    await store.write(execute, "UPDATE receivers SET enabled = 0", {})
    await anns.write(push_subscriptions.ensure_receiver, new, "", NOW_MS)
    assert not await anns.read(push_subscriptions.is_sent)
    assert await store.read(count_rows, "receivers") == 1
