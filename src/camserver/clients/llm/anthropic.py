"""The messages API of Anthropic."""

from base64 import b64encode
from typing import Any

from camserver.base.secrets import Secret
from camserver.clients.llm.answers import count, part, picture_type, words
from camserver.clients.llm.provider import Extra, Failure, Question, Said, is_about_money, kind_of_status
from camserver.clients.llm.questions import Finish, LlmErrorKind, Usage

API_VERSION = "2023-06-01"
_TOO_LONG = frozenset({"max_tokens", "model_context_window_exceeded"})


class Anthropic:
    name = "anthropic"
    base_url = "https://api.anthropic.com/v1"

    def headers(self, key: Secret | None) -> dict[str, str]:
        headers = {"anthropic-version": API_VERSION}
        return headers if key is None else headers | {"x-api-key": key.reveal()}

    def path(self, model: str) -> str:
        return "/messages"

    def body(self, question: Question) -> dict[str, Any]:
        pictures = [
            {
                "type": "image",
                "source": {"type": "base64", "media_type": picture_type(one), "data": b64encode(one).decode()},
            }
            for one in question.prompt.pictures
        ]
        body: dict[str, Any] = {
            "model": question.model,
            "max_tokens": question.max_tokens,
            "system": question.prompt.system,
            "messages": [{"role": "user", "content": [*pictures, {"type": "text", "text": question.prompt.text}]}],
        }
        if question.temperature is not None:
            body["temperature"] = question.temperature
        if question.schema is not None and Extra.SCHEMA not in question.without:
            body["output_config"] = {"format": {"type": "json_schema", "schema": dict(question.schema)}}
        return body

    def read(self, document: dict[str, Any]) -> Said | None:
        blocks = part(document, "content")
        if not isinstance(blocks, list):
            return None
        reason = words(document, "stop_reason")
        cached = count(document, "usage", "cache_read_input_tokens")
        cached += count(document, "usage", "cache_creation_input_tokens")
        return Said(
            # What a model thought first is in blocks of other types.
            text="".join(words(block, "text") for block in blocks if words(block, "type") == "text"),
            usage=Usage(count(document, "usage", "input_tokens") + cached, count(document, "usage", "output_tokens")),
            model=words(document, "model"),
            finish=Finish.LENGTH if reason in _TOO_LONG else Finish.STOP,
            refused="the model does not want to answer" if reason == "refusal" else "",
        )

    def failure(self, status: int, document: dict[str, Any] | None) -> Failure:
        message = words(document, "error", "message")
        spent = words(document, "error", "details", "error_code") == "enforced_spend_limit_reached"
        if spent or words(document, "error", "type") == "billing_error" or is_about_money(message):
            return Failure(LlmErrorKind.QUOTA, message)
        return Failure(kind_of_status(status), message)
