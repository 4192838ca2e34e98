"""Reading what providers send: numbers that may be missing, and JSON that a model wrapped into prose."""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import orjson

from camserver.clients.llm.questions import RateLimit

# A model that writes braces without end must not keep us busy.
_TRIALS_MAX = 20


def object_in(text: str) -> dict[str, Any] | None:
    """The first whole JSON object in a text: alone, in a fenced block, or with words around it."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    for _ in range(_TRIALS_MAX):
        if at < 0:
            return None
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
        at = text.find("{", at + 1)
    return None


def document_of(body: bytes) -> dict[str, Any] | None:
    """The JSON object that a body is; None when it is none."""
    try:
        document = orjson.loads(body)
        return document if type(document) is dict else None
    except ValueError:
        pass
    # What only the more generous reader takes: a number that JSON does not have, or that is too large.
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def part(document: object, *path: str | int) -> Any:
    """What is at that place of a document, or None: providers leave out what they have nothing to say about."""
    for step in path:
        if isinstance(step, str):
            # A document is what JSON makes of a text; the general check of mappings costs ten times as much.
            if type(document) is not dict:
                return None
            document = document.get(step)
        else:
            if not isinstance(document, list) or len(document) <= step:
                return None
            document = document[step]
    return document


def words(document: object, *path: str | int) -> str:
    found = part(document, *path)
    return found if isinstance(found, str) else ""


def count(document: object, *path: str | int) -> int:
    """A number of tokens; nonsense counts as none."""
    found = part(document, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**31 else 0


def retry_after_sec(headers: Mapping[str, str]) -> float | None:
    """What the answer's headers say, in seconds; None where they say nothing, or nonsense."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = _until(value.strip(), headers) * factor
        except (ValueError, TypeError, OverflowError):
            continue
        return seconds if math.isfinite(seconds) else None
    return None


_LIMITED: tuple[Literal["requests", "tokens"], ...] = ("requests", "tokens")
# Limit, remaining and reset, as the providers name them.
_LIMIT_HEADERS: tuple[tuple[Literal["requests", "tokens"], str, str, str], ...] = tuple(
    (what, names[0].format(what), names[1].format(what), names[2].format(what))
    for names in (
        ("x-ratelimit-limit-{}", "x-ratelimit-remaining-{}", "x-ratelimit-reset-{}"),
        ("anthropic-ratelimit-{}-limit", "anthropic-ratelimit-{}-remaining", "anthropic-ratelimit-{}-reset"),
    )
    for what in _LIMITED
)
# A larger number is a moment, in seconds or milliseconds since 1970.
_EPOCH_SEC = 1e9
_EPOCH_MS = 1e12
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS_SEC = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def rate_limits(headers: Mapping[str, str]) -> tuple[RateLimit, ...]:
    """What the answer's headers say is left; nothing where they say nothing, or nonsense."""
    found: list[RateLimit] = []
    for what, limit, remaining, reset in _LIMIT_HEADERS:
        if limit not in headers or remaining not in headers or reset not in headers:
            continue
        try:
            numbers = float(headers[limit]), float(headers[remaining]), _until(headers[reset], headers)
        except (ValueError, TypeError, OverflowError):
            continue
        if all(math.isfinite(number) for number in numbers):
            found.append(RateLimit(what, *numbers))
    return tuple(found)


def _until(said: str, headers: Mapping[str, str]) -> float:
    """Seconds: a number, a duration such as "6m0s" or "120ms", or a moment in any of the usual forms."""
    parts = _DURATION.findall(said)
    if parts and "".join(number + unit for number, unit in parts) == said:
        return sum(float(number) * _UNITS_SEC[unit] for number, unit in parts)
    try:
        number = float(said)
    except ValueError:
        moment = datetime.fromisoformat(said) if said[:4].isdigit() else parsedate_to_datetime(said)
        return (moment - _sent_at(headers)).total_seconds()
    if not _EPOCH_SEC <= number < math.inf:
        return number
    return number / (1000 if number >= _EPOCH_MS else 1) - _sent_at(headers).timestamp()


def _sent_at(headers: Mapping[str, str]) -> datetime:
    """A moment counts from the answer's own date: clocks may differ."""
    return parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)


def picture_type(picture: bytes) -> str:
    if picture.startswith(b"\x89PNG"):
        return "image/png"
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "image/webp"
    return "image/jpeg"
