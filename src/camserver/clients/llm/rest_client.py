"""Asks a provider over HTTP: bounded answers, no redirects, every error of a known kind, the key never shown.

The address comes from the operator's own settings, so a model on this machine or in its network is fine; where clouds
keep secrets is not.

A server that does not know a newer part of its API (a schema for the answer, say) is asked once more without it, and
that is remembered.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.llm.answers import document_of, object_in, rate_limits, retry_after_sec
from camserver.clients.llm.lean_http import Came, LeanHttp, Reply, TooLong
from camserver.clients.llm.provider import Extra, Provider, Question, Said, Without, refused_extra
from camserver.clients.llm.questions import (
    AROUND_TOKENS_MAX,
    ERROR_CHARS_MAX,
    Answer,
    Finish,
    JsonSchema,
    LlmError,
    LlmErrorKind,
    Prompt,
    RateLimit,
    Usage,
    tokens_most,
)
from camserver.clients.outgoing import OutgoingPolicy, checked_connector
from camserver.domain.deliveries import DeliveryError, Trouble
from camserver.domain.messages import one_line

log = get_logger(__name__)

ANSWER_BYTES_MAX = 1_000_000
_POLICY = OutgoingPolicy(allow_loopback=True)
# A machine that is switched off never refuses a connection.
CONNECT_TIMEOUT_SEC = 10.0
# Extras that may be left out one after the other within one question.
ADAPTATIONS_MAX = 3
MODEL_MAX_CHARS = 128
# Kinds of questions whose JSON is kept, and what stands for their texts in it.
AROUND_MAX = 64
_MARK = "\x00\x01the text\x01\x00"
_MARK_JSON = json.dumps(_MARK)[1:-1].encode()


class RestClient:
    """One provider's API with one model. Connections are kept open between questions; `close` lets them go."""

    def __init__(
        self,
        provider: Provider,
        *,
        base_url: str | None,
        model: str,
        key: Secret | None,
        timeout_sec: float,
        lean: bool = False,
    ) -> None:
        """`lean`: for very many questions; see lean_http.py."""
        self.provider = provider.name
        self.model = model
        self._api = provider
        self._url = (provider.base_url if base_url is None else base_url).rstrip("/")
        self._key = key
        self._timeout = aiohttp.ClientTimeout(total=timeout_sec, connect=min(CONNECT_TIMEOUT_SEC, timeout_sec / 2))
        self._without: Without = frozenset()
        self._session: aiohttp.ClientSession | None = None
        self._is_checked = False
        self._head: bytes | None = None
        self._around: dict[tuple[object, ...], tuple[bytes, bytes, JsonSchema | None]] = {}
        self._lean = LeanHttp(self._url, _POLICY, answer_bytes_max=ANSWER_BYTES_MAX) if lean else None

    @property
    def host(self) -> str:
        return urlsplit(self._url).netloc.rpartition("@")[2]

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
        if self._lean is not None:
            await self._lean.close()

    async def ask(self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int) -> Answer:
        return await self._asked(prompt, schema, max_tokens, wants_object=schema is not None)

    async def ask_loosely(
        self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int, came: Came | None = None
    ) -> Answer:
        """As `ask`, but whatever the model says is an answer: its reader knows better what can be repaired. `came` is
        what came back already, where the question was sent by `send`."""
        return await self._asked(prompt, schema, max_tokens, wants_object=False, came=came)

    def send(self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int, then: Callable[[Came], None]) -> bool:
        """Sends a question without a task of its own, for who asks very many; False, and nothing is sent, where no
        connection is open. `then` is told what came, for `read` or `ask_loosely`."""
        if self._lean is None or self._head is None:
            return False
        body = self._body(Question(self.model, prompt, schema, max_tokens, self._without))
        return self._lean.send(self._head, body, self._timeout.total or 0, then)

    def read(self, reply: Reply, prompt: Prompt, schema: JsonSchema | None, max_tokens: int) -> Answer:
        """What an answer of status 200 says, or LlmError."""
        document = document_of(reply.body)
        said = self._api.read(document) if document is not None else None
        question = Question(self.model, prompt, schema, max_tokens)
        return _checked(said, question, False, rate_limits(reply.headers))

    async def _asked(
        self,
        prompt: Prompt,
        schema: JsonSchema | None,
        max_tokens: int,
        *,
        wants_object: bool,
        came: Came | None = None,
    ) -> Answer:
        question = Question(self.model, prompt, schema, max_tokens, self._without)
        for _ in range(ADAPTATIONS_MAX + 1):
            if isinstance(came, Exception):
                raise self._failed(came) from None
            reply = await self._post(question) if came is None else came
            came = None
            document = document_of(reply.body)
            if reply.status == 200:
                said = self._api.read(document) if document is not None else None
                return _checked(said, question, wants_object, rate_limits(reply.headers))
            failure = self._api.failure(reply.status, document)
            extra = refused_extra(failure.message, question) if reply.status in (400, 422) else None
            if extra is None:
                break
            self._without |= {extra}
            question = replace(question, without=self._without)
        message = failure.message or reply.body.decode("utf-8", "replace")
        raise LlmError(
            failure.kind,
            f"{self.host} answered {reply.status}: {message[:ERROR_CHARS_MAX]}",
            failure.retry_after_sec if failure.retry_after_sec is not None else retry_after_sec(reply.headers),
        )

    def _body(self, question: Question) -> bytes:
        """What is the same for many questions (the system's words, a schema) is made into JSON once."""
        prompt, schema = question.prompt, question.schema
        if prompt.pictures:
            return _as_json(self._api.body(_told(question)))
        key = (prompt.system, prompt.temperature, id(schema), question.max_tokens, question.without)
        around = self._around.get(key)
        if around is None:
            marked = replace(question, prompt=replace(prompt, text=_MARK))
            before, mark, after = _as_json(self._api.body(_told(marked))).partition(_MARK_JSON)
            if not mark or _MARK_JSON in after:
                return _as_json(self._api.body(_told(question)))
            if len(self._around) >= AROUND_MAX:
                self._around.clear()
            # With the schema, so that no other one gets its number.
            around = self._around[key] = (before, after, schema)
        return around[0] + _as_json(prompt.text)[1:-1] + around[1]

    async def _post(self, question: Question) -> Reply:
        body = self._body(question)
        try:
            if not self._is_checked:
                _POLICY.check_literal(urlsplit(self._url).hostname or "")
                self._is_checked = True
            if self._lean is not None:
                if self._head is None:
                    self._head = self._lean.head(self._api.path(self.model), self._headers())
                return await self._lean.post(
                    self._head,
                    body,
                    timeout_sec=self._timeout.total or 0,
                    connect_sec=self._timeout.connect or 0,
                )
            async with self._opened().post(
                self._url + self._api.path(self.model),
                data=body,
                headers=self._headers(),
                timeout=self._timeout,
                allow_redirects=False,
            ) as answer:
                names = {name.lower(): value for name, value in answer.headers.items()}
                return Reply(answer.status, names, await _bounded(answer))
        except LlmError:
            raise
        except (DeliveryError, TooLong, TimeoutError, OSError, ValueError, aiohttp.ClientError) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> LlmError:
        """What it means that a question got no answer of HTTP."""
        if isinstance(error, DeliveryError):
            # Of the address policy: a name nobody knows, or a place nobody may connect to.
            away = error.kind is Trouble.RETRY
            return LlmError(LlmErrorKind.CONNECTION if away else LlmErrorKind.BAD_REQUEST, error.message)
        if isinstance(error, TooLong):
            return LlmError(LlmErrorKind.BROKEN_ANSWER, f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            connect_sec = self._timeout.connect or 0
            return LlmError(LlmErrorKind.CONNECTION, f"no connection to {self.host} within {connect_sec:g} s")
        if isinstance(error, TimeoutError):
            timeout_sec = self._timeout.total or 0
            return LlmError(LlmErrorKind.TIMEOUT, f"no answer from {self.host} within {timeout_sec:g} s")
        is_lost = isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | OSError)
        kind = LlmErrorKind.CONNECTION if is_lost else LlmErrorKind.BROKEN_ANSWER
        return LlmError(kind, f"{self.host}: {type(error).__name__}: {error}")

    def _headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", **self._api.headers(self._key)}

    def _opened(self) -> aiohttp.ClientSession:
        """Made at the first question, on the loop that asks it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=checked_connector(_POLICY),
                cookie_jar=aiohttp.DummyCookieJar(),
                # Small compressed answers can be huge ones: neither asked for nor unpacked.
                headers={"Accept-Encoding": "identity"},
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _as_json(document: object) -> bytes:
    return json.dumps(document).encode()


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(65_536):
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise LlmError(LlmErrorKind.BROKEN_ANSWER, f"the answer is longer than {ANSWER_BYTES_MAX} bytes")
    return bytes(body)


def _told(question: Question) -> Question:
    """With the schema in words, where the server does not take it as a schema."""
    if question.schema is None or Extra.SCHEMA not in question.without:
        return question
    shape = json.dumps(dict(question.schema))
    text = f"{question.prompt.text}\n\nAnswer with one JSON object and nothing else. It must fit this schema: {shape}"
    return replace(question, prompt=replace(question.prompt, text=text))


def _checked(said: Said | None, question: Question, wants_object: bool, limits: tuple[RateLimit, ...]) -> Answer:
    if said is None:
        raise LlmError(LlmErrorKind.BROKEN_ANSWER, "what came with status 200 is no answer of this API")
    usage = _possible(said.usage, question)
    if said.refused:
        raise LlmError(LlmErrorKind.REFUSED, f"no answer: {said.refused[:ERROR_CHARS_MAX]}", usage=usage)
    parsed: dict[str, Any] | None = None
    if wants_object:
        parsed = object_in(said.text)
        if parsed is None and said.finish is Finish.LENGTH:
            raise LlmError(
                LlmErrorKind.TRUNCATED, f"the answer is longer than {question.max_tokens} tokens", usage=usage
            )
        if parsed is None:
            begin = said.text[:ERROR_CHARS_MAX]
            raise LlmError(LlmErrorKind.BROKEN_ANSWER, f"the answer holds no JSON: {begin}", usage=usage)
    return Answer(said.text, parsed, usage, _shown(said.model) or question.model, said.finish, limits)


@lru_cache(maxsize=64)
def _shown(model: str) -> str:
    """The model's name is stored with the answer."""
    return one_line(model[: 2 * MODEL_MAX_CHARS], MODEL_MAX_CHARS)


def _possible(usage: Usage, question: Question) -> Usage:
    """What was used, but no more than this question could have: a lie must not eat up the day's budget."""
    if usage.tokens_in <= AROUND_TOKENS_MAX and usage.tokens_out <= question.max_tokens:
        return usage
    most_in = tokens_most(question.prompt, question.schema)
    possible = Usage(min(usage.tokens_in, most_in), min(usage.tokens_out, question.max_tokens))
    if possible != usage:
        log.warning("llm_usage_impossible", tokens_in=usage.tokens_in, tokens_out=usage.tokens_out)
    return possible
