"""One worker's socket, from REGISTER to its end: messages in, what they change, answers out.

A message that is not understood is answered with REFUSED and the conversation goes on. The end of a socket ends no
lease: the worker has until they expire to come back.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect

from camserver.base import figures
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, Reject, Retry
from camserver.base.log import bind_ids, get_logger
from camserver.domain.leases import LeasePolicy
from camserver.services.control.connections import (
    CLOSE_OVERFLOW,
    CLOSE_REFUSED,
    CLOSE_REPLACED,
    Connection,
    Connections,
)
from camserver.services.control.entries import Entries
from camserver.services.control.epoch import Epoch
from camserver.services.control.guard import Caller, CertificateExpired, Guard
from camserver.services.control.live import LiveDesk
from camserver.services.control.registrations import as_held, as_lost, pairs_of, registration
from camserver.services.control.reports import Reports
from camserver.store import Store
from camserver.store.starts import not_done
from camserver.store.workers import Beat, Heard, disconnected, sign_in
from camserver.wire.worker import (
    VERDICTS_MAX,
    Ack,
    CameraVerdict,
    FromWorker,
    Heartbeat,
    Kinds,
    Refused,
    Register,
    Registered,
    Renewed,
    Report,
    encode,
    parse_from_worker,
)

log = get_logger(__name__)

# A report must not be lost to a short outage; after these pauses the worker is told to send it again.
RETRY_PAUSES_SEC = (0.2, 1.0, 2.0, 5.0)
# Verdicts are read back this far before the newest one seen: transactions do not commit in the order of their times.
VERDICT_OVERLAP_MS = 30_000
METRICS_EVERY_MS = 60_000
# Messages of one worker that are being written at the same time.
UNDER_WAY_MAX = 64


@dataclass(frozen=True, slots=True)
class Conversations:
    """What every conversation needs."""

    store: Store
    clock: Clock
    connections: Connections
    epoch: Epoch
    guard: Guard
    policy: LeasePolicy
    reports: Reports
    entries: Entries
    live: LiveDesk
    message_max_bytes: int
    register_sec: float

    @property
    def ttl_ms(self) -> int:
        return self.policy.ttl_sec * 1000

    async def hold(self, socket: WebSocket, caller: Caller) -> None:
        """Speaks with one worker until its socket ends."""
        try:
            connection = await self._admit(socket, caller)
        except (WebSocketDisconnect, TimeoutError):
            log.info("a connection ended before it registered")
            return
        if connection is None:
            return
        ids = connection.worker
        with bind_ids(tenant_id=ids.tenant_id, site_id=ids.site_id, worker_id=connection.worker_id):
            try:
                await self._serve(socket, connection, caller)
            finally:
                await self._part(connection)

    # Registering -----------------------------------------------------------------------------------------------

    async def _admit(self, socket: WebSocket, caller: Caller) -> Connection | None:
        try:
            async with asyncio.timeout(self.register_sec):
                message = await self._next(socket)
            if not isinstance(message, Register):
                raise BadInput(f"the first message must be REGISTER, not {message.type}")
            self.guard.check(caller)
            return await self._register(socket, message, caller)
        except (Reject, Retry) as error:
            log.warning("registration refused", code=error.code, cause=error.message)
            await socket.send_text(encode(_refused(error)))
            await socket.close(CLOSE_OVERFLOW if isinstance(error, Retry) else CLOSE_REFUSED)
            return None

    async def _register(self, socket: WebSocket, message: Register, caller: Caller) -> Connection:
        who = registration(message, caller.named(message.worker_id), self.epoch.process_id, caller.site_id)
        held = pairs_of(message.holding)
        now_ms = self.clock.now_ms()
        signed = await self.store.write(sign_in, caller.tenant_id, who, held, self.ttl_ms, now_ms)
        connection = Connection(
            socket, signed.worker, who.worker_id, message.capacity.slots, self.clock.boot_ms(), caller.serial
        )
        connection.send(
            Registered(
                worker_id=message.worker_id,
                server_time=now_ms,
                ttl_ms=self.ttl_ms,
                heartbeat_sec=self.policy.heartbeat_sec,
                tenant_id=signed.worker.tenant_id,
                site_id=signed.worker.site_id,
                kept=as_held(signed.renewal.renewed),
                lost=as_lost(signed.renewal.lost),
            )
        )
        log.info(
            "on_connect",
            tenant_id=signed.worker.tenant_id,
            site_id=signed.worker.site_id,
            worker_id=message.worker_id,
            kept=len(signed.renewal.renewed),
            lost=len(signed.renewal.lost),
            restarted=len(signed.restarted),
        )
        self.connections.add(connection)
        return connection

    # Speaking --------------------------------------------------------------------------------------------------

    async def _serve(self, socket: WebSocket, connection: Connection, caller: Caller) -> None:
        listening = asyncio.ensure_future(self._listen(socket, connection, caller))
        sending = connection.pumping()
        try:
            await asyncio.wait({listening, sending}, return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                listening.result()
            else:
                await _close(socket, CLOSE_OVERFLOW)
                if not sending.cancelled():
                    sending.result()
        except (WebSocketDisconnect, RuntimeError) as error:
            # The socket ended while something was being sent: Starlette says so with a RuntimeError.
            log.info("socket ended", cause=str(error) or type(error).__name__)
        finally:
            listening.cancel()
            sending.cancel()
            await asyncio.gather(listening, sending, return_exceptions=True)

    async def _listen(self, socket: WebSocket, connection: Connection, caller: Caller) -> None:
        """One message after the other, except for those whose order does not matter."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    message = await self._next(socket)
                    if connection.is_over:
                        continue
                    self.guard.check(caller)
                    connection.heard_boot_ms = self.clock.boot_ms()
                    if _is_in_any_order(message):
                        await connection.less_under_way(UNDER_WAY_MAX)
                        connection.note_under_way(group.create_task(self._answer(connection, message)))
                    else:
                        await connection.less_under_way(1)
                        await self._answer(connection, message)
                except WebSocketDisconnect as end:
                    log.info("on_disconnect", code=end.code)
                    return
                except CertificateExpired as error:
                    connection.cut(CLOSE_REFUSED, error.code, error.message)
                except (Reject, Retry) as error:
                    # Whoever gets this answer knows that what it said before was heard.
                    await connection.less_under_way(1)
                    _refuse(connection, error)

    async def _answer(self, connection: Connection, message: FromWorker) -> None:
        try:
            await self._handle(connection, message)
        except (Reject, Retry) as error:
            _refuse(connection, error)

    async def _next(self, socket: WebSocket) -> FromWorker:
        frame = await socket.receive()
        if frame["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(frame.get("code", 1005))
        text: str | None = frame.get("text")
        if text is None:
            raise BadInput("messages are text frames of JSON, not binary ones")
        if len(text.encode()) > self.message_max_bytes:
            raise BadInput(f"a message is longer than {self.message_max_bytes} bytes")
        return parse_from_worker(text)

    async def _handle(self, connection: Connection, message: FromWorker) -> None:
        match message:
            case Heartbeat():
                await self._heartbeat(connection, message)
            case Ack():
                await self._patiently(lambda: self._ack(connection, message))
            case Report():
                await self._patiently(lambda: self.reports.take(connection.worker, message))
            case Register():
                raise BadInput("this connection is registered already; open a new one to register again")

    async def _patiently(self, work: Callable[[], Awaitable[None]]) -> None:
        for pause_sec in RETRY_PAUSES_SEC:
            try:
                await work()
            except Retry as error:
                log.warning("a message waits for the store", cause=error.message)
                await self.clock.sleep(pause_sec)
            else:
                return
        await work()

    async def _heartbeat(self, connection: Connection, message: Heartbeat) -> None:
        if message.worker_id != connection.worker_id:
            raise BadInput(f"this connection is {connection.worker_id}'s, not {message.worker_id}'s")
        connection.state = message.state
        figures.heartbeats.inc()
        heard_at = self.clock.now_ms()
        held = pairs_of(message.renew)
        metrics = self._metrics_to_note(connection, message.metrics)
        beat = await self.entries.beat(
            Heard(connection.worker, message.state.value, held, connection.verdicts_since, metrics)
        )
        connection.send(
            Renewed(
                heartbeat_seq=message.heartbeat_seq,
                renewed=message.renew if beat.renewal.renewed == held else as_held(beat.renewal.renewed),
                lost=as_lost(beat.renewal.lost),
                ttl_ms=self.ttl_ms,
                # The worker takes it for the middle of the round trip; writing takes part of that.
                server_time=(heard_at + self.clock.now_ms()) // 2,
                verdicts=_new_verdicts(connection, beat),
            )
        )
        if beat.renewal.lost:
            log.warning("leases_lost", lost=[list(one) for one in beat.renewal.lost])
        if beat.is_replaced:
            connection.end(CLOSE_REPLACED, "replaced", "this worker is connected to another process")

    def _metrics_to_note(self, connection: Connection, metrics: Mapping[str, float]) -> str:
        """Rarely: they are only for people."""
        boot_ms = self.clock.boot_ms()
        last_ms = connection.metrics_boot_ms
        if not metrics or (last_ms is not None and boot_ms - last_ms < METRICS_EVERY_MS):
            return ""
        connection.metrics_boot_ms = boot_ms
        return json.dumps(dict(metrics))

    async def _ack(self, connection: Connection, message: Ack) -> None:
        asked = connection.lives.get(message.intent_id)
        if asked is not None:
            await self.live.heard(asked, message)
            return
        sent = connection.sent.get(message.intent_id)
        is_known = True
        if message.status == "ok":
            is_known = await self.entries.ack(connection.worker.worker_key, message.intent_id)
        else:
            await self.store.write(
                not_done,
                connection.worker.worker_key,
                message.intent_id,
                message.status,
                message.details,
                self.policy,
                self.clock.now_ms(),
            )
            self.connections.wake.set()
        log.info(
            "ack_stop" if sent is not None and sent.kind == "send_stop" else "ack_start",
            intent_id=message.intent_id,
            camera_id=None if sent is None else sent.camera_id,
            generation=None if sent is None else sent.generation,
            status=message.status,
            details=message.details,
            is_known=is_known,
        )

    async def _part(self, connection: Connection) -> None:
        if self.connections.remove(connection):
            try:
                await self.store.write(disconnected, connection.worker.worker_key, self.epoch.process_id)
            except CamError as error:
                # Only a hint for people: the leases' own times decide what follows.
                log.warning("the end of a connection could not be noted", cause=error.message)


async def _close(socket: WebSocket, code: int) -> None:
    try:
        await socket.close(code)
    except RuntimeError:
        # It is closed already.
        return


def _is_in_any_order(message: FromWorker) -> bool:
    """Whether it makes no difference which of such messages is written first: a START that was done, a camera ready.

    A worker that starts many cameras says all of it at once, and each is in the same transaction as many others.
    """
    match message:
        case Ack():
            return message.status == "ok"
        case Report():
            return message.event_type == Kinds.PIPELINE_READY
    return False


def _refuse(connection: Connection, error: CamError) -> None:
    log.warning("message refused", code=error.code, cause=error.message)
    connection.send(_refused(error))


def _refused(error: CamError) -> Refused:
    return Refused(error_code=error.code, message=error.message[:1024])


def _new_verdicts(connection: Connection, beat: Beat) -> tuple[CameraVerdict, ...]:
    """What this socket has not told yet; what does not fit comes with the next answer."""
    new = [one for one in beat.verdicts if connection.verdicts_told.get(one[0]) != one[1]]
    told = new[:VERDICTS_MAX]
    for camera_id, captured_at, _, _ in told:
        connection.verdicts_told[camera_id] = captured_at
    if beat.verdicts and len(told) == len(new):
        connection.verdicts_since = max(one[3] for one in beat.verdicts) - VERDICT_OVERLAP_MS
        still = {one[0] for one in beat.verdicts}
        connection.verdicts_told = {
            camera_id: at for camera_id, at in connection.verdicts_told.items() if camera_id in still
        }
    return tuple(
        CameraVerdict(camera_id=camera_id, captured_at=captured_at, detected=detected)
        for camera_id, captured_at, detected, _ in told
    )
