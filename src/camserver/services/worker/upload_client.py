"""One upload over HTTP, and what its answer means for the look. Retries nothing, keeps nothing.

Every way an upload can end is a value: recorded or refused (the server's word on that look), `Away` (nothing about
the look: the server or the way to it is the matter) or `Stuck` (the server fails on this very look).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import aiohttp
from pydantic import ValidationError

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.wire import errands
from camserver.wire.looks import (
    CONTENT_TYPE,
    LOOKS_PATH,
    WORKER_HEADER,
    ErrorBody,
    LookAnswer,
    LookRefused,
    parse_answer,
)

CONNECT_TIMEOUT_SEC: Final = 10.0
ANSWER_TIMEOUT_SEC: Final = 30.0
# The slowest line we still wait for; a bound that knows no size would cut large looks off for ever.
LINE_BYTES_PER_SEC: Final = 16_000
ANSWER_MAX_BYTES: Final = 16_384
RETRY_AFTER_MAX_SEC: Final = 300.0
# Only camserver itself can say so, and it says it with an ErrorBody: a proxy's 413 must not cost a look.
FINAL_STATUSES: Final = frozenset({400, 413})


@dataclass(frozen=True, slots=True)
class Away:
    reason: str
    retry_after_sec: float = 0.0


@dataclass(frozen=True, slots=True)
class Stuck:
    reason: str


Outcome = LookAnswer | Away | Stuck
A = TypeVar("A")


class UploadClient:
    def __init__(
        self,
        session: aiohttp.ClientSession,
        server_url: str,
        worker_id: str,
        token: Secret | None,
        answer_timeout_sec: float = ANSWER_TIMEOUT_SEC,
    ) -> None:
        self._session = session
        self._server_url = server_url.rstrip("/")
        self._worker_id = worker_id
        self._token = token
        self._answer_timeout_sec = answer_timeout_sec

    async def send(self, body: bytes) -> Outcome:
        """Sends the packed look once."""
        return await self._post(LOOKS_PATH, CONTENT_TYPE, body, parse_answer, _look_refused)

    async def answer(self, body: bytes) -> errands.ErrandAnswer | Away | Stuck:
        """Sends the packed answer to an errand once."""
        return await self._post(
            errands.ERRANDS_PATH, errands.CONTENT_TYPE, body, errands.parse_answer, _errand_refused
        )

    async def _post(
        self,
        path: str,
        content_type: str,
        body: bytes,
        parse: Callable[[bytes], A],
        refused: Callable[[str], A],
    ) -> A | Away | Stuck:
        headers = {"Content-Type": content_type, WORKER_HEADER: self._worker_id}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.reveal()}"
        timeout = aiohttp.ClientTimeout(
            total=self._answer_timeout_sec + len(body) / LINE_BYTES_PER_SEC, connect=CONNECT_TIMEOUT_SEC
        )
        try:
            async with self._session.post(
                self._server_url + path, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                text = await _read_bounded(response)
                return _meaning(response, text, parse, refused)
        except TimeoutError:
            return Away("no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            return Away(f"connection failed: {type(error).__name__}")


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    """The answer's body; past the bound it is no answer of camserver's, and the rest does not matter."""
    text = bytearray()
    async for piece in response.content.iter_chunked(ANSWER_MAX_BYTES):
        text += piece
        if len(text) > ANSWER_MAX_BYTES:
            break
    return bytes(text)


def _look_refused(said: str) -> LookAnswer:
    return LookRefused(reason=said[:255], server_time=0)


def _errand_refused(said: str) -> errands.ErrandAnswer:
    return errands.ErrandRefused(reason=said[:255], server_time=0)


def _meaning(
    response: aiohttp.ClientResponse, text: bytes, parse: Callable[[bytes], A], refused: Callable[[str], A]
) -> A | Away | Stuck:
    status = response.status
    if status == 200:
        try:
            return parse(text)
        except BadInput as error:
            return Away(f"answer 200 makes no sense: {error.message}")
    error_body = _error_body(text)
    said = f"{status} {error_body.error_code}: {error_body.message}" if error_body else f"status {status}"
    if status in FINAL_STATUSES and error_body:
        return refused(said)
    if status == 500:
        return Stuck(said)
    return Away(said, _retry_after_sec(response.headers.get("Retry-After")))


def _error_body(text: bytes) -> ErrorBody | None:
    try:
        return ErrorBody.model_validate_json(text)
    except ValidationError:
        return None


def _retry_after_sec(text: str | None) -> float:
    """The pause asked for, bounded; 0 when none was, or as a date."""
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 9:
        return 0.0
    return min(float(text), RETRY_AFTER_MAX_SEC)
