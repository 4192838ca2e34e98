"""The HTTP side of control: the workers' socket, uploads, health. Routes translate, they don't decide."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, Conflict, NotFound, Reject, Retry, Unavailable
from camserver.base.log import bind_ids, get_logger
from camserver.base.ready import Ready
from camserver.services.control.admission import Room
from camserver.services.control.conversation import Conversations
from camserver.services.control.enrolment import Enrolment
from camserver.services.control.errands import ErrandAnswers
from camserver.services.control.guard import Guard, Sender, is_tls, peer_host
from camserver.services.control.live import StreamerDesk
from camserver.services.control.requests import Requests
from camserver.services.control.uploads import Uploads
from camserver.wire import enrolment as enrolment_wire
from camserver.wire import errands as errand_wire
from camserver.wire import looks as look_wire
from camserver.wire.live import SYNC_MAX_BYTES, SYNC_PATH, parse_sync
from camserver.wire.looks import LOOKS_PATH, WORKER_HEADER, ErrorBody
from camserver.wire.message import Message
from camserver.wire.socketless import ASSIGN_PATH, MESSAGES_PATH, REGISTER_PATH, RENEW_PATH, parse_assign
from camserver.wire.worker import MESSAGE_MAX_BYTES, SOCKET_PATH, FromWorker, parse_from_worker

log = get_logger(__name__)

# Bodies of uploads under way, all together.
ROOM_BYTES = 256_000_000
# A worker on a bad line may be slow, but it must not hold its room for ever.
BODY_TIMEOUT_SEC = 120.0
RETRY_AFTER_SEC = 2


class TooLarge(Reject):
    code = "too_large"
    http_status = 413


@dataclass(frozen=True, slots=True)
class Routes:
    clock: Clock
    ready: Ready
    guard: Guard
    enrolment: Enrolment | None  # None: there is no TLS port
    conversations: Conversations
    uploads: Uploads
    errands: ErrandAnswers
    requests: Requests
    streamers: StreamerDesk
    upload_max_bytes: int
    room: Room

    def app(self) -> FastAPI:
        app = FastAPI(title="camserver control", docs_url=None, redoc_url=None, openapi_url=None)
        app.add_api_route("/healthz", self.healthz, methods=["GET"], response_model=None)
        app.add_api_route("/readyz", self.readyz, methods=["GET"], response_model=None)
        app.add_api_route(LOOKS_PATH, self.look, methods=["POST"], response_model=None)
        app.add_api_route(errand_wire.ERRANDS_PATH, self.errand, methods=["POST"], response_model=None)
        app.add_api_route(enrolment_wire.CA_PATH, self.ca, methods=["GET"], response_model=None)
        app.add_api_route(enrolment_wire.ENROLL_PATH, self.enroll, methods=["POST"], response_model=None)
        app.add_api_route(enrolment_wire.RENEW_PATH, self.renew, methods=["POST"], response_model=None)
        for path, route in (
            (REGISTER_PATH, self.register),
            (RENEW_PATH, self.renew_leases),
            (ASSIGN_PATH, self.assign),
            (MESSAGES_PATH, self.message),
        ):
            app.add_api_route(path, route, methods=["POST"], response_model=None)
        app.add_api_route(SYNC_PATH, self.sync, methods=["POST"], response_model=None)
        app.add_api_websocket_route(SOCKET_PATH, self.worker)
        return app

    async def healthz(self) -> Response:
        """This process is alive."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Every service of this process can do its work, or why not. Strangers at the TLS port are not told."""
        if is_tls(request):
            return _error(NotFound("ask for this on the plain port, from the server's own network"))
        checks = {name: why or "ok" for name, why in self.ready.checks().items()}
        return JSONResponse({"checks": checks}, 200 if self.ready.is_ready else 503)

    async def worker(self, socket: WebSocket) -> None:
        try:
            caller = await self.guard.admit(socket)
        except CamError as error:
            log.warning("a worker was not let in", code=error.code, cause=error.message)
            await socket.send_denial_response(_error(error))
            return
        await socket.accept()
        await self.conversations.hold(socket, caller)

    async def look(self, request: Request) -> Response:
        """A look, recorded or refused."""
        return await self._admitted(request, self._look)

    async def errand(self, request: Request) -> Response:
        """The answer to an errand, recorded or refused."""
        return await self._admitted(request, self._errand)

    async def ca(self, request: Request) -> Response:
        """The CA's certificate, for whoever can tell by its fingerprint that it is the right one."""
        try:
            return Response(self._enrolment(request).ca_pem, media_type="application/x-pem-file")
        except CamError as error:
            return _error(error)

    async def enroll(self, request: Request) -> Response:
        """A worker's first certificate, for a one-time token."""

        async def give(enrolment: Enrolment, body: bytearray) -> enrolment_wire.Certified:
            return await enrolment.enroll(body, peer_host(request))

        return await self._certified(request, give)

    async def renew(self, request: Request) -> Response:
        """A worker's next certificate, for the one it has."""

        async def give(enrolment: Enrolment, body: bytearray) -> enrolment_wire.Certified:
            return await enrolment.renew(await self.guard.renewing(request), body)

        return await self._certified(request, give)

    async def _certified(
        self, request: Request, give: Callable[[Enrolment, bytearray], Awaitable[enrolment_wire.Certified]]
    ) -> Response:
        try:
            enrolment = self._enrolment(request)
            body = await _read(request, _announced_bytes(request, enrolment_wire.BODY_MAX_BYTES))
            answer = await give(enrolment, body)
        except ClientDisconnect:
            return _error(BadInput("the request was cut off"))
        except CamError as error:
            log.warning("no certificate given", code=error.code, cause=error.message, address=peer_host(request))
            return _error(error)
        return Response(answer.model_dump_json(), media_type="application/json")

    def _enrolment(self, request: Request) -> Enrolment:
        if self.enrolment is None or not is_tls(request):
            raise NotFound("certificates are given on the workers' TLS port only, which [control] tls_port opens")
        return self.enrolment

    async def sync(self, request: Request) -> Response:
        """What a streamer beside this server needs of the store."""
        try:
            if is_tls(request):
                raise NotFound("ask for this on the plain port, from the server's own machine")
            self.streamers.admit(request.headers, peer_host(request))
            body = await _read(request, _announced_bytes(request, SYNC_MAX_BYTES))
            return _json(await self.streamers.live.sync(parse_sync(bytes(body))))
        except ClientDisconnect:
            return _error(BadInput("the request was cut off"))
        except CamError as error:
            log.warning("a streamer was not answered", code=error.code, cause=error.message)
            return _error(error)

    async def register(self, request: Request, worker_id: str) -> Response:
        """REGISTER of a worker without a socket."""

        async def take(request: Request, sender: Sender) -> Response:
            if worker_id != sender.worker_id:
                raise BadInput(f"the path names {worker_id}, {WORKER_HEADER} names {sender.worker_id}")
            return await self._message(request, sender, self.requests.register)

        return await self._admitted(request, take)

    async def renew_leases(self, request: Request) -> Response:
        """HEARTBEAT of a worker without a socket."""
        return await self._admitted(request, lambda one, who: self._message(one, who, self.requests.renew))

    async def message(self, request: Request) -> Response:
        """ACK or EVENT of a worker without a socket."""
        return await self._admitted(request, lambda one, who: self._message(one, who, self.requests.take))

    async def assign(self, request: Request) -> Response:
        """Further cameras for a worker without a socket, and what it is to do."""

        async def take(request: Request, sender: Sender) -> Response:
            asked = parse_assign(await _small_body(request))
            return _json(await self.requests.assign(asked, sender))

        return await self._admitted(request, take)

    async def _message(
        self, request: Request, sender: Sender, take: Callable[[FromWorker, Sender], Awaitable[Message]]
    ) -> Response:
        return _json(await take(parse_from_worker(await _small_body(request)), sender))

    async def _admitted(self, request: Request, take: Callable[[Request, Sender], Awaitable[Response]]) -> Response:
        with bind_ids(worker_id=request.headers.get(WORKER_HEADER, "")[:64]):
            try:
                sender = await self.guard.sender(request)
                with bind_ids(worker_id=sender.worker_id):
                    return await take(request, sender)
            except ClientDisconnect:
                log.info("an upload was cut off")
                return _error(BadInput("the upload was cut off"))
            except CamError as error:
                log.warning("upload not recorded", code=error.code, cause=error.message)
                return _error(error)

    async def _look(self, request: Request, sender: Sender) -> Response:
        received_at = self.clock.now_ms()
        size_bytes = _announced_bytes(request, min(self.upload_max_bytes, look_wire.BODY_MAX_BYTES))
        with self.room.reserve(size_bytes):
            body = await _read(request, size_bytes)
            upload = look_wire.unpack(body)
            del body
            answer = await self.uploads.take(sender, upload, received_at)
        return Response(answer.model_dump_json(), media_type="application/json")

    async def _errand(self, request: Request, sender: Sender) -> Response:
        size_bytes = _announced_bytes(request, errand_wire.BODY_MAX_BYTES)
        with self.room.reserve(size_bytes):
            body = await _read(request, size_bytes)
            upload = errand_wire.unpack(body)
            del body
            answer = await self.errands.take(sender, upload)
        return Response(answer.model_dump_json(), media_type="application/json")


