"""The fake analyzer's HTTP server: the contract on one port, its faults and records steered on another.

Steering has its own port because it must answer while the analyzer refuses connections.
"""

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from aiohttp import web

from tests.fakes.analyzer.admin import admin_app
from tests.fakes.analyzer.answers import PRIMARY_EVENTS, Question, answer, look_at
from tests.fakes.analyzer.faults import ANALYZE, Fault, FaultKind, Faults, Rule
from tests.fakes.analyzer.misbehave import Body, misbehave, reset
from tests.fakes.analyzer.requests import (
    IMAGE_BYTES_MAX,
    BadRequest,
    read_form,
    read_question,
    read_vocabulary,
)
from tests.fakes.analyzer.vocabulary import VocabularyFile
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of

RECORDS_MAX = 100_000
BODY_BYTES_MAX = 64_000_000
# Asked now and then by the clock, so they are counted apart from what a test does.
CHECKS = ("/healthz", "/v1/capabilities")


@dataclass(slots=True)
class Recorded:
    """One request as it came in, and what became of it."""

    number: int  # from 0, in order of arrival
    method: str
    path: str
    camera_id: str | None = None
    request_id: str | None = None
    captured_at: str | None = None
    schema_version: str | None = None
    image_bytes: int = 0
    image_sha256: str | None = None
    has_prev_image: bool = False
    hints: Mapping[str, object] | None = None
    fault: str | None = None
    status: int | None = None  # None: no whole answer was sent (yet)


@dataclass(frozen=True, slots=True)
class Reply:
    """The right answer to a request."""

    body: Body
    fault: Fault | None = None  # that the request itself asks for
    effect: Callable[[], None] | None = None  # what it does, unless a fault refuses it


Handler = Callable[[web.Request, Recorded], Awaitable[Reply]]


