"""The server's side as the worker's tests need it: a real socket and a real upload route that do as they are told.

It answers REGISTER and HEARTBEAT by itself unless told not to, and notes everything that came.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

from aiohttp import WSMsgType, web

from camserver.wire import errands
from camserver.wire.errands import ERRANDS_PATH, ErrandRecorded, ErrandUpload
from camserver.wire.looks import (
    LOOKS_PATH,
    WORKER_HEADER,
    ErrorBody,
    LookRefused,
    LookUpload,
    Recorded,
    unpack,
)
from camserver.wire.worker import (
    SOCKET_PATH,
    CameraVerdict,
    FromServer,
    FromWorker,
    Heartbeat,
    Held,
    Lost,
    Refused,
    Register,
    Registered,
    Renewed,
    encode,
    parse_from_worker,
)
from tests.rig.polling import poll_async
from tests.rig.ports import free_port, listening_socket

TOKEN = "token-of-the-worker-tests"

Answer = Callable[[LookUpload], Awaitable[web.StreamResponse]]
AnswerErrand = Callable[[ErrandUpload], Awaitable[web.StreamResponse]]


def recorded(repeat: bool = False, server_time: int = 0) -> web.Response:
    answer = Recorded(standing="live", frame_uuid="f", repeat=repeat, server_time=server_time)
    return web.Response(text=answer.model_dump_json(), content_type="application/json")


def refused(reason: str = "not_held") -> web.Response:
    return web.Response(text=LookRefused(reason=reason, server_time=0).model_dump_json())


def failed(status: int, code: str = "code", headers: dict[str, str] | None = None) -> web.Response:
    body = ErrorBody(error_code=code, message="as the test says").model_dump_json()
    return web.Response(status=status, text=body, headers=headers)


class ScriptedControl:
    def __init__(self, server_time_ms: Callable[[], int]) -> None:
        self._server_time_ms = server_time_ms
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.token = TOKEN
        self.ttl_ms = 90_000
        self.heartbeat_sec = 10
        self.answers_register = True
        self.answers_heartbeats = True
        self.refuse_register: Refused | None = None
        self.lost: dict[tuple[str, int], str] = {}  # told with the next answer, and only then
        self.verdicts: tuple[CameraVerdict, ...] = ()  # told with every renewal
        self.received: list[FromWorker] = []
        self.sockets: list[web.WebSocketResponse] = []
        self.uploads: list[LookUpload] = []  # in the order they came, also those that were not recorded
        self.in_flight_max = 0
        self._in_flight = 0
        self.answer: Answer = self.record
        self.errands: list[ErrandUpload] = []  # answers, also those that were not recorded
        self.answer_errand: AnswerErrand = self.record_errand

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "ScriptedControl":
        app = web.Application(client_max_size=70_000_000)
        app.router.add_get(SOCKET_PATH, self._socket)
        app.router.add_post(LOOKS_PATH, self._look)
        app.router.add_post(ERRANDS_PATH, self._errand)
        # Handlers are cancelled when the client goes away: one that waits for ever must not outlive its test.
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        # Not any port: while it is away, an outgoing connection must not get it.
        self.port = self.port or free_port()
        await web.SockSite(self._runner, listening_socket(self.port)).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.go_away()

    async def go_away(self) -> None:
        """Closes everything; entering it again comes back on the same port."""
        await self.hang_up()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def hang_up(self) -> None:
        for socket in self.sockets:
            await socket.close()

    async def send(self, message: FromServer) -> None:
        await self.sockets[-1].send_str(encode(message))

    async def until(self, wanted: Callable[[FromWorker], bool], what: str, count: int = 1) -> FromWorker:
        """The `count`-th message that is wanted, waiting for it if need be."""

        async def probe() -> FromWorker | None:
            found = [message for message in self.received if wanted(message)]
            return found[count - 1] if len(found) >= count else None

        return await poll_async(probe, what)

    async def until_report(self, event_type: str, count: int = 1) -> FromWorker:
        return await self.until(
            lambda message: getattr(message, "event_type", None) == event_type, f"report {event_type}", count
        )

    async def record(self, look: LookUpload) -> web.StreamResponse:
        return recorded(server_time=self._server_time_ms())

    async def record_errand(self, answer: ErrandUpload) -> web.StreamResponse:
        text = ErrandRecorded(repeat=False, server_time=self._server_time_ms()).model_dump_json()
        return web.Response(text=text, content_type="application/json")

    async def until_errand(self, errand_id: str, count: int = 1) -> ErrandUpload:
        async def probe() -> ErrandUpload | None:
            found = [answer for answer in self.errands if answer.header.errand_id == errand_id]
            return found[count - 1] if len(found) >= count else None

        return await poll_async(probe, f"the answer to {errand_id}")

    def seqs(self, camera_id: str = "cam_1") -> list[int]:
        return [look.header.seq for look in self.uploads if look.header.camera_id == camera_id]

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return failed(401, "unauthenticated")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        async for frame in socket:
            if frame.type is WSMsgType.TEXT:
                message = parse_from_worker(frame.data)
                self.received.append(message)
                answer = self._reply(message)
                if answer is not None:
                    await socket.send_str(encode(answer))
        return socket

    def _reply(self, message: FromWorker) -> FromServer | None:
        if isinstance(message, Register) and self.answers_register:
            if self.refuse_register is not None:
                return self.refuse_register
            kept, lost = self._judge(message.holding)
            return Registered(
                worker_id=message.worker_id,
                server_time=self._server_time_ms(),
                ttl_ms=self.ttl_ms,
                heartbeat_sec=self.heartbeat_sec,
                kept=kept,
                lost=lost,
            )
        if isinstance(message, Heartbeat) and self.answers_heartbeats:
            renewed, lost = self._judge(message.renew)
            return Renewed(
                heartbeat_seq=message.heartbeat_seq,
                renewed=renewed,
                lost=lost,
                ttl_ms=self.ttl_ms,
                server_time=self._server_time_ms(),
                verdicts=self.verdicts,
            )
        return None

    def _judge(self, leases: tuple[Held, ...]) -> tuple[tuple[Held, ...], tuple[Lost, ...]]:
        kept, lost = [], []
        for lease in leases:
            reason = self.lost.get((lease.camera_id, lease.generation))
            if reason is None:
                kept.append(lease)
            else:
                lost.append(Lost(camera_id=lease.camera_id, generation=lease.generation, reason=reason))
        return tuple(kept), tuple(lost)

    async def _errand(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return failed(401, "unauthenticated")
        assert request.headers[WORKER_HEADER]
        answer = errands.unpack(await request.read())
        self.errands.append(answer)
        return await self.answer_errand(answer)

    async def _look(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return failed(401, "unauthenticated")
        assert request.headers[WORKER_HEADER]
        self._in_flight += 1
        self.in_flight_max = max(self.in_flight_max, self._in_flight)
        try:
            look = unpack(await request.read())
            self.uploads.append(look)
            return await self.answer(look)
        except asyncio.CancelledError:
            raise
        finally:
            self._in_flight -= 1
