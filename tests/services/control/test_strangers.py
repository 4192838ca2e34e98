"""Connections at the TLS port that say nothing: bounded in time and number, and in nobody's way. Real sockets."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import aiohttp
import pytest

from camserver.base import tls
from camserver.base.errors import Retry
from camserver.config import worker_ca
from camserver.store import Store
from camserver.wire.enrolment import CA_PATH
from tests.rig.clock import ManualClock
from tests.rig.polling import poll_async
from tests.services.control.rig import TIMEOUT_SEC, RunningControl, running_control
from tests.services.control.test_tls import enrolled, far, url

T = TypeVar("T")
EVENT = "connections that said nothing were turned away"
PATIENT = {
    # Nothing here is to end because of its time.
    "CAMSERVER_CONTROL_ARRIVAL_SEC": "600",
    "CAMSERVER_CONTROL_STRANGERS_MAX": "6",
    "CAMSERVER_CONTROL_ADDRESS_STRANGERS_MAX": "4",
}


@pytest.fixture
async def impatient(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningControl]:
    environ = {"CAMSERVER_CONTROL_ARRIVAL_SEC": "2"}
    async with running_control(sqlite_store, clock, tmp_path, environ, tls=True) as running:
        yield running


@pytest.fixture
async def patient(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningControl]:
    async with running_control(sqlite_store, clock, tmp_path, PATIENT, tls=True) as running:
        yield running


@pytest.fixture(autouse=True)
async def _hung_up() -> AsyncIterator[None]:
    yield
    for caller in CALLERS:
        await caller.leave()
    CALLERS.clear()


class Caller:
    """Somebody who connects and then does as the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        CALLERS.append(self)

    async def ended(self) -> None:
        """Waits until the server ends it."""
        async with asyncio.timeout(TIMEOUT_SEC):
            try:
                while await self._reader.read(1024):
                    pass
            except (OSError, ssl.SSLError):
                return  # also an end

    @property
    def is_ended(self) -> bool:
        return self._reader.at_eof()

    async def status(self, path: str) -> int:
        """Of the answer to a whole request."""
        self.say(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        async with asyncio.timeout(TIMEOUT_SEC):
            return int((await self._reader.readline()).split()[1])

    def say(self, data: bytes) -> None:
        self._writer.write(data)

    async def leave(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):  # the other end was faster
            await self._writer.wait_closed()


CALLERS: list[Caller] = []


async def call(control: RunningControl, context: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> Caller:
    """Without a context nothing is said at all; with one, the handshake is done."""
    assert control.tls_port is not None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1",
        control.tls_port,
        ssl=context,
        server_hostname=None if context is None else "127.0.0.1",
        local_addr=(address, 0),
    )
    return Caller(reader, writer)


async def at_last(do: Callable[[], Awaitable[T]]) -> T:
    """Tried until it is done in time, however slow the machine is just now."""

    async def tried() -> tuple[T] | None:
        try:
            return (await do(),)
        except (aiohttp.ClientError, OSError, Retry):
            return None

    return (await poll_async(tried, "done in time"))[0]


def plain_context(control: RunningControl) -> ssl.SSLContext:
    return tls.client_context(worker_ca(control.settings).pem)


async def test_whoever_does_not_shake_hands_is_ended(
    impatient: RunningControl, caplog: pytest.LogCaptureFixture
) -> None:
    await (await call(impatient)).ended()
    half = await call(impatient)
    half.say(b"\x16\x03\x01\x02\x00\x01")
    await half.ended()
    assert EVENT in caplog.text


async def test_whoever_shakes_hands_and_asks_nothing_is_ended(impatient: RunningControl) -> None:
    caller = await at_last(lambda: call(impatient, plain_context(impatient)))
    caller.say(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    await caller.ended()


async def test_a_certificate_buys_no_more_time_for_the_first_request_or_register(impatient: RunningControl) -> None:
    worker = far(impatient, await at_last(lambda: enrolled(impatient)))
    await (await at_last(lambda: call(impatient, worker.context))).ended()
    await (await at_last(worker.open)).closed()


async def test_whoever_has_registered_stays(impatient: RunningControl) -> None:
    elsewhere = far(impatient, await at_last(lambda: enrolled(impatient)))
    worker = await at_last(elsewhere.connect)
    await (await call(impatient)).ended()
    await (await call(impatient)).ended()
    await worker.settled()


async def test_the_first_of_too_many_of_one_address_gives_way(
    patient: RunningControl, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = [await call(patient) for _ in range(4)]
    other = await call(patient, address="127.0.0.2")
    identity = await enrolled(patient)
    # Its connections were of the address that is full.
    await waiting[0].ended()
    worker = await far(patient, identity).connect()
    await worker.settled()
    assert await (await call(patient, plain_context(patient))).status(CA_PATH) == 200
    assert not other.is_ended
    told = [record for record in caplog.records if EVENT in record.getMessage()]
    assert len(told) == 1, "one line a minute"


async def test_the_first_of_too_many_in_all_gives_way(patient: RunningControl) -> None:
    waiting = [await call(patient, address=f"127.0.0.{2 + number}") for number in range(6)]
    late = await call(patient, plain_context(patient))
    await waiting[0].ended()
    assert await late.status(CA_PATH) == 200


async def test_whoever_leaves_makes_room(patient: RunningControl) -> None:
    """Many that come and go, one after the other, take nobody's place."""
    waiting = await call(patient)
    for _ in range(12):
        caller = await call(patient, plain_context(patient))
        assert await caller.status("/healthz") == 200
        await caller.leave()
    assert not waiting.is_ended


async def test_control_stops_while_strangers_wait(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    async with running_control(sqlite_store, clock, tmp_path, PATIENT, tls=True) as running:
        strangers = [await call(running), await call(running, plain_context(running))]
        async with running.http.get(url(running, "/healthz"), ssl=plain_context(running)) as answer:
            assert answer.status == 200
    for stranger in strangers:
        await stranger.ended()
