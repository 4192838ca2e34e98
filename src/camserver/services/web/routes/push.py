"""Browser push: the key that browsers subscribe with, and a person's own browsers."""

import hashlib
import ipaddress
from dataclasses import asdict
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path
from uuid_utils import uuid7

from camserver.base.credentials import seal
from camserver.base.errors import BadInput, Forbidden
from camserver.clients.push_sealing import ServerKey, encoded, parse_keys
from camserver.domain.deliveries import ReceiverKind
from camserver.domain.people import Permission
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import push_subscriptions
from camserver.store.push_subscriptions import NewSubscription
from camserver.store.receivers import NewReceiver
from camserver.wire import api

routes = Routes()

SubscriptionUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
_RECEIVER_NAMES = {"ja": "ブラウザ通知", "en": "Browser push"}


@routes.get("/api/push/key", Permission.READ)
async def get_push_key(call: TheCall) -> api.PushKey:
    """The key that a browser subscribes with."""
    key = ServerKey(call.web.secrets.push_key_bytes())
    return api.PushKey(public_key=key.public, enabled=await call.store.read(push_subscriptions.is_sent))


@routes.get("/api/push/subscriptions", Permission.READ)
async def list_push_subscriptions(call: TheCall) -> api.PushSubscriptionList:
    """One's own browsers."""
    found = await call.store.read(push_subscriptions.own)
    return api.PushSubscriptionList(subscriptions=[api.PushSubscription.model_validate(asdict(one)) for one in found])


@routes.post("/api/push/subscriptions", Permission.READ, status_code=201)
async def add_push_subscription(call: TheCall, asked: api.PushSubscriptionAsked) -> api.PushSubscription:
    """Switches notifications on for the browser that asks. Asked again, it replaces itself."""
    user_id = _person(call)
    endpoint = _checked(asked.endpoint, call.web.settings.deliveries.allow_loopback)
    keys = parse_keys(asked.keys.p256dh, asked.keys.auth)
    subscription_uuid = str(uuid7())
    tenant_id = call.principal.tenant_id
    sealed = seal(
        call.web.secrets.credential_keys,
        tenant_id,
        f"push:{subscription_uuid}",
        encoded(keys.auth).encode(),
    )
    new = NewSubscription(
        subscription_uuid=subscription_uuid,
        endpoint=endpoint,
        endpoint_hash=hashlib.sha256(endpoint.encode()).hexdigest(),
        p256dh=encoded(keys.p256dh),
        sealed=sealed,
        language=asked.language or call.language,
        user_agent=call.request.headers.get("user-agent", ""),
    )
    await call.web.store.write(push_subscriptions.add, tenant_id, user_id, new, call.address, call.now_ms)
    await call.store.write(push_subscriptions.ensure_receiver, _receiver(call), call.address, call.now_ms)
    return api.PushSubscription(
        subscription_uuid=subscription_uuid,
        endpoint_hash=new.endpoint_hash,
        user_agent=new.user_agent[: push_subscriptions.USER_AGENT_MAX_CHARS],
        created_at=call.now_ms,
        last_ok_at=None,
        failures=0,
    )


@routes.delete("/api/push/subscriptions/{subscription_uuid}", Permission.READ, status_code=204, repeat=Repeat.ANSWER)
async def remove_push_subscription(call: TheCall, subscription_uuid: SubscriptionUuid) -> None:
    """Switches one of one's own browsers off."""
    _person(call)
    await call.store.write(push_subscriptions.remove, subscription_uuid, call.address, call.now_ms)


def _person(call: Call) -> int:
    user_id = call.principal.user_id
    if user_id is None or call.principal.token_id is not None:
        raise Forbidden("only people have browsers to be told through; sign in", reason="push_needs_person")
    return user_id


def _receiver(call: Call) -> NewReceiver:
    return NewReceiver(
        receiver_uuid=str(uuid7()),
        name=_RECEIVER_NAMES[call.language],
        kind=ReceiverKind.PUSH.value,
        config="{}",
        sealed=None,
        language=call.language,
        hourly_cap=None,
    )


def _checked(endpoint: str, allow_loopback: bool) -> str:
    """Push services are public and have certificates; anybody who may sign in names this address."""
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _no_endpoint() from None
    plain = endpoint.isascii() and endpoint.isprintable() and " " not in endpoint and not parts.username
    if allow_loopback and parts.scheme == "http" and host == "127.0.0.1" and plain:
        return endpoint
    if parts.scheme != "https" or not host or not plain or _is_address(host) or port == 0:
        raise _no_endpoint()
    return endpoint


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _no_endpoint() -> BadInput:
    return BadInput(
        "the address of the push subscription is not one of a push service; switch notifications on in the browser",
        reason="push_endpoint",
    )
