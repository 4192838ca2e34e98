"""How checks talk with an analyzer: any request, also a wrong one, and every answer as it came, bounded."""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

import aiohttp

from camserver.clients.causes import cause_of
from camserver.clients.conformance.findings import Failed, Skipped
from camserver.clients.conformance.samples import scene
from camserver.domain.vocabulary import Vocabulary
from camserver.wire.analyzer import ANSWER_BYTES_MAX, BrokenAnswer, check_content_type

# The caller's time-outs, as the contract has them.
HEALTH_SEC: Final = 3.0
SCHEMA_SEC: Final = 5.0
ANALYZE_SEC: Final = 10.0
SHOWN_CHARS_MAX: Final = 160
CAMERA_ID: Final = "conformance"
CAPTURED_AT: Final = "2026-01-01T00:00:00.000Z"
CAPTURED_AT_MS: Final = 1_767_225_600_000


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. `document` is None when the body is no JSON."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    document: Any = None

    @property
    def shown(self) -> str:
        text = self.body.decode("utf-8", "replace")[:SHOWN_CHARS_MAX]
        return "".join(char if char.isprintable() else " " for char in text)


@dataclass(slots=True)
class Stage:
    """What the checks share: the way to the analyzer and the vocabulary it holds."""

    session: aiohttp.ClientSession
    url: str
    document: dict[str, Any] = field(default_factory=dict)
    vocabulary: Vocabulary | None = None
    person: bytes | None = None  # a picture of somebody

    @property
    def held(self) -> Vocabulary:
        if self.vocabulary is None:
            raise Skipped("解析器が語彙を受け取っていません", "the analyzer took no vocabulary")
        return self.vocabulary

    async def get(self, path: str, limit_sec: float) -> Said:
        return await self._ask("GET", path, limit_sec)

    async def put_vocabulary(self, body: object) -> Said:
        """As JSON, or as it is when it is bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self._ask("PUT", "/v1/schema", SCHEMA_SEC, content, "application/json")

    async def analyze(self, picture: bytes | None = None, limit_sec: float = ANALYZE_SEC, **fields: Any) -> Said:
        """A right request but for what is given: a field that is None is left out; bytes are a picture."""
        asked: dict[str, Any] = {
            "camera_id": CAMERA_ID,
            "captured_at": CAPTURED_AT,
            "schema_version": self.held.version,
            "infer_image": scene() if picture is None else picture,
        }
        boundary = secrets.token_hex(16)
        body = _form({name: value for name, value in (asked | fields).items() if value is not None}, boundary)
        kind = f"multipart/form-data; boundary={boundary}"
        return await self._ask("POST", "/v1/analyze", limit_sec, body, kind)

    async def _ask(
        self, method: str, path: str, limit_sec: float, body: bytes | None = None, content_type: str = ""
    ) -> Said:
        try:
            async with self.session.request(
                method,
                self.url + path,
                data=None if body is None else BytesIO(body),
                headers={"Content-Type": content_type} if content_type else {},
                timeout=aiohttp.ClientTimeout(total=limit_sec),
                allow_redirects=False,
            ) as answer:
                content = await _bounded(answer, f"{method} {path}")
                return Said(answer.status, dict(answer.headers), content, _document(content))
        except TimeoutError:
            raise Failed(
                f"{method} {path}: {limit_sec:g} 秒以内に応答がありません",
                f"{method} {path}: no answer within {limit_sec:g} s",
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            cause = cause_of(error)
            raise Failed(f"{method} {path}: 応答がありません ({cause})", f"{method} {path}: {cause}") from None


async def _bounded(answer: aiohttp.ClientResponse, what: str) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > ANSWER_BYTES_MAX:
            raise Failed(
                f"{what}: 応答が {ANSWER_BYTES_MAX} バイトを超えています",
                f"{what}: the answer is longer than {ANSWER_BYTES_MAX} bytes",
            )
    return bytes(body)


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _form(fields: Mapping[str, Any], boundary: str) -> bytes:
    parts = []
    for name, value in fields.items():
        kind = f'; filename="{name}.jpg"\r\nContent-Type: image/jpeg' if isinstance(value, bytes) else ""
        content = value if isinstance(value, bytes) else str(value).encode()
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"{kind}\r\n\r\n'
        parts += [head.encode(), content, b"\r\n"]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()])


def expect_status(said: Said, *wanted: int) -> None:
    if said.status not in wanted:
        numbers = " / ".join(map(str, wanted))
        raise Failed(
            f"{numbers} であるべき応答が {said.status} でした: {said.shown}",
            f"answered {said.status} instead of {numbers}: {said.shown}",
        )


def expect_object(said: Said) -> dict[str, Any]:
    """The answer's JSON object, called JSON by its Content-Type."""
    try:
        check_content_type(said.headers.get("Content-Type", ""))
    except BrokenAnswer as error:
        raise Failed(f"応答が JSON ではありません ({error.message})", error.message) from None
    if not isinstance(said.document, dict):
        raise Failed(
            f"応答が JSON オブジェクトではありません: {said.shown}", f"the answer is no JSON object: {said.shown}"
        )
    return said.document


def expect(condition: bool, ja: str, en: str) -> None:
    if not condition:
        raise Failed(ja, en)
