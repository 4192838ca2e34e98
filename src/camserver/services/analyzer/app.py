"""The HTTP side of the analyzer. Routes translate, they don't decide."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Bug, CamError, NotFound, Unavailable
from camserver.base.log import bind_ids, get_logger
from camserver.domain.detections import DetectionPolicy
from camserver.domain.vocabulary import Vocabulary
from camserver.services.analyzer.analyzing import Found, Prepared, Question, conclude, find, prepare
from camserver.services.analyzer.crew import Crew
from camserver.services.analyzer.detector import Detector, Forwarder, InForce
from camserver.services.analyzer.forms import TooSlow, Unfinished, read_form
from camserver.services.analyzer.line import Line, NotWanted, Overloaded, Steps
from camserver.services.analyzer.remembered import Remembered
from camserver.services.analyzer.vocabulary_file import Held, VocabularyFile
from camserver.wire.analyzer import VIA_HEADER, AnalyzeAnswer, ModelInfo
from camserver.wire.analyzer_service import (
    VOCABULARY_BYTES_MAX,
    Accepted,
    Capabilities,
    ErrorAnswer,
    Health,
    parse_fields,
    parse_vocabulary_put,
)

log = get_logger(__name__)

T = TypeVar("T")

# The contract's words; a caller acts on the status.
ERRORS = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    409: "schema_mismatch",
    429: "overloaded",
    503: "unavailable",
}
RETRY_AFTER_SEC = 2
MESSAGE_CHARS_MAX = 1000
# Each may be of megabytes, and there is one server that puts one.
PUTS_MAX = 4


@dataclass(slots=True)
class Routes:
    clock: Clock
    line: Line
    vocabularies: VocabularyFile
    policy: DetectionPolicy
    in_force: InForce
    started_ms: int = field(init=False)
    remembered: Remembered = field(init=False, default_factory=Remembered)
    putting: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    puts: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.started_ms = self.clock.boot_ms()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/analyze", self.analyze, methods=["POST"]),
                Route("/v1/schema", self.get_vocabulary, methods=["GET"]),
                Route("/v1/schema", self.put_vocabulary, methods=["PUT"]),
                Route("/v1/capabilities", self.capabilities, methods=["GET"]),
                Route("/healthz", self.healthz, methods=["GET"]),
            ],
            exception_handlers={CamError: _cam_error, HTTPException: _http_error, Exception: _unexpected},
        )

    async def analyze(self, request: Request) -> Response:
        with self.line.place() as place:
            question = await _read_question(request, self.line.patience_sec)
            with bind_ids(camera_id=question.asked.camera_id):
                vocabulary = self.vocabularies.expect(question.asked.schema_version)
                asked = _Asked(question, vocabulary, self.policy, self.remembered, lambda: self.line.left_sec(place))
                steps = _steps(asked)
                answer = await _while_connected(request, self.line.run(steps, place))
        return _json(answer)

    async def get_vocabulary(self, request: Request) -> Response:
        held = self.vocabularies.held
        if held is None:
            raise NotFound("no vocabulary was put yet; put it by PUT /v1/schema")
        return JSONResponse(asdict(held))

    async def put_vocabulary(self, request: Request) -> Response:
        if self.puts >= PUTS_MAX:
            raise Overloaded(f"{self.puts} vocabularies are being put already; ask again later")
        self.puts += 1
        try:
            return await self._put_vocabulary(await _read(request, VOCABULARY_BYTES_MAX, self.line.patience_sec))
        finally:
            self.puts -= 1

    async def _put_vocabulary(self, body: bytes) -> Response:
        asked = parse_vocabulary_put(body)
        received_at = datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        held = Held(asked.schema_version, asked.document, received_at)
        async with self.putting:
            await asyncio.to_thread(self.vocabularies.put, held)
        log.info("vocabulary in force", schema_version=held.schema_version)
        return _json(Accepted(schema_version=held.schema_version))

    async def capabilities(self, request: Request) -> Response:
        model = self.in_force.model
        info = ModelInfo(name=model.name, version=model.version)
        return _json(
            Capabilities(
                runtime=model.runtime,
                model=info,
                supported_primary_events=model.events,
                warnings=self.in_force.warnings or None,
            )
        )

    async def healthz(self, request: Request) -> Response:
        stuck_sec = self.line.stuck_sec
        if stuck_sec is not None:
            raise Unavailable(f"a picture has been worked on for {stuck_sec:.0f} s; this analyzer starts again")
        return _json(Health(uptime_sec=(self.clock.boot_ms() - self.started_ms) / 1000))


@dataclass(frozen=True, slots=True)
class _Asked:
    """The steps of one request. Whatever goes wrong in them that is not the picture's fault is a bug of ours."""

    question: Question
    vocabulary: Vocabulary
    policy: DetectionPolicy
    remembered: Remembered
    left_sec: Callable[[], float]  # for how long the caller still waits

    def prepare(self, crew: Crew) -> Prepared | None:
        """None: it is passed on as it came."""
        if crew.forwards(self.question.asked.profile):
            return None
        try:
            return prepare(self.question, crew.one(self.question.asked.profile), self.remembered)
        except Exception as error:
            _fail(error)

    def find(self, prepared: Prepared | None, detector: Detector) -> Found | AnalyzeAnswer:
        try:
            if isinstance(detector, Forwarder):
                return detector.forward(self.question, self.vocabulary, self.left_sec())
            assert prepared is not None
            return find(prepared, detector)
        except Exception as error:
            _fail(error)

    def conclude(self, prepared: Prepared | None, found: Found | AnalyzeAnswer) -> AnalyzeAnswer:
        if isinstance(found, AnalyzeAnswer):
            return found
        assert prepared is not None
        try:
            return conclude(self.question, prepared, found, self.vocabulary, self.policy)
        except Exception as error:
            _fail(error)


