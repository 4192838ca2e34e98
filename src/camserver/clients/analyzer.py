"""Asks an analyzer, and trusts nothing it says: bounded answers, no redirects, every error of a known kind."""

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from io import BytesIO
from urllib.parse import urlsplit

import aiohttp

from camserver.base.errors import CamError
from camserver.clients.causes import cause_of
from camserver.clients.outgoing import KEEP_ALIVE_SEC
from camserver.domain.analysis import Analysis
from camserver.domain.hints import PREVIOUS_AT
from camserver.domain.jobs import ErrorKind, kind_of_status
from camserver.domain.vocabulary import Vocabulary
from camserver.wire.analyzer import (
    ANSWER_BYTES_MAX,
    IMAGE_BYTES_MAX,
    VIA_HEADER,
    BrokenAnswer,
    CapabilitiesAnswer,
    DiffInfo,
    check_content_type,
    parse_capabilities,
    parse_whole_answer,
)

ERROR_CHARS_MAX = 200
# Less is no time-out: the library takes 0 for none.
WITHIN_SEC_MIN = 0.01
# A machine that is switched off never refuses a connection. Told apart from an answer that takes too long, because
# only the latter can be the picture's fault.
CONNECT_TIMEOUT_SEC = 3.0
# Above the most jobs a dispatcher has in flight: waiting for a free connection would look like a dead analyzer.
CONNECTIONS_MAX = 1100
# A health check that fails like this tells that it is away; any other answer is a sign of life.
UNWELL = frozenset({ErrorKind.CONNECTION, ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.SERVER_ERROR})
# Longer bodies are written piece by piece, so that the event loop is not held up.
WHOLE_BODY_BYTES_MAX = 500_000
# Of an answer whose status says everything.
BEGINNING_MAX_BYTES = 4096
BEGINNING_MAX_SEC = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """One picture and what the analyzer is told about it."""

    camera_id: str
    captured_at: int  # UTC epoch ms
    request_id: str
    picture: bytes
    previous: bytes | None = None  # the camera's picture before it
    hints: Mapping[str, object] | None = None
    profile: str | None = None
    via: str = ""  # the analyzers that pass it on, where it is passed on

    def without_previous(self) -> "Question":
        hints = {name: hint for name, hint in (self.hints or {}).items() if name != PREVIOUS_AT}
        return replace(self, previous=None, hints=hints)


class AnalyzerError(CamError):
    """An attempt that failed; `kind` says what follows from it (domain.jobs.after_error)."""

    code = "analyzer_error"

    def __init__(self, kind: ErrorKind, message: str, retry_after_sec: float | None = None) -> None:
        # Messages quote the analyzer and are stored with the job; not every database takes every character.
        super().__init__("".join(char if char.isprintable() else " " for char in message))
        self.kind = kind
        self.retry_after_sec = retry_after_sec


