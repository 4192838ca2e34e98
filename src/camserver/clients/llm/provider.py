"""What a provider's API is made of, as pure functions over documents; `rest_client.py` does the talking."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from camserver.base.secrets import Secret
from camserver.clients.llm.questions import Finish, JsonSchema, LlmErrorKind, Prompt, Usage


class Extra(StrEnum):
    """What not every server of a provider's API understands, and is left out after one refused it."""

    SCHEMA = "schema"  # an answer held to the schema; without it the schema is told in words
    TEMPERATURE = "temperature"  # models that think first often take none
    MAX_TOKENS = "max_tokens"  # the older name of the bound on the answer; without it the newer one is used


Without = frozenset[Extra]


@dataclass(frozen=True, slots=True)
class Question:
    model: str
    prompt: Prompt
    schema: JsonSchema | None
    max_tokens: int
    without: Without = frozenset()

    @property
    def temperature(self) -> float | None:
        return None if Extra.TEMPERATURE in self.without else self.prompt.temperature


class Said(NamedTuple):
    """An answer of status 200. `refused` is why there is none."""

    text: str
    usage: Usage
    model: str
    finish: Finish
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """What an error answer means."""

    kind: LlmErrorKind
    message: str
    retry_after_sec: float | None = None  # where the body says it; headers are read by the client


class Provider(Protocol):
    name: str
    base_url: str  # of its own service

    def headers(self, key: Secret | None) -> dict[str, str]: ...

    def path(self, model: str) -> str: ...

    def body(self, question: Question) -> dict[str, Any]: ...

    def read(self, document: dict[str, Any]) -> Said | None:
        """None for what is no answer."""

    def failure(self, status: int, document: dict[str, Any] | None) -> Failure: ...


def kind_of_status(status: int) -> LlmErrorKind:
    """What a status means at every provider; some say more in the body."""
    known = {
        401: LlmErrorKind.BAD_KEY,
        402: LlmErrorKind.QUOTA,
        403: LlmErrorKind.BAD_KEY,
        408: LlmErrorKind.TIMEOUT,
        409: LlmErrorKind.OVERLOADED,
        425: LlmErrorKind.OVERLOADED,
        429: LlmErrorKind.RATE_LIMITED,
        502: LlmErrorKind.CONNECTION,
        503: LlmErrorKind.OVERLOADED,
        504: LlmErrorKind.TIMEOUT,
        529: LlmErrorKind.OVERLOADED,
    }
    if status in known:
        return known[status]
    if status >= 500:
        return LlmErrorKind.SERVER_ERROR
    # A redirect is followed by nobody: the key would go to wherever it points.
    return LlmErrorKind.BAD_REQUEST


# Words of errors that mean "your money is used up" though the status says something else.
_MONEY = ("credit balance", "usage limit", "spend limit", "spending limit", "spend cap", "prepay", "billing limit")


def is_about_money(message: str) -> bool:
    return any(word in message.lower() for word in _MONEY)


def refused_extra(message: str, question: Question) -> Extra | None:
    """What to leave out when asking again, by the message of a 400; None when it is about something else."""
    said = message.lower()
    if Extra.MAX_TOKENS not in question.without and "max_completion_tokens" in said:
        return Extra.MAX_TOKENS
    if question.temperature is not None and "temperature" in said:
        return Extra.TEMPERATURE
    named = (
        "response_format",
        "json_schema",
        "output_config",
        "responseschema",
        "response_schema",
        "responsemimetype",
    )
    if question.schema is not None and Extra.SCHEMA not in question.without and any(name in said for name in named):
        return Extra.SCHEMA
    return None