class Refused(Exception):
    """An error answer of the contract."""

    def __init__(self, status: int, error: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: Body = {"error": error, "message": message}


class FakeAnalyzer:
    """`async with FakeAnalyzer(state_file) as analyzer:`; its `url` conforms until told otherwise."""

    def __init__(self, state_file: Path, *, port: int = 0, admin_port: int = 0) -> None:
        self._vocabulary = VocabularyFile(state_file)
        self.faults = Faults()
        self.warnings: tuple[str, ...] = ()  # of its capabilities
        self._port, self._admin_port = port, admin_port
        self._released = asyncio.Event()
        self._closing = asyncio.Event()
        self._started_at_sec = time.monotonic()
        self._runner: web.AppRunner | None = None
        self._site: web.SockSite | None = None
        self._admin: web.AppRunner | None = None
        self.requests: deque[Recorded] = deque(maxlen=RECORDS_MAX)
        self.received = 0  # ever; more than len(requests) when old records were dropped
        self.checks: deque[Recorded] = deque(maxlen=RECORDS_MAX)
        self.in_flight = 0
        self.in_flight_max = 0

    async def __aenter__(self) -> "FakeAnalyzer":
        self._runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await self.accept()
        self._admin = web.AppRunner(admin_app(self), access_log=None, shutdown_timeout=1)
        await self._admin.setup()
        sock = listening_socket(self._admin_port)
        self._admin_port = port_of(sock)
        await web.SockSite(self._admin, sock).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        for runner in (self._runner, self._admin):
            if runner is not None:
                await runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def admin_url(self) -> str:
        return f"http://{LOOPBACK}:{self._admin_port}"

    @property
    def schema_version(self) -> str | None:
        """The vocabulary it was given last."""
        return self._vocabulary.stored.schema_version if self._vocabulary.stored else None

    def forget_vocabulary(self) -> None:
        self._vocabulary.forget()

    def add_fault(self, rule: Rule | Fault) -> None:
        """A bare fault strikes every analysis until `heal`."""
        self.faults.rules.append(rule if isinstance(rule, Rule) else Rule(rule))

    def heal(self) -> None:
        """No faults any more; what was held is answered."""
        self.faults.rules.clear()
        self.release()

    def release(self) -> None:
        """Answers the requests held now; later ones are held again."""
        self._released.set()
        self._released = asyncio.Event()

    async def refuse(self) -> None:
        """Nobody listens any more, and open connections are reset."""
        if self._site is None:
            return
        assert self._runner is not None
        assert self._runner.server is not None
        await self._site.stop()
        self._site = None
        for connection in self._runner.server.connections:
            reset(connection.transport)

    async def accept(self) -> None:
        """Listens (again), on the same port."""
        if self._site is None:
            assert self._runner is not None
            # Not any port: while it refuses, an outgoing connection must not get it.
            self._port = self._port or free_port()
            self._site = web.SockSite(self._runner, listening_socket(self._port))
            await self._site.start()

    async def until_received(self, count: int) -> None:
        await until(lambda: self.received >= count, f"{count} requests at the analyzer")

    def analyses(self, camera_id: str | None = None) -> list[Recorded]:
        return [
            record for record in self.requests if record.path == ANALYZE and camera_id in (None, record.camera_id)
        ]

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=BODY_BYTES_MAX)
        for method, path, handler in (
            ("POST", ANALYZE, self._analyze),
            ("GET", "/v1/schema", self._get_schema),
            ("PUT", "/v1/schema", self._put_schema),
            ("GET", "/healthz", self._healthz),
            ("GET", "/v1/capabilities", self._capabilities),
        ):
            app.router.add_route(method, path, self._recorded(handler))
        return app

    def _recorded(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Records the request, runs its handler, and applies the fault that strikes it."""

        async def handle(request: web.Request) -> web.StreamResponse:
            record = Recorded(self.received, request.method, request.path)
            if request.path in CHECKS:
                self.checks.append(record)
                return await self._answered(handler, request, record)
            self.requests.append(record)
            self.received += 1
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self.in_flight)
            try:
                return await self._answered(handler, request, record)
            finally:
                self.in_flight -= 1

        return handle

    async def _answered(self, handler: Handler, request: web.Request, record: Recorded) -> web.StreamResponse:
        status = 200
        try:
            reply = await handler(request, record)
        except BadRequest as error:
            status, reply = 400, Reply({"error": "bad_request", "message": str(error)})
        except Refused as error:
            status, reply = error.status, Reply(error.body)
        fault = reply.fault or self.faults.pick(record.method, record.path, record.camera_id)
        if reply.effect is not None and (fault is None or fault.kind is not FaultKind.STATUS):
            reply.effect()
        if fault is None:
            record.status = status
            return web.json_response(reply.body, status=status)
        record.fault = str(fault.kind)
        response, whole = await misbehave(
            fault, request, status, reply.body, released=self._released, closing=self._closing
        )
        record.status = response.status if whole else None
        return response

    async def _analyze(self, request: web.Request, record: Recorded) -> Reply:
        form = await read_form(request)
        camera_id = form.get("camera_id")
        record.camera_id = camera_id if isinstance(camera_id, str) else None
        question = read_question(form)
        _note(record, question)
        stored = self._vocabulary.stored
        try:
            seen, fault = await asyncio.to_thread(look_at, question.picture)
        except OSError as error:
            raise BadRequest(f"infer_image is no picture: {error}") from error
        if stored is None or stored.schema_version != question.schema_version:
            has = stored.schema_version if stored else "none"
            raise Refused(
                409, "schema_mismatch", f"asked for {question.schema_version}, the vocabulary here is {has}"
            )
        try:
            said = await asyncio.to_thread(answer, question, seen, stored.schema)
        except OSError as error:
            raise BadRequest(f"prev_infer_image is no picture: {error}") from error
        return Reply(said, None if fault is None else Fault.from_json(fault))

    async def _get_schema(self, request: web.Request, record: Recorded) -> Reply:
        if self._vocabulary.stored is None:
            raise Refused(404, "not_found", "no vocabulary was PUT yet")
        return Reply(asdict(self._vocabulary.stored))

    async def _put_schema(self, request: web.Request, record: Recorded) -> Reply:
        stored = await read_vocabulary(request, datetime.now(UTC).isoformat(timespec="milliseconds"))
        record.schema_version = stored.schema_version
        return Reply(
            {"schema_version": stored.schema_version, "status": "accepted"},
            effect=lambda: self._vocabulary.put(stored),
        )

    async def _healthz(self, request: web.Request, record: Recorded) -> Reply:
        return Reply({"status": "ok", "uptime_sec": round(time.monotonic() - self._started_at_sec, 3)})

    async def _capabilities(self, request: web.Request, record: Recorded) -> Reply:
        said: Body = {
            "api_version": "v1",
            "runtime": "fake",
            "model": {"name": "fake", "version": "1"},
            "supported_primary_events": list(PRIMARY_EVENTS),
            "max_image_bytes": IMAGE_BYTES_MAX,
            "recommended_infer_widths": [640, 960],
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }
        return Reply(said)


def _note(record: Recorded, question: Question) -> None:
    record.request_id = question.request_id
    record.captured_at = question.captured_at
    record.schema_version = question.schema_version
    record.image_bytes = len(question.picture)
    record.image_sha256 = hashlib.sha256(question.picture).hexdigest()
    record.has_prev_image = question.prev_picture is not None
    record.hints = question.hints