class AnalyzerClient:
    """One analyzer. Connections are kept open between requests; `close` lets them go."""

    def __init__(
        self, url: str, *, analyze_timeout_sec: float, schema_timeout_sec: float, health_timeout_sec: float
    ) -> None:
        self._url = url.rstrip("/")
        self._analyze_sec = analyze_timeout_sec
        self._analyze_timeout = _timeout(analyze_timeout_sec)
        self._schema_timeout = _timeout(schema_timeout_sec)
        self._health_timeout = _timeout(health_timeout_sec)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_SEC),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Small compressed answers can be huge ones: neither asked for nor unpacked.
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
        )

    @property
    def host(self) -> str:
        """Where the analyzer is, without the credentials that its address may hold."""
        parts = urlsplit(self._url)
        return f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)

    async def close(self) -> None:
        await self._session.close()

    async def analyze(self, question: Question, vocabulary: Vocabulary) -> Analysis:
        return (await self.whole_answer(question, vocabulary))[0]

    async def whole_answer(
        self, question: Question, vocabulary: Vocabulary, within_sec: float | None = None
    ) -> tuple[Analysis, DiffInfo]:
        """For whoever passes the answer on, and may have less time for it than an analysis is given."""
        limit = self._analyze_timeout
        if within_sec is not None and within_sec < self._analyze_sec:
            limit = _timeout(max(within_sec, WITHIN_SEC_MIN))
        if len(question.picture) > IMAGE_BYTES_MAX:
            raise AnalyzerError(
                ErrorKind.BAD_REQUEST,
                f"the picture has {len(question.picture)} bytes; the contract allows {IMAGE_BYTES_MAX}",
            )
        boundary = secrets.token_hex(16)
        form = b"".join(form_parts(question, vocabulary.version, boundary))
        body = await self._request(
            "POST",
            "/v1/analyze",
            limit,
            data=aiohttp.BytesPayload(form) if len(form) <= WHOLE_BODY_BYTES_MAX else BytesIO(form),
            content_type=f"multipart/form-data; boundary={boundary}",
            is_read=True,
            via=question.via,
        )
        try:
            return parse_whole_answer(body, question.camera_id, question.captured_at, question.request_id, vocabulary)
        except BrokenAnswer as error:
            raise AnalyzerError(ErrorKind.BROKEN_ANSWER, error.message) from None

    async def put_vocabulary(self, version: str, document: object) -> None:
        """Sends a vocabulary. One that is refused is a mismatch that stays: it says nothing about any picture."""
        try:
            await self._request(
                "PUT",
                "/v1/schema",
                self._schema_timeout,
                data=json.dumps({"schema_version": version, "schema": document}).encode(),
                content_type="application/json",
            )
        except AnalyzerError as error:
            if error.kind is not ErrorKind.BAD_REQUEST:
                raise
            raise AnalyzerError(
                ErrorKind.VOCABULARY_MISMATCH, f"the vocabulary {version} was refused: {error.message}"
            ) from None

    async def check_health(self) -> None:
        """Whether it answers at all and does not say that it is unwell. What the answer holds is not looked at."""
        try:
            await self._request("GET", "/healthz", self._health_timeout)
        except AnalyzerError as error:
            if error.kind in UNWELL:
                raise

    async def capabilities(self) -> CapabilitiesAnswer:
        """What it says about itself."""
        body = await self._request("GET", "/v1/capabilities", self._schema_timeout, is_read=True)
        try:
            return parse_capabilities(body)
        except BrokenAnswer as error:
            raise AnalyzerError(ErrorKind.BROKEN_ANSWER, error.message) from None

    async def _request(
        self,
        method: str,
        path: str,
        limit: aiohttp.ClientTimeout,
        *,
        data: bytes | BytesIO | aiohttp.BytesPayload | None = None,
        content_type: str | None = None,
        is_read: bool = False,
        via: str = "",
    ) -> bytes:
        """The body of a 200. `is_read`: somebody looks into it, so it must be what the contract says. Elsewhere the
        status says everything, and a body that never ends changes nothing about it."""
        headers = {} if content_type is None else {"Content-Type": content_type}
        if via:
            headers[VIA_HEADER] = via
        try:
            async with self._session.request(
                method, self._url + path, data=data, headers=headers, timeout=limit, allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    raise _failed(answer, await _beginning(answer))
                if not is_read:
                    await _beginning(answer)
                    return b""
                body = await _bounded(answer)
                check_content_type(answer.headers.get("Content-Type", ""))
                return body
        except BrokenAnswer as error:
            raise AnalyzerError(ErrorKind.BROKEN_ANSWER, error.message) from None
        except aiohttp.ConnectionTimeoutError:
            raise AnalyzerError(
                ErrorKind.CONNECTION, f"{method} {path} at {self.host}: no connection within {limit.connect:g} s"
            ) from None
        except TimeoutError:
            raise AnalyzerError(
                ErrorKind.TIMEOUT, f"{method} {path} got no answer within {limit.total:g} s"
            ) from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
            raise AnalyzerError(ErrorKind.CONNECTION, f"{method} {path} at {self.host}: {cause_of(error)}") from None
        except aiohttp.ClientError as error:
            raise AnalyzerError(
                ErrorKind.BROKEN_ANSWER, f"{method} {path}: {type(error).__name__}: {error}"
            ) from None


def form_parts(question: Question, schema_version: str, boundary: str) -> Iterator[bytes]:
    """The parts of the request's body. The boundary is random, so no picture and no text holds it."""
    fields = {
        "camera_id": question.camera_id,
        "captured_at": iso_utc(question.captured_at),
        "schema_version": schema_version,
        "request_id": question.request_id,
    }
    if question.profile is not None:
        fields["profile"] = question.profile
    if question.hints:
        fields["hints_json"] = json.dumps(question.hints)
    for name, text in fields.items():
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()
    pictures = {"infer_image": question.picture, "prev_infer_image": question.previous}
    for name, picture in pictures.items():
        if picture is not None:
            yield (
                f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.jpg"\r\n'
                "Content-Type: image/jpeg\r\n\r\n"
            ).encode()
            yield picture
            yield b"\r\n"
    yield f"--{boundary}--\r\n".encode()


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = await answer.content.readany()
    while not answer.content.at_eof():
        body += await answer.content.readany()
        if len(body) > ANSWER_BYTES_MAX:
            raise AnalyzerError(
                ErrorKind.BROKEN_ANSWER, f"the analyzer's answer is longer than {ANSWER_BYTES_MAX} bytes"
            )
    return body


async def _beginning(answer: aiohttp.ClientResponse) -> bytes:
    """What people may want to read of a body that nothing depends on: a little of it, and for a moment."""
    body = bytearray()
    try:
        async with asyncio.timeout(BEGINNING_MAX_SEC):
            while not answer.content.at_eof() and len(body) < BEGINNING_MAX_BYTES:
                body += await answer.content.read(BEGINNING_MAX_BYTES - len(body))
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    if not answer.content.at_eof():
        answer.close()
    return bytes(body)


def _timeout(total_sec: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_sec, connect=min(CONNECT_TIMEOUT_SEC, total_sec / 2))


def _failed(answer: aiohttp.ClientResponse, body: bytes) -> AnalyzerError:
    said = body.decode("utf-8", "replace")[:ERROR_CHARS_MAX]
    return AnalyzerError(
        kind_of_status(answer.status),
        f"the analyzer answered {answer.status}: {said}",
        _retry_after_sec(answer.headers.get("Retry-After"), answer.headers.get("Date")),
    )


def _retry_after_sec(value: str | None, date: str | None) -> float | None:
    """The header in seconds. Its other form, a moment, counts from the answer's own date: clocks may differ."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(value) - parsedate_to_datetime(date or "")).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return None


def iso_utc(at_ms: int) -> str:
    # Not by strftime, which takes several times as long. The offset is cut off.
    moment = datetime.fromtimestamp(at_ms // 1000, UTC).isoformat()[:19]
    return f"{moment}.{at_ms % 1000:03d}Z"
