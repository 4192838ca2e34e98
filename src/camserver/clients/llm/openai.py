"""The chat-completions API of OpenAI, which many others speak too: Ollama, vLLM, llama.cpp, gateways."""

from base64 import b64encode
from typing import Any

from camserver.base.secrets import Secret
from camserver.clients.llm.answers import count, part, picture_type, words
from camserver.clients.llm.provider import Extra, Failure, Question, Said, is_about_money, kind_of_status
from camserver.clients.llm.questions import Finish, LlmErrorKind, Usage

# Codes of a 429 that waiting does not help.
_NO_MONEY = frozenset({"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"})


class OpenAi:
    name = "openai"
    base_url = "https://api.openai.com/v1"

    def headers(self, key: Secret | None) -> dict[str, str]:
        return {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}

    def path(self, model: str) -> str:
        return "/chat/completions"

    def body(self, question: Question) -> dict[str, Any]:
        prompt = question.prompt
        pictures = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:{picture_type(one)};base64,{b64encode(one).decode()}"},
            }
            for one in prompt.pictures
        ]
        # Servers of today's OpenAI want the newer name, many others know only the older one.
        bound = "max_completion_tokens" if Extra.MAX_TOKENS in question.without else "max_tokens"
        body: dict[str, Any] = {
            "model": question.model,
            bound: question.max_tokens,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": [*pictures, {"type": "text", "text": prompt.text}]},
            ],
        }
        if question.temperature is not None:
            body["temperature"] = question.temperature
        if question.schema is not None and Extra.SCHEMA not in question.without:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": dict(question.schema)},
            }
        return body

    def read(self, document: dict[str, Any]) -> Said | None:
        said = _usual(document)
        if said is not None:
            return said
        choice = part(document, "choices", 0)
        if choice is None:
            return None
        finish = words(choice, "finish_reason")
        refusal = words(choice, "message", "refusal") or ("content filter" if finish == "content_filter" else "")
        return Said(
            text=words(choice, "message", "content"),
            usage=Usage(count(document, "usage", "prompt_tokens"), count(document, "usage", "completion_tokens")),
            model=words(document, "model"),
            finish=Finish.LENGTH if finish == "length" else Finish.STOP,
            refused=refusal,
        )

    def failure(self, status: int, document: dict[str, Any] | None) -> Failure:
        # Some servers send the error itself, some only a text.
        error = part(document, "error")
        message = words(error, "message") or (error if isinstance(error, str) else words(document, "message"))
        said = {words(error, "code"), words(error, "type")}
        if status == 429 and (said & _NO_MONEY or is_about_money(message)):
            return Failure(LlmErrorKind.QUOTA, message)
        if status == 400 and "content_policy_violation" in said:
            return Failure(LlmErrorKind.REFUSED, message)
        return Failure(kind_of_status(status), message)


def _usual(document: dict[str, Any]) -> Said | None:
    """A whole answer without anything special, a million times; None: to be looked at closely."""
    try:
        choice, usage, model = document["choices"][0], document["usage"], document["model"]
        message, text = choice["message"], choice["message"]["content"]
        tokens_in, tokens_out = usage["prompt_tokens"], usage["completion_tokens"]
        is_plain = choice["finish_reason"] == "stop" and not message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    kinds = (type(text), type(model), type(tokens_in), type(tokens_out))
    if not is_plain or kinds != (str, str, int, int) or not 0 <= tokens_in < 2**31 or not 0 <= tokens_out < 2**31:
        return None
    return Said(text, Usage(tokens_in, tokens_out), model, Finish.STOP)
