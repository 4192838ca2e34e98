"""The three APIs as a provider sees them: what is in a request, and how an answer or an error is written."""

import base64
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, whichever API it came by."""

    provider: str
    model: str
    system: str
    text: str
    pictures: tuple[bytes, ...]
    schema: dict[str, Any] | None
    max_tokens: int
    key: str


def read_openai(body: dict[str, Any], headers: dict[str, str]) -> Asked:
    system, user = body["messages"]
    return Asked(
        "openai",
        body["model"],
        system["content"],
        "".join(part["text"] for part in user["content"] if part["type"] == "text"),
        tuple(
            base64.b64decode(part["image_url"]["url"].partition("base64,")[2])
            for part in user["content"]
            if part["type"] == "image_url"
        ),
        body.get("response_format", {}).get("json_schema", {}).get("schema"),
        body.get("max_tokens", body.get("max_completion_tokens", 0)),
        headers.get("authorization", "").removeprefix("Bearer "),
    )


def read_gemini(model: str, body: dict[str, Any], headers: dict[str, str]) -> Asked:
    parts = body["contents"][0]["parts"]
    return Asked(
        "gemini",
        model,
        body["systemInstruction"]["parts"][0]["text"],
        "".join(part.get("text", "") for part in parts),
        tuple(base64.b64decode(part["inlineData"]["data"]) for part in parts if "inlineData" in part),
        body["generationConfig"].get("responseSchema"),
        body["generationConfig"]["maxOutputTokens"],
        headers.get("x-goog-api-key", ""),
    )


def read_anthropic(body: dict[str, Any], headers: dict[str, str]) -> Asked:
    assert headers["anthropic-version"]
    content = body["messages"][0]["content"]
    return Asked(
        "anthropic",
        body["model"],
        body["system"],
        "".join(part["text"] for part in content if part["type"] == "text"),
        tuple(base64.b64decode(part["source"]["data"]) for part in content if part["type"] == "image"),
        body.get("output_config", {}).get("format", {}).get("schema"),
        body["max_tokens"],
        headers.get("x-api-key", ""),
    )


FINISHES = {
    "openai": {"stop": "stop", "length": "length", "refused": "content_filter"},
    "gemini": {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"},
    "anthropic": {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"},
}


def answer(asked: Asked, text: str, finish: str, tokens_in: int, tokens_out: int) -> dict[str, Any]:
    reason = FINISHES[asked.provider][finish]
    if asked.provider == "openai":
        return {
            "model": f"{asked.model}-2026-01-01",
            "choices": [{"finish_reason": reason, "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": tokens_in, "completion_tokens": tokens_out},
        }
    if asked.provider == "gemini":
        thought = {"text": "Let me think {", "thought": True}
        return {
            "modelVersion": asked.model,
            "candidates": [{"finishReason": reason, "content": {"parts": [thought, {"text": text}]}}],
            "usageMetadata": {
                "promptTokenCount": tokens_in,
                "candidatesTokenCount": tokens_out - 1,
                "thoughtsTokenCount": 1,
            },
        }
    return {
        "model": asked.model,
        "stop_reason": reason,
        "content": [{"type": "thinking", "thinking": "Hm {"}, {"type": "text", "text": text}],
        "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
    }


def lied(good: dict[str, Any]) -> dict[str, Any]:
    """An answer whose numbers are as large as numbers get, and whose model has a name that no database takes."""
    for name in good.keys() & {"model", "modelVersion"}:
        good[name] = "\x00\ud800\n" + "m" * 500
    for name in good.keys() & {"usage", "usageMetadata"}:
        good[name] = dict.fromkeys((*good[name], *MORE_COUNTS), 2**31 - 1)
    return good


MORE_COUNTS = ("cache_read_input_tokens", "cache_creation_input_tokens")


# Errors as each provider writes them, by what they mean: status, headers, body.
ERRORS: dict[str, dict[str, tuple[int, dict[str, str], dict[str, Any]]]] = {
    "openai": {
        "rate_limited": (429, {"Retry-After": "7"}, {"error": {"message": "slow down", "type": "requests"}}),
        "quota": (429, {}, {"error": {"message": "no credits left", "code": "insufficient_quota"}}),
        "bad_key": (401, {}, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        "overloaded": (503, {}, {"error": {"message": "The engine is overloaded"}}),
        "server_error": (500, {}, {"error": {"message": "The server had an error"}}),
        "bad_request": (404, {}, {"error": {"message": "the model does not exist", "code": "model_not_found"}}),
    },
    "gemini": {
        "rate_limited": (
            429,
            {},
            {
                "error": {
                    "status": "RESOURCE_EXHAUSTED",
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "details": [
                        {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},
                        {"retryDelay": "7s"},
                    ],
                }
            },
        ),
        "quota": (
            429,
            {},
            {
                "error": {
                    "message": "You exceeded your current quota, please check your plan and billing details.",
                    "details": [
                        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
                        {"retryDelay": "35640s"},
                    ],
                }
            },
        ),
        "bad_key": (
            400,
            {},
            {"error": {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}},
        ),
        "overloaded": (503, {}, {"error": {"message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        "server_error": (500, {}, {"error": {"message": "internal", "status": "INTERNAL"}}),
        "bad_request": (404, {}, {"error": {"message": "model is not found", "status": "NOT_FOUND"}}),
    },
    "anthropic": {
        "rate_limited": (
            429,
            {"retry-after": "7"},
            {"type": "error", "error": {"type": "rate_limit_error", "message": "too many tokens a minute"}},
        ),
        "quota": (
            429,
            {},
            {
                "error": {
                    "type": "rate_limit_error",
                    "message": "limit reached",
                    "details": {"error_code": "enforced_spend_limit_reached"},
                }
            },
        ),
        "bad_key": (401, {}, {"error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
        "overloaded": (529, {}, {"error": {"type": "overloaded_error", "message": "Overloaded"}}),
        "server_error": (500, {}, {"error": {"type": "api_error", "message": "Internal server error"}}),
        "bad_request": (404, {}, {"error": {"type": "not_found_error", "message": "model: nothing"}}),
    },
}
# How each refuses a part of its API that it does not know.
REFUSED_SCHEMA = {
    "openai": {"error": {"message": "Unsupported parameter: 'response_format'", "type": "invalid_request_error"}},
    "gemini": {
        "error": {"message": 'Unknown name "responseSchema" at generation_config', "status": "INVALID_ARGUMENT"}
    },
    "anthropic": {
        "error": {"type": "invalid_request_error", "message": "output_config: Extra inputs are not permitted"}
    },
}


def as_body(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()