def _steps(asked: _Asked) -> Steps[Prepared | None, Found | AnalyzeAnswer, AnalyzeAnswer]:
    return Steps(asked.question.asked.profile, asked.prepare, asked.find, asked.conclude)


def _fail(error: Exception) -> NoReturn:
    if isinstance(error, CamError):
        raise error
    # A picture that the model can't bear must not look like one that is none.
    log.error("analysis failed", exc_info=error)
    raise Bug("the analysis failed; the analyzer's log holds the cause") from error


async def _read_question(request: Request, timeout_sec: float) -> Question:
    form = await read_form(request, timeout_sec)
    asked = parse_fields(form.texts)
    picture = form.pictures.get("infer_image")
    if picture is None:
        raise BadInput("infer_image is missing")
    return Question(
        asked,
        picture,
        form.pictures.get("prev_infer_image"),
        form.texts.get("hints_json", ""),
        request.headers.get(VIA_HEADER, ""),
    )


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives. NotWanted, and no more of it, when the client leaves; its body has been read."""
    working = asyncio.create_task(work)
    # All that can still come is the word that the connection is gone.
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise NotWanted("the client left before its picture's turn")
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _read(request: Request, bytes_max: int, timeout_sec: float) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_sec):
            async for piece in request.stream():
                body += piece
                if len(body) > bytes_max:
                    raise BadInput(f"the body has more than {bytes_max} bytes")
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {timeout_sec:g} s; try again") from None
    except ClientDisconnect:
        raise BadInput("the body was cut off") from None
    return bytes(body)


def _json(answer: BaseModel, status: int = 200) -> Response:
    return Response(answer.model_dump_json(exclude_none=True), status, media_type="application/json")


def _cam_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, CamError)
    if isinstance(error, NotWanted):
        log.info("not analyzed", cause=error.message)
    elif isinstance(error, BadInput):
        log.warning("request refused", path=request.url.path, status=error.http_status, cause=error.message)
    status = error.http_status
    response = _error(status, error.message)
    if isinstance(error, Overloaded):
        response.headers["Retry-After"] = str(error.retry_after_sec)
    elif status == 503:
        response.headers["Retry-After"] = str(error.details.get("retry_after_sec", RETRY_AFTER_SEC))
    if isinstance(error, Unfinished):
        response.headers["Connection"] = "close"
    return response


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, f"{request.method} {request.url.path}: {error.detail}")


def _unexpected(request: Request, error: Exception) -> Response:
    """A bug of ours, told in the contract's form; the server around this logs it with its trace."""
    log.error("request failed", path=request.url.path, cause=type(error).__name__)
    response = _error(500, "the request failed; the analyzer's log holds the cause")
    response.headers["Connection"] = "close"  # the server around this ends it after an error
    return response


def _error(status: int, message: str) -> Response:
    # A message may quote half a character of somebody's JSON, which no answer can hold.
    said = message[:MESSAGE_CHARS_MAX].encode("utf-8", "replace").decode()
    return _json(ErrorAnswer(error=ERRORS.get(status, "internal"), message=said), status)
