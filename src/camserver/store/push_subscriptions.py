"""Browsers that people have asked to be told through, and what became of telling them.

A browser belongs to whoever switched it on last. Its secret arrives here sealed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from camserver.base.credentials import Sealed
from camserver.base.errors import NotFound
from camserver.domain.deliveries import ReceiverKind
from camserver.domain.people import Permission, Principal, Role
from camserver.store import audit, grants, receivers
from camserver.store.receivers import NewReceiver
from camserver.store.tx import Row, Scoped, Tx

PER_USER_MAX: Final = 20
PER_MESSAGE_MAX: Final = 1_000
USER_AGENT_MAX_CHARS: Final = 255
# In a row; after so many it is taken for lost.
FAILURES_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class NewSubscription:
    subscription_uuid: str
    endpoint: str
    endpoint_hash: str
    p256dh: str
    sealed: Sealed = field(repr=False)
    language: str = "ja"
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class OwnSubscription:
    """As its owner sees it."""

    subscription_uuid: str
    endpoint_hash: str
    user_agent: str
    created_at: int
    last_ok_at: int | None
    failures: int


@dataclass(frozen=True, slots=True)
class Subscribed:
    """As the sender needs it."""

    subscription_id: int
    subscription_uuid: str
    tenant_id: int
    endpoint: str
    p256dh: str
    sealed: Sealed = field(repr=False)
    language: str
    failures: int


async def add(tx: Tx, tenant_id: int, user_id: int, new: NewSubscription, address: str, now_ms: int) -> None:
    """Takes a browser in; one that was there, whosever it was, is replaced: it shows what it is sent to anybody.

    Of tenant and user in whose name it is called: an address may be another tenant's until now.
    """
    await tx.run("DELETE FROM push_subscriptions WHERE endpoint_hash = :hash", hash=new.endpoint_hash)
    await _make_room(tx, user_id)
    await tx.run(
        "INSERT INTO push_subscriptions (subscription_uuid, tenant_id, user_id, endpoint, endpoint_hash, p256dh, "
        "key_id, nonce, ciphertext, language, user_agent, created_at, failures) VALUES (:uuid, :tenant_id, :user_id, "
        ":endpoint, :hash, :p256dh, :key_id, :nonce, :ciphertext, :language, :user_agent, :now_ms, 0)",
        uuid=new.subscription_uuid,
        tenant_id=tenant_id,
        user_id=user_id,
        endpoint=new.endpoint,
        hash=new.endpoint_hash,
        p256dh=new.p256dh,
        key_id=new.sealed.key_id,
        nonce=new.sealed.nonce,
        ciphertext=new.sealed.ciphertext,
        language=new.language,
        user_agent=new.user_agent[:USER_AGENT_MAX_CHARS],
        now_ms=now_ms,
    )
    entry = audit.Entry("push_subscribed", now_ms, address, "push_subscription", new.subscription_uuid)
    await audit.add(tx, tenant_id, user_id, entry)


async def _make_room(tx: Tx, user_id: int) -> None:
    rows = await tx.all(
        "SELECT subscription_id FROM push_subscriptions WHERE user_id = :user_id "
        "ORDER BY subscription_id DESC LIMIT 1000",
        user_id=user_id,
    )
    surplus = [row["subscription_id"] for row in rows][PER_USER_MAX - 1 :]
    if surplus:
        await tx.run("DELETE FROM push_subscriptions WHERE subscription_id IN (:surplus...)", surplus=surplus)


async def own(tx: Scoped) -> tuple[OwnSubscription, ...]:
    """The principal's browsers, the newest first."""
    rows = await tx.all(
        "SELECT subscription_uuid, endpoint_hash, user_agent, created_at, last_ok_at, failures "
        "FROM push_subscriptions WHERE tenant_id = :tenant_id AND user_id = :user_id "
        "ORDER BY subscription_id DESC LIMIT 100",
        user_id=tx.principal.user_id,
    )
    return tuple(
        OwnSubscription(
            row["subscription_uuid"],
            row["endpoint_hash"],
            row["user_agent"],
            row["created_at"],
            row["last_ok_at"],
            row["failures"],
        )
        for row in rows
    )


async def is_sent(tx: Scoped) -> bool:
    """Whether the tenant has a receiver by which browsers are told."""
    row = await tx.one(
        "SELECT receiver_id FROM receivers WHERE tenant_id = :tenant_id AND kind = :kind AND enabled = 1 LIMIT 1",
        kind=ReceiverKind.PUSH.value,
    )
    return row is not None


