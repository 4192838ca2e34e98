"""The HTTP side of the analyzer. Routes translate, they don't decide."""

import asyncio
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial

from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Bug, CamError, NotFound
from camserver.base.log import bind_ids, get_logger
from camserver.domain.detections import DetectionPolicy
from camserver.domain.vocabulary import Vocabulary
from camserver.services.analyzer.analyzing import Question, analyze
from camserver.services.analyzer.detector import Detector, Model
from camserver.services.analyzer.forms import Unfinished, read_form
from camserver.services.analyzer.line import Line, NotWanted, Overloaded
from camserver.services.analyzer.vocabulary_file import Held, VocabularyFile
from camserver.wire.analyzer import AnalyzeAnswer, ModelInfo
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


@dataclass(slots=True)
class Routes:
    clock: Clock
    line: Line
    vocabularies: VocabularyFile
    policy: DetectionPolicy
    model: Model
    started_ms: int = field(init=False)
    putting: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)

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
            exception_handlers={CamError: _cam_error, HTTPException: _http_error},
        )

    async def analyze(self, request: Request) -> Response:
        with self.line.place():
            question = await _read_question(request)
            with bind_ids(camera_id=question.asked.camera_id):
                vocabulary = self.vocabularies.expect(question.asked.schema_version)
                answer = await self.line.run(
                    lambda detector: _analyze(question, detector, vocabulary, self.policy),
                    partial(_is_connected, request),
                )
        return _json(answer)

    async def get_vocabulary(self, request: Request) -> Response:
        held = self.vocabularies.held
        if held is None:
            raise NotFound("no vocabulary was put yet; put it by PUT /v1/schema")
        return JSONResponse(asdict(held))

    async def put_vocabulary(self, request: Request) -> Response:
        asked = parse_vocabulary_put(await _read(request, VOCABULARY_BYTES_MAX))
        received_at = datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        held = Held(asked.schema_version, asked.document, received_at)
        async with self.putting:
            await asyncio.to_thread(self.vocabularies.put, held)
        log.info("vocabulary in force", schema_version=held.schema_version)
        return _json(Accepted(schema_version=held.schema_version))

    async def capabilities(self, request: Request) -> Response:
        info = ModelInfo(name=self.model.name, version=self.model.version)
        return _json(Capabilities(runtime=self.model.runtime, model=info))

    async def healthz(self, request: Request) -> Response:
        return _json(Health(uptime_sec=(self.clock.boot_ms() - self.started_ms) / 1000))


def _analyze(
    question: Question, detector: Detector, vocabulary: Vocabulary, policy: DetectionPolicy
) -> AnalyzeAnswer:
    try:
        return analyze(question, detector, vocabulary, policy)
    except CamError:
        raise
    except Exception as error:
        # A picture that the model can't bear must not look like one that is none.
        log.exception("analysis failed")
        raise Bug("the analysis failed; the analyzer's log holds the cause") from error


async def _read_question(request: Request) -> Question:
    form = await read_form(request)
    asked = parse_fields(form.texts)
    picture = form.pictures.get("infer_image")
    if picture is None:
        raise BadInput("infer_image is missing")
    return Question(asked, picture, form.pictures.get("prev_infer_image"))


async def _is_connected(request: Request) -> bool:
    return not await request.is_disconnected()


async def _read(request: Request, bytes_max: int) -> bytes:
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > bytes_max:
                raise BadInput(f"the body has more than {bytes_max} bytes")
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
    response = _json(ErrorAnswer(error=ERRORS.get(status, "internal"), message=error.message[:1000]), status)
    if isinstance(error, Overloaded):
        response.headers["Retry-After"] = str(error.retry_after_sec)
    elif status == 503:
        response.headers["Retry-After"] = str(RETRY_AFTER_SEC)
    if isinstance(error, Unfinished):
        response.headers["Connection"] = "close"
    return response


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = ERRORS.get(error.status_code, "internal")
    message = f"{request.method} {request.url.path}: {error.detail}"[:1000]
    return _json(ErrorAnswer(error=name, message=message), error.status_code)
