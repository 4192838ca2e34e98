"""The generateContent API of Google's Gemini."""

from base64 import b64encode
from typing import Any
from urllib.parse import quote

from camserver.base.secrets import Secret
from camserver.clients.llm.answers import count, part, picture_type, words
from camserver.clients.llm.provider import Extra, Failure, Question, Said, is_about_money, kind_of_status
from camserver.clients.llm.questions import Finish, LlmErrorKind, Usage

_REFUSALS = frozenset(
    {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY", "MODEL_ARMOR"}
)
# Of JSON schema it takes a part only; other words are an error.
_UNDERSTOOD = frozenset(
    {
        "type", "format", "title", "description", "nullable", "enum", "properties", "required", "items", "minItems",
        "maxItems", "minLength", "maxLength", "minimum", "maximum", "anyOf", "propertyOrdering",
    }
)  # fmt: skip
# An allowance that comes back after longer than this is the day's.
_DAILY_SEC = 3600.0


class Gemini:
    name = "gemini"
    base_url = "https://generativelanguage.googleapis.com/v1beta"

    def headers(self, key: Secret | None) -> dict[str, str]:
        return {} if key is None else {"x-goog-api-key": key.reveal()}

    def path(self, model: str) -> str:
        return f"/models/{quote(model.removeprefix('models/'), safe='')}:generateContent"

    def body(self, question: Question) -> dict[str, Any]:
        pictures = [
            {"inlineData": {"mimeType": picture_type(one), "data": b64encode(one).decode()}}
            for one in question.prompt.pictures
        ]
        config: dict[str, Any] = {"maxOutputTokens": question.max_tokens}
        if question.temperature is not None:
            config["temperature"] = question.temperature
        if question.schema is not None and Extra.SCHEMA not in question.without:
            config |= {"responseMimeType": "application/json", "responseSchema": _understood(dict(question.schema))}
        return {
            "systemInstruction": {"parts": [{"text": question.prompt.system}]},
            "contents": [{"role": "user", "parts": [*pictures, {"text": question.prompt.text}]}],
            "generationConfig": config,
        }

    def read(self, document: dict[str, Any]) -> Said | None:
        usage = Usage(
            count(document, "usageMetadata", "promptTokenCount"),
            count(document, "usageMetadata", "candidatesTokenCount")
            + count(document, "usageMetadata", "thoughtsTokenCount"),
        )
        model = words(document, "modelVersion")
        blocked = words(document, "promptFeedback", "blockReason")
        if blocked:
            return Said("", usage, model, Finish.STOP, refused=f"blocked: {blocked}")
        candidate = part(document, "candidates", 0)
        if candidate is None:
            return None
        reason = words(candidate, "finishReason")
        pieces = part(candidate, "content", "parts")
        return Said(
            text="".join(
                words(piece, "text")
                for piece in (pieces if isinstance(pieces, list) else [])
                if part(piece, "thought") is not True
            ),
            usage=usage,
            model=model,
            finish=Finish.LENGTH if reason == "MAX_TOKENS" else Finish.STOP,
            refused=f"ended by {reason}" if reason in _REFUSALS else "",
        )

    def failure(self, status: int, document: dict[str, Any] | None) -> Failure:
        message = words(document, "error", "message")
        details = part(document, "error", "details")
        details = details if isinstance(details, list) else []
        retry_after_sec = next(
            (_seconds(words(one, "retryDelay")) for one in details if words(one, "retryDelay")), None
        )
        if status == 400 and any(words(one, "reason") == "API_KEY_INVALID" for one in details):
            return Failure(LlmErrorKind.BAD_KEY, message)
        if status == 429 and (_is_daily(details) or (retry_after_sec or 0) > _DAILY_SEC or is_about_money(message)):
            return Failure(LlmErrorKind.QUOTA, message, retry_after_sec)
        return Failure(kind_of_status(status), message, retry_after_sec)


def _is_daily(details: list[Any]) -> bool:
    """Whether the quota that was passed is one of the day; every 429 speaks of plan and billing."""
    return any(
        "PerDay" in words(violation, "quotaId")
        for one in details
        for violation in (part(one, "violations") if isinstance(part(one, "violations"), list) else [])
    )


def _seconds(duration: str) -> float | None:
    """A duration as Google writes it: "46s" or "1.5s"."""
    try:
        return float(duration.removesuffix("s"))
    except ValueError:
        return None


def _understood(schema: object) -> Any:
    """The part of a schema that it knows. Names of properties are kept whatever they are."""
    if isinstance(schema, list):
        return [_understood(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties" and isinstance(value, dict):
            kept[name] = {key: _understood(inner) for key, inner in value.items()}
        elif name in _UNDERSTOOD:
            kept[name] = value if name in ("enum", "required") else _understood(value)
    return kept