async def ensure_receiver(tx: Scoped, new: NewReceiver, address: str, now_ms: int) -> None:
    """Adds the receiver of browsers when there is none, so that switching one on is enough. One that is switched off
    stays off."""
    # One at a time, or two first browsers would add two.
    await tx.one("SELECT tenant_id FROM tenants WHERE tenant_id = :tenant_id FOR UPDATE")
    found = await tx.one(
        "SELECT receiver_id FROM receivers WHERE tenant_id = :tenant_id AND (kind = :kind OR name = :name) LIMIT 1",
        kind=ReceiverKind.PUSH.value,
        name=new.name,
    )
    if found is None:
        await receivers.add(tx, new, address, now_ms)


async def remove(tx: Scoped, subscription_uuid: str, address: str, now_ms: int) -> None:
    """One of the principal's own."""
    gone = await tx.run(
        "DELETE FROM push_subscriptions WHERE tenant_id = :tenant_id AND user_id = :user_id "
        "AND subscription_uuid = :uuid",
        user_id=tx.principal.user_id,
        uuid=subscription_uuid,
    )
    if not gone:
        raise NotFound(
            f"there is no push subscription {subscription_uuid} of yours; list them to see those there are",
            reason="no_push_subscription",
        )
    entry = audit.Entry("push_unsubscribed", now_ms, address, "push_subscription", subscription_uuid)
    await audit.add_own(tx, entry)


async def to_tell(
    tx: Tx,
    tenant_id: int,
    site_id: int | None,
    logins: Sequence[str] | None,
    camera_key: int | None = None,
) -> tuple[Subscribed, ...]:
    """The browsers of those who may see the site or camera now, or of the named ones among them; None = everybody."""
    rows = await tx.all(
        "SELECT p.subscription_id, p.subscription_uuid, p.tenant_id, p.endpoint, p.p256dh, p.key_id, p.nonce, "
        "p.ciphertext, p.language, p.failures, u.user_id, u.role, u.granted_only FROM push_subscriptions p "
        "JOIN users u ON u.user_id = p.user_id AND u.tenant_id = p.tenant_id "
        "WHERE p.tenant_id = :tenant_id AND u.disabled = 0 AND (:everybody = 1 OR u.login IN (:logins...)) "
        "ORDER BY p.subscription_id LIMIT :most",
        tenant_id=tenant_id,
        everybody=int(logins is None),
        logins=list(logins or ()),
        most=PER_MESSAGE_MAX,
    )
    wide = [Principal(tenant_id, row["user_id"], Role(row["role"])) for row in rows]
    narrow = await grants.narrowed(tx, wide, {row["user_id"] for row in rows if row["granted_only"]})
    seeing = {one.user_id for one in narrow if _may_see(one, site_id, camera_key)}
    return tuple(_subscribed(row) for row in rows if row["user_id"] in seeing)


def _may_see(principal: Principal, site_id: int | None, camera_key: int | None) -> bool:
    return principal.may(Permission.READ) and (site_id is None or principal.reaches(site_id, camera_key))


def _subscribed(row: Row) -> Subscribed:
    return Subscribed(
        subscription_id=row["subscription_id"],
        subscription_uuid=row["subscription_uuid"],
        tenant_id=row["tenant_id"],
        endpoint=row["endpoint"],
        p256dh=row["p256dh"],
        sealed=Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"])),
        language=row["language"],
        failures=row["failures"],
    )


async def settle(tx: Tx, sent: tuple[int, ...], failed: tuple[int, ...], gone: tuple[int, ...], now_ms: int) -> None:
    """What an attempt taught about browsers: those that got it, those that did not, those that are no more."""
    if sent:
        await tx.run(
            "UPDATE push_subscriptions SET last_ok_at = :now_ms, failures = 0 WHERE subscription_id IN (:ids...)",
            now_ms=now_ms,
            ids=list(sent),
        )
    if failed:
        await tx.run(
            "UPDATE push_subscriptions SET failures = failures + 1 WHERE subscription_id IN (:ids...)",
            ids=list(failed),
        )
        await tx.run(
            "DELETE FROM push_subscriptions WHERE subscription_id IN (:ids...) AND failures >= :most",
            ids=list(failed),
            most=FAILURES_MAX,
        )
    if gone:
        await tx.run("DELETE FROM push_subscriptions WHERE subscription_id IN (:ids...)", ids=list(gone))
