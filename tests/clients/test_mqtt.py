import asyncio
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import psutil
import pytest

from camserver.base.secrets import Secret
from camserver.clients.mqtt import Broker, BrokerAway, BrokerRefused, Connection, Heard, Will, connect
from tests.rig import mosquitto as rig
from tests.rig.certificates import self_signed
from tests.rig.mosquitto import mosquitto
from tests.rig.polling import TIMEOUT_SEC, until
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of

pytestmark = pytest.mark.skipif(rig.PROGRAM is None, reason="mosquitto is not installed")


async def hear(connection: Connection, topic: str) -> Heard:
    """The next message of a topic."""
    async with asyncio.timeout(TIMEOUT_SEC), aclosing(connection.heard()) as heard:
        async for one in heard:
            if one.topic == topic:
                return one
    raise AssertionError("the connection ended without an error")


async def test_what_is_published_is_heard_and_what_is_retained_is_heard_later(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as running:
        broker = Broker("localhost", running.port)
        async with connect(broker, LOOPBACK) as one, connect(broker, LOOPBACK) as other:
            await other.subscribe("house/+")
            await one.publish("house/now", b"\x00\xff")
            await one.publish("house/kept", "stays", retain=True)
            assert await hear(other, "house/now") == Heard("house/now", b"\x00\xff", False)
            assert await hear(other, "house/kept") == Heard("house/kept", b"stays", False)
        async with connect(broker, LOOPBACK) as late:
            await late.subscribe("house/#")
            assert await hear(late, "house/kept") == Heard("house/kept", b"stays", True)


async def test_the_will_is_published_when_the_name_is_taken_over_and_not_after_a_goodbye(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as running:
        broker = Broker("localhost", running.port)
        named = Broker("localhost", running.port, client_id="link")
        async with connect(broker, LOOPBACK) as watching:
            await watching.subscribe("up")
            async with connect(named, LOOPBACK, Will("up", "offline")) as well:
                await well.publish("up", "online", retain=True)
            assert (await hear(watching, "up")).payload == b"online"
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(connect(named, LOOPBACK, Will("up", "offline")))
                async with connect(named, LOOPBACK):
                    # Nothing came with the goodbye above: this is the first one since.
                    assert (await hear(watching, "up")).payload == b"offline"


async def test_tls_and_password(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path / "broker.pem")
    pem = certificate.path.read_text().partition("-----BEGIN PRIVATE")[0]
    with mosquitto(tmp_path, certificate, ("camserver", "right horse")) as running:
        good = Broker(LOOPBACK, running.port, True, pem, "camserver", Secret("right horse"))
        async with connect(good, LOOPBACK) as connection:
            await connection.publish("a", "b")
        wrong = Broker(LOOPBACK, running.port, True, pem, "camserver", Secret("wrong horse"))
        with pytest.raises(BrokerRefused, match="user name or password"):
            async with connect(wrong, LOOPBACK):
                pass
        untrusted = Broker(LOOPBACK, running.port, True, "", "camserver", Secret("right horse"))
        with pytest.raises(BrokerRefused, match="not trusted"):
            async with connect(untrusted, LOOPBACK):
                pass
        # The address answers with a certificate, but not with one for the name that was asked for.
        other_name = Broker("broker.example", running.port, True, pem, "camserver", Secret("right horse"))
        with pytest.raises(BrokerRefused, match="not trusted"):
            async with connect(other_name, LOOPBACK):
                pass


def test_a_ca_that_is_none_is_refused() -> None:
    async def go() -> None:
        with pytest.raises(BrokerRefused, match="PEM"):
            async with connect(Broker(LOOPBACK, 1, True, "no certificate"), LOOPBACK):
                pass

    asyncio.run(go())


async def test_a_broker_that_is_away_or_goes_away(tmp_path: Path) -> None:
    with pytest.raises(BrokerAway):
        async with connect(Broker("localhost", free_port()), LOOPBACK):
            pass
    with mosquitto(tmp_path) as running:
        async with connect(Broker("localhost", running.port), LOOPBACK) as connection:
            await connection.subscribe("a")
            running.crash()
            with pytest.raises(BrokerAway):
                await hear(connection, "a")
            with pytest.raises(BrokerAway):
                await connection.publish("a", "b")


async def test_a_broker_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("camserver.clients.mqtt.TIMEOUT_SEC", 0.2)
    with listening_socket() as silent:
        with pytest.raises(BrokerAway):
            async with connect(Broker("localhost", port_of(silent)), LOOPBACK):
                pass
        accepted, _ = silent.accept()
        with accepted:
            accepted.settimeout(TIMEOUT_SEC)
            said = b""
            # Its end: what never was a connection must not stay one.
            while more := await asyncio.to_thread(accepted.recv, 4096):
                said += more
            assert said.startswith(b"\x10")


async def test_a_connection_that_is_given_up_while_it_is_made_does_not_stay(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as running:
        named = Broker("localhost", running.port, client_id="link")
        for turns in range(20):

            async def use() -> None:
                async with connect(named, LOOPBACK):
                    await asyncio.Event().wait()

            task = asyncio.create_task(use())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await until(lambda: connections_to(running.port) == 0, "the end of all connections")


def connections_to(port: int) -> int:
    return sum(
        bool(one.raddr) and one.raddr.port == port and one.status == psutil.CONN_ESTABLISHED
        for one in psutil.Process().net_connections("tcp")
    )
