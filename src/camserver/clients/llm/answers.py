"""Reading what providers send: numbers that may be missing, and JSON that a model wrapped into prose."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

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
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def part(document: object, *path: str | int) -> Any:
    """What is at that place of a document, or None: providers leave out what they have nothing to say about."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(document, Mapping):
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
    """What the answer's headers say, in seconds. A moment counts from the answer's own date: clocks may differ."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * factor
            return seconds if math.isfinite(seconds) else None
        except ValueError:
            pass
        try:
            begin = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
            return (parsedate_to_datetime(value) - begin).total_seconds()
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def picture_type(picture: bytes) -> str:
    if picture.startswith(b"\x89PNG"):
        return "image/png"
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "image/webp"
    return "image/jpeg"
