"""What is asked of a language model, what comes back, and every way in which that can fail."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol

from camserver.base.errors import CamError
from camserver.base.secrets import scrub

JsonSchema = Mapping[str, Any]
ERROR_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Prompt:
    system: str  # how to behave
    text: str  # what to do
    pictures: tuple[bytes, ...] = ()  # JPEG, PNG or WebP
    temperature: float | None = None  # None: the model's own


class Usage(NamedTuple):
    """Tokens as the provider counted them, which is what it bills."""

    tokens_in: int = 0
    tokens_out: int = 0


# No provider counts more than this for one picture, and none puts more than this around a question.
PICTURE_TOKENS_MAX = 50_000
AROUND_TOKENS_MAX = 2_000


def tokens_most(prompt: Prompt, schema: JsonSchema | None, picture_tokens: int = PICTURE_TOKENS_MAX) -> int:
    """What a question can be counted as, at most: no token of a text is shorter than a byte. The schema counts twice,
    since it is told in words to a server that does not take it otherwise."""
    texts = len(prompt.system.encode()) + len(prompt.text.encode()) + 2 * len(json.dumps(dict(schema or {})).encode())
    return texts + AROUND_TOKENS_MAX + picture_tokens * len(prompt.pictures)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What headers say is left until the provider refuses."""

    what: Literal["requests", "tokens"]
    limit: float
    remaining: float
    reset_sec: float  # until all of it is back


class Finish(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"  # at max_tokens; only answers without a schema are given out like that


class Answer(NamedTuple):
    text: str
    parsed: dict[str, Any] | None  # with a schema: the JSON object in the text. Not checked against the schema
    usage: Usage
    model: str  # as the provider names it
    finish: Finish
    limits: tuple[RateLimit, ...] = ()


class LlmErrorKind(StrEnum):
    RATE_LIMITED = "rate_limited"  # 429: later, see retry_after_sec
    OVERLOADED = "overloaded"  # 503, 529: it has too much to do for everybody
    SERVER_ERROR = "server_error"  # any other 5xx
    CONNECTION = "connection"  # refused, reset, no route, no name, a proxy's 502
    TIMEOUT = "timeout"
    QUOTA = "quota"  # the money or the day's allowance is used up: waiting a little does not help
    BAD_KEY = "bad_key"  # the key is wrong, or may not do this
    REFUSED = "refused"  # the model or a filter of the provider does not want to answer this
    TRUNCATED = "truncated"  # the answer is longer than max_tokens
    BROKEN_ANSWER = "broken_answer"  # a 200 that is no answer, or without the JSON that was asked for
    BAD_REQUEST = "bad_request"  # it can't use the request: model, address or settings are wrong


# What the provider most likely bills although nothing useful came back.
BILLED = frozenset({LlmErrorKind.TIMEOUT, LlmErrorKind.REFUSED, LlmErrorKind.TRUNCATED, LlmErrorKind.BROKEN_ANSWER})


class LlmError(CamError):
    """A question without an answer; `kind` says what follows from it, `usage` what it cost if that was said."""

    code = "llm_error"

    def __init__(
        self,
        kind: LlmErrorKind,
        message: str,
        retry_after_sec: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        # Messages quote the provider and are stored; not every database takes every character.
        super().__init__(scrub("".join(char if char.isprintable() else " " for char in message)))
        self.kind = kind
        self.retry_after_sec = retry_after_sec
        self.usage = usage


class LlmClient(Protocol):
    provider: str
    model: str

    async def ask(self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int) -> Answer:
        """The answer, or LlmError. With a schema, `Answer.parsed` holds a JSON object."""

    async def close(self) -> None: ...