def _announced_bytes(request: Request, allowed_bytes: int) -> int:
    text = request.headers.get("content-length", "")
    if not text.isdecimal():
        raise BadInput("an upload must say its Content-Length")
    size_bytes = int(text)
    if size_bytes > allowed_bytes:
        raise TooLarge(
            f"an upload of {size_bytes} bytes is more than {allowed_bytes}; make it smaller, or raise [control] "
            "upload_max_bytes where that is its bound"
        )
    return size_bytes


async def _read(request: Request, size_bytes: int) -> bytearray:
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SEC):
            async for piece in request.stream():
                body += piece
                if len(body) > size_bytes:
                    raise BadInput(f"an upload is longer than the {size_bytes} bytes it announced")
    except TimeoutError:
        raise Unavailable(f"an upload took longer than {BODY_TIMEOUT_SEC:g} s; try again") from None
    return body


async def _small_body(request: Request) -> bytes:
    return bytes(await _read(request, _announced_bytes(request, MESSAGE_MAX_BYTES)))


def _json(message: Message) -> Response:
    return Response(message.model_dump_json(), media_type="application/json")


def _error(error: CamError) -> Response:
    # What only a person at the server can use stays in the server's log.
    shown = error.message if isinstance(error, Reject | Retry | Conflict) else "internal error"
    body = ErrorBody(error_code=error.code, message=shown[:1024])
    headers = {enrolment_wire.ERROR_HEADER: error.code}
    if error.http_status == 503:
        headers["Retry-After"] = str(RETRY_AFTER_SEC)
    if error.http_status == 403:
        # A certificate belongs to its connection; who gets another one needs another connection to show it.
        headers["Connection"] = "close"
    return Response(body.model_dump_json(), error.http_status, headers=headers, media_type="application/json")
