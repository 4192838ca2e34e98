"""A connection to an MQTT broker: publish and be sure, subscribe, and leave a last will.

The broker's name is resolved by the caller, who has checked the address; with TLS the certificate is held against
the name all the same. Nothing here reconnects, and nothing knows what is published.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiomqtt

from camserver.base.errors import CamError, Reject, Retry
from camserver.base.log import get_logger
from camserver.domain.deliveries import Hidden

log = get_logger(__name__)

# For each packet that is answered, connecting included.
TIMEOUT_SEC = 15.0
# The broker publishes the last will when it heard nothing for one and a half times as long.
KEEPALIVE_SEC = 30
INCOMING_MAX = 10_000
# Unacknowledged at once; more wait in line.
IN_FLIGHT_MAX = 20
# SUBACK: from here on codes are refusals.
REFUSED_FROM = 128
# Codes of MQTT 5, into which the library translates those of 3.1.1.
_WRONG_LOGIN = frozenset({134, 135})


class BrokerAway(Retry):
    """The broker does not answer, or went away: the outcome of what was under way is unknown."""

    code = "broker_away"


class BrokerRefused(Reject):
    """The broker answers and does not want us, which stays so until somebody changes a setting."""

    code = "broker_refused"


@dataclass(frozen=True, slots=True)
class Broker:
    host: str
    port: int
    tls: bool = False
    ca: str = ""  # PEM; empty = the machine's own authorities
    username: str = ""
    password: Hidden | None = None
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    topic: str
    payload: bytes
    retained: bool


@dataclass(frozen=True, slots=True)
class Will:
    topic: str
    payload: str


class Connection:
    """Open until its context ends. Several tasks may publish at once."""

    def __init__(self, client: aiomqtt.Client, host: str) -> None:
        self._client = client
        self._host = host

    async def publish(self, topic: str, payload: bytes | str, *, retain: bool = False) -> None:
        """Returns when the broker has taken it (PUBACK)."""
        try:
            await self._client.publish(topic, payload, qos=1, retain=retain)
        except (aiomqtt.MqttError, ValueError, OSError) as error:
            raise _mapped(error, self._host) from None

    async def subscribe(self, topic_filter: str) -> None:
        try:
            granted = await self._client.subscribe(topic_filter, qos=1)
            if any(getattr(code, "value", code) >= REFUSED_FROM for code in granted):
                log.warning("mqtt_subscription_refused", host=self._host, topic=topic_filter)
        except (aiomqtt.MqttError, ValueError, OSError) as error:
            raise _mapped(error, self._host) from None

    async def heard(self) -> AsyncIterator[Heard]:
        """What comes in, until the connection ends, which is raised."""
        try:
            async for message in self._client.messages:
                payload = message.payload
                yield Heard(message.topic.value, payload if isinstance(payload, bytes) else b"", bool(message.retain))
        except (aiomqtt.MqttError, OSError) as error:
            raise _mapped(error, self._host) from None


@asynccontextmanager
async def connect(broker: Broker, address: str, will: Will | None = None) -> AsyncIterator[Connection]:
    """`address`: where the broker's name was found to be. The will is retained."""
    tls = _tls_context(broker) if broker.tls else None
    last = None if will is None else aiomqtt.Will(will.topic, will.payload, qos=1, retain=True)
    client = aiomqtt.Client(
        address,
        broker.port,
        username=broker.username or None,
        password=broker.password.reveal() if broker.password else None,
        identifier=broker.client_id or None,
        will=last,
        clean_session=True,
        timeout=TIMEOUT_SEC,
        keepalive=KEEPALIVE_SEC,
        max_queued_incoming_messages=INCOMING_MAX,
        max_inflight_messages=IN_FLIGHT_MAX,
        tls_context=tls,
    )
    client.pending_calls_threshold = IN_FLIGHT_MAX
    # How it ended is looked at here, or asyncio complains that nobody did: who has left does not.
    client._disconnected.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await _enter(client, broker.host)
    except BrokerRefused:
        if tls is not None:
            tls.close_wrapped()
        raise
    try:
        yield Connection(client, broker.host)
    finally:
        await _leave(client, broker.host)


async def _enter(client: aiomqtt.Client, host: str) -> None:
    entering = asyncio.ensure_future(client.__aenter__())
    try:
        await asyncio.shield(entering)
    except asyncio.CancelledError:
        # A thread connects and can't be interrupted. What it opens must not stay: it has our name at the broker.
        entering.add_done_callback(lambda done: _undo(client, done))
        raise
    except (aiomqtt.MqttError, ValueError, OSError) as error:
        # Without an answer in time the library leaves the socket open.
        _close(client)
        raise _mapped(error, host) from None


def _undo(client: aiomqtt.Client, entered: "asyncio.Future[aiomqtt.Client]") -> None:
    if not entered.cancelled() and entered.exception() is None:
        _close(client)


def _close(client: aiomqtt.Client) -> None:
    # The library's own way out waits for an answer that may never come.
    client._client.disconnect()


async def _leave(client: aiomqtt.Client, host: str) -> None:
    """Says goodbye, so that the will is not published. A connection that is gone already says nothing."""
    try:
        await client.__aexit__(None, None, None)
    except (aiomqtt.MqttError, OSError) as error:
        log.debug("mqtt_goodbye_not_said", host=host, why=str(error))


def _mapped(error: Exception, host: str) -> CamError:
    if isinstance(error, ssl.SSLError):
        why = getattr(error, "verify_message", "") or error.reason or "TLS failed"
        return BrokerRefused(f"the MQTT broker {host} is not trusted: {why}; check `tls`, `ca` and the host's name")
    # Numbers are the library's own errors; what the broker says is of another type.
    said = error.rc if isinstance(error, aiomqtt.MqttCodeError) and not isinstance(error.rc, int) else None
    if said is not None and said.value in _WRONG_LOGIN:
        return BrokerRefused(f"the MQTT broker {host} refuses user name or password; enter them again")
    # The library wraps what happened while connecting.
    if isinstance(error, aiomqtt.MqttError) and isinstance(error.__context__, ssl.SSLError):
        return _mapped(error.__context__, host)
    return BrokerAway(f"the MQTT broker {host} can't be reached or went away: {error}; it is tried again")


class _NamedContext(ssl.SSLContext):
    """Checks the certificate for the broker's name, though the connection is made to its address."""

    server_name = ""
    _wrapped: ssl.SSLSocket | None = None

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        self._wrapped = super().wrap_socket(*args, **{**options, "server_hostname": self.server_name})
        return self._wrapped

    def close_wrapped(self) -> None:
        """The library forgets the socket of a handshake that failed."""
        if self._wrapped is not None:
            self._wrapped.close()


def _tls_context(broker: Broker) -> _NamedContext:
    context = _NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.server_name = broker.host
    if broker.ca:
        try:
            context.load_verify_locations(cadata=broker.ca)
        except ssl.SSLError:
            raise BrokerRefused("the `ca` of the MQTT broker is no certificate in PEM; paste it again") from None
    else:
        context.load_default_certs()
    return context
