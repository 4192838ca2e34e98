"""The control socket: connects, registers, renews by heartbeat, passes intents on and sends reports.

A socket that drops changes nothing about the cameras: their holds last until their own deadlines, and the link
comes back with growing, jittered pauses. A peer that falls silent counts as gone. What an answer means for a hold is
counted from the moment the question was *sent* (decision 36).
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import aiohttp

from camserver.base.clock import ROUND_TRIP_MAX_MS, Clock
from camserver.base.errors import BadInput, Retry, StoreBusy, StoreUnavailable, Unavailable
from camserver.base.log import bind_ids, get_logger
from camserver.base.ready import Ready
from camserver.base.secrets import Secret
from camserver.domain.jobs import backoff_ms
from camserver.domain.leases import deadline_boot_ms
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.following import Following
from camserver.services.worker.intents import Intents
from camserver.services.worker.reports import Reports
from camserver.services.worker.states import States
from camserver.services.worker.waiting import end, event_within, within
from camserver.wire.enrolment import ERROR_HEADER, EXPIRED_CODE
from camserver.wire.worker import (
    CAMERAS_MAX,
    MESSAGE_MAX_BYTES,
    PROTOCOL,
    SOCKET_PATH,
    Ack,
    Capacity,
    Errand,
    FromServer,
    FromWorker,
    Heartbeat,
    Lost,
    Refused,
    Register,
    Registered,
    Renewed,
    encode,
    parse_from_server,
)
from camserver.wire.worker import Held as HeldLease

log = get_logger(__name__)

READY_NAME = "worker"
CONNECT_SEC = 10.0
REPLY_SEC = 20.0
RETRY_BASE_SEC = 0.5
RETRY_CAP_SEC = 30.0
# A worker that holds cameras must be back before its leases run out, which is several heartbeats.
RETRY_CAP_HEARTBEATS = 1.5
# So many heartbeats without any word from the server, and the connection is given up.
SILENT_HEARTBEATS = 3
PENDING_MAX = 32
# A REFUSED with one of these says nothing against the message: it could not be dealt with just then.
RETRY_CODES = frozenset(kind.code for kind in (Retry, StoreBusy, StoreUnavailable, Unavailable))


class ServerClock(Clock, Protocol):
    """A clock that follows the server's time."""

    synced: bool

    def observe(self, remote_ms: int, sent_boot_ms: int, received_boot_ms: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this worker is, and where its server is."""

    worker_id: str
    site: str
    version: str
    slots: int
    boot_id: str
    server_url: str
    token: Secret | None  # None: its certificate says who it is
    margin_ms: int  # how long before its lease ends a hold runs out

    def headers(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token.reveal()}"}


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the link calls on others."""

    registered: Callable[[], None]
    metrics: Callable[[], Mapping[str, float]]
    before_heartbeat: Callable[[], None]
    errand: Callable[[Errand], None]
    certificate_expired: Callable[[], None] = lambda: None


class Link:
    def __init__(
        self,
        identity: Identity,
        session: aiohttp.ClientSession,
        clock: ServerClock,
        cameras: Cameras,
        intents: Intents,
        states: States,
        reports: Reports,
        ready: Ready,
        hooks: Hooks,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._identity = identity
        self._session = session
        self._clock = clock
        self._cameras = cameras
        self._intents = intents
        self._states = states
        self._reports = reports
        self._ready = ready
        self._hooks = hooks
        self._jitter = jitter
        self._failures = 0
        self._heartbeat_sec = 10
        self._heartbeat_seq = 0
        # Heartbeats that were not answered yet: seq -> boot-time ms of sending.
        self._pending: OrderedDict[int, int] = OrderedDict()
        self._beat_now = asyncio.Event()
        self._beat_sent = asyncio.Event()
        self._tell_ready_again = False
        self.renew_rtt_ms = 0

    async def run(self) -> None:
        """Keeps the connection until cancelled; a drained worker stays away."""
        while True:
            cause = await self._connect_once()
            self._states.disconnected()
            if self._intents.drained.is_set():
                break
            self._ready.clear(READY_NAME, f"not connected to the server: {cause}")
            self._failures += 1
            cap_sec = min(RETRY_CAP_SEC, RETRY_CAP_HEARTBEATS * self._heartbeat_sec)
            pause_ms = backoff_ms(self._failures, self._jitter(), RETRY_BASE_SEC, cap_sec)
            log.warning("no connection to the server", cause=cause, pause_ms=pause_ms)
            await self._clock.sleep(pause_ms / 1000)
        self._ready.clear(READY_NAME, "drained: restart the worker to have it take cameras again")
        log.info("drained: this worker takes no more cameras until it is restarted")
        await asyncio.Event().wait()

    async def tell_state(self) -> None:
        """Until the server was sent the state the worker has now: it comes before whatever is sent afterwards."""
        self._beat_sent.clear()
        self._beat_now.set()
        await self._beat_sent.wait()

    async def _connect_once(self) -> str:
        """One connection from beginning to end; why it ended."""
        url = self._identity.server_url.rstrip("/") + SOCKET_PATH
        try:
            socket = await within(self._clock, CONNECT_SEC, self._open(url, self._identity.headers()))
        except TimeoutError:
            return f"{self._identity.server_url} does not answer"
        except aiohttp.WSServerHandshakeError as error:
            code = error.headers.get(ERROR_HEADER, "")[:64] if error.headers else ""
            if code == EXPIRED_CODE:
                self._hooks.certificate_expired()
            said = f"{error.status} {code}" if code else str(error.status)
            return f"{self._identity.server_url} answered {said} instead of opening the socket"
        except (aiohttp.ClientError, OSError) as error:
            return f"{self._identity.server_url} can't be reached: {type(error).__name__}"
        try:
            await self._converse(socket)
        except Unavailable as error:
            return error.message
        except (aiohttp.ClientError, OSError) as error:
            return f"the connection broke: {type(error).__name__}"
        finally:
            await within_or_not(self._clock, CONNECT_SEC, socket.close())
        return "done"

    async def _open(self, url: str, headers: Mapping[str, str]) -> aiohttp.ClientWebSocketResponse:
        return await self._session.ws_connect(url, headers=headers, max_msg_size=MESSAGE_MAX_BYTES, compress=0)

    async def _converse(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Registers, then talks until something ends it."""
        who = await self._register(socket)

        async def answer(ack: Ack) -> None:
            await self._send(socket, ack)
            # A new camera looks only once a heartbeat that names it was answered.
            self._beat_now.set()

        following = Following(self._intents, answer)
        # On every line of what follows from this connection, the cameras that it starts included.
        with bind_ids(tenant_id=who.tenant_id, site_id=who.site_id):
            jobs = [
                asyncio.ensure_future(job)
                for job in (
                    self._receive_all(socket, following),
                    self._send_heartbeats(socket),
                    self._send_reports(socket),
                    self._until_drained(),
                )
            ]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(*jobs)
            await following.close()
        for job in done:
            job.result()

    async def _register(self, socket: aiohttp.ClientWebSocketResponse) -> Registered:
        sent_boot_ms = self._clock.boot_ms()
        await self._send(
            socket,
            Register(
                protocol=PROTOCOL,
                worker_id=self._identity.worker_id,
                site=self._identity.site,
                version=self._identity.version,
                capacity=Capacity(slots=self._identity.slots),
                boot_id=self._identity.boot_id,
                boot_ms=sent_boot_ms,
                holding=self._cameras.renewals()[:CAMERAS_MAX],
            ),
        )
        answer = await self._receive(socket, REPLY_SEC)
        if isinstance(answer, Refused):
            raise Unavailable(f"the server refused this worker ({answer.error_code}): {answer.message}")
        if not isinstance(answer, Registered):
            kind = answer.type if answer else "nothing that makes sense"
            raise Unavailable(f"the server answered REGISTER with {kind}")
        self._learn_time(answer.server_time, sent_boot_ms)
        self._heartbeat_sec = answer.heartbeat_sec
        self._pending.clear()
        self._apply(answer.kept, answer.lost, answer.ttl_ms, sent_boot_ms)
        self._states.registered(len(self._cameras))
        self._failures = 0
        self._ready.set(READY_NAME)
        log.info("registered", kept=len(answer.kept), lost=len(answer.lost), heartbeat_sec=answer.heartbeat_sec)
        # What was written to the old socket may never have arrived.
        self._cameras.report_ready_again()
        self._hooks.registered()
        return answer

    async def _receive_all(self, socket: aiohttp.ClientWebSocketResponse, following: Following) -> None:
        while True:
            message = await self._receive(socket, SILENT_HEARTBEATS * self._heartbeat_sec)
            if message is None:
                continue
            if isinstance(message, Renewed):
                self._renewed(message)
            elif isinstance(message, Refused):
                log.warning("the server refused a message", error_code=message.error_code, cause=message.message)
                # It may have been a report that came while the store was away.
                self._tell_ready_again = message.error_code in RETRY_CODES
            elif isinstance(message, Registered):
                log.warning("the server registered this worker twice on one connection")
            elif isinstance(message, Errand):
                self._hooks.errand(message)
            else:
                await following.take(message)

    def _renewed(self, renewed: Renewed) -> None:
        sent_boot_ms = self._pending.pop(renewed.heartbeat_seq, None)
        if sent_boot_ms is None:
            log.warning("answer to an unknown heartbeat", heartbeat_seq=renewed.heartbeat_seq)
            return
        self._learn_time(renewed.server_time, sent_boot_ms)
        self._apply(renewed.renewed, renewed.lost, renewed.ttl_ms, sent_boot_ms)
        self._cameras.hear(renewed.verdicts)
        self._states.follow(len(self._cameras))
        log.info(
            "heartbeat_renew",
            heartbeat_seq=renewed.heartbeat_seq,
            renewed=len(renewed.renewed),
            lost=len(renewed.lost),
            rtt_ms=self.renew_rtt_ms,
        )

    def _apply(self, kept: tuple[HeldLease, ...], lost: tuple[Lost, ...], ttl_ms: int, sent_boot_ms: int) -> None:
        deadline = deadline_boot_ms(sent_boot_ms, ttl_ms, self._identity.margin_ms)
        for lease in kept:
            self._cameras.renewed(lease, deadline)
        for gone in lost:
            self._cameras.lost(gone, gone.reason)

    def _learn_time(self, server_time: int, sent_boot_ms: int) -> None:
        received_boot_ms = self._clock.boot_ms()
        self.renew_rtt_ms = received_boot_ms - sent_boot_ms
        if not self._clock.synced or self.renew_rtt_ms <= ROUND_TRIP_MAX_MS:
            self._clock.observe(server_time, sent_boot_ms, received_boot_ms)

    async def _send_heartbeats(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            await event_within(self._clock, self._heartbeat_sec, self._beat_now)
            self._beat_now.clear()
            self._hooks.before_heartbeat()
            if self._tell_ready_again:
                self._tell_ready_again = False
                self._cameras.report_ready_again()
            self._states.follow(len(self._cameras))
            self._heartbeat_seq += 1
            sent_boot_ms = self._clock.boot_ms()
            self._pending[self._heartbeat_seq] = sent_boot_ms
            if len(self._pending) > PENDING_MAX:
                self._pending.popitem(last=False)
            await self._send(
                socket,
                Heartbeat(
                    worker_id=self._identity.worker_id,
                    heartbeat_seq=self._heartbeat_seq,
                    boot_ms=sent_boot_ms,
                    state=self._states.state,
                    metrics={**self._hooks.metrics(), "lease_renew_rtt_ms": self.renew_rtt_ms},
                    renew=self._cameras.renewals()[:CAMERAS_MAX],
                ),
            )
            self._beat_sent.set()

    async def _send_reports(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            report = await self._reports.first()
            await self._send(socket, report)
            self._reports.sent(report)

    async def _until_drained(self) -> None:
        """Ends the connection of a drained worker, after what it has to say was said."""
        await self._intents.drained.wait()
        await within_or_not(self._clock, REPLY_SEC, self._reports.until_sent())

    async def _send(self, socket: aiohttp.ClientWebSocketResponse, message: FromWorker) -> None:
        try:
            await within(self._clock, REPLY_SEC, socket.send_str(encode(message)))
        except TimeoutError:
            raise Unavailable("the server does not read what is sent to it") from None

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse, patience_sec: float) -> FromServer | None:
        """The next message; None for one that is not understood, which is logged and left."""
        try:
            frame = await within(self._clock, patience_sec, socket.receive())
        except TimeoutError:
            raise Unavailable(f"the server said nothing for {patience_sec:g} s") from None
        if frame.type is aiohttp.WSMsgType.TEXT:
            try:
                return parse_from_server(frame.data)
            except BadInput as error:
                log.warning("message of the server is not understood", cause=error.message)
                return None
        if frame.type is aiohttp.WSMsgType.BINARY:
            log.warning("binary message of the server is not understood", size_bytes=len(frame.data))
            return None
        raise Unavailable(f"the server closed the connection ({socket.close_code or frame.type.name})")


async def within_or_not(clock: Clock, seconds: float, work: Awaitable[object]) -> None:
    """Tries something that may as well not come about in time."""

    async def do() -> None:
        await work

    try:
        await within(clock, seconds, do())
    except TimeoutError:
        log.debug("given up", after_sec=seconds)
