"""Pure parts of the clients: finding JSON, waits, prices, and errors that only a body tells apart."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadSettings
from camserver.clients.llm.answers import count, object_in, part, picture_type, retry_after_sec
from camserver.clients.llm.anthropic import Anthropic
from camserver.clients.llm.gemini import Gemini
from camserver.clients.llm.openai import OpenAi
from camserver.clients.llm.opening import PROVIDERS, configured_price, refuse_unpriced
from camserver.clients.llm.prices import Price, as_of, known_models, price_of
from camserver.clients.llm.questions import LlmErrorKind, Usage
from camserver.config import load

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": {"b": 2}}\n```', {"a": {"b": 2}}),
        ('Well {not this} but {"a": 1} and {"a": 2}', {"a": 1}),
        ('[{"a": 1}]', {"a": 1}),
        ('{"a": ', None),
        ("no braces", None),
        ("{" * 10_000, None),
    ],
)
def test_the_object_in_a_text(text: str, found: object) -> None:
    assert object_in(text) == found


@given(before=st.text().filter(lambda text: "{" not in text), document=st.dictionaries(st.text(), JSON_VALUES))
def test_an_object_is_found_after_any_words(before: str, document: dict[str, object]) -> None:
    assert object_in(f"{before}{json.dumps(document)} and more }}") == document


@given(document=JSON_VALUES)
def test_reading_any_document_raises_nothing(document: object) -> None:
    body = (
        document
        if isinstance(document, dict)
        else {"choices": [document], "candidates": [document], "error": document}
    )
    for provider in PROVIDERS.values():
        said = provider.read(body)
        assert said is None or isinstance(said.text, str)
        assert provider.failure(429, body).kind in LlmErrorKind
        assert provider.failure(500, None).kind is LlmErrorKind.SERVER_ERROR


def test_parts_that_are_not_there() -> None:
    assert part({"a": [1]}, "a", 1) is None
    assert part([], "a") is None
    assert count({"n": True}, "n") == 0
    assert count({"n": -1}, "n") == 0


def test_waits() -> None:
    date = "Mon, 16 Nov 2026 00:00:00 GMT"
    assert retry_after_sec({"retry-after": "3"}) == 3
    assert retry_after_sec({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after_sec({"retry-after": "Mon, 16 Nov 2026 00:01:00 GMT", "date": date}) == 60
    assert retry_after_sec({"retry-after": "2026-11-16T00:01:00Z", "date": date}) == 60
    assert retry_after_sec({"retry-after": "1m30s"}) == 90
    assert retry_after_sec({"retry-after": " 0.25 "}) == 0.25
    assert retry_after_sec({"retry-after": "1794787230", "date": date}) == 30
    assert retry_after_sec({"retry-after": "1794787230000", "date": date}) == 30
    assert retry_after_sec({"retry-after": "soon", "retry-after-ms": "later"}) is None
    assert retry_after_sec({"retry-after": "inf"}) is None
    assert retry_after_sec({"retry-after": "soon"}) is None
    assert retry_after_sec({}) is None


def test_types_of_pictures() -> None:
    assert picture_type(b"\x89PNG\r\n") == "image/png"
    assert picture_type(b"RIFF0000WEBP") == "image/webp"
    assert picture_type(b"\xff\xd8\xff") == "image/jpeg"


def test_money_that_is_used_up_hides_behind_other_statuses() -> None:
    anthropic = Anthropic()
    low = {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}}
    assert anthropic.failure(400, low).kind is LlmErrorKind.QUOTA
    assert anthropic.failure(402, {"error": {"type": "billing_error"}}).kind is LlmErrorKind.QUOTA
    assert OpenAi().failure(429, {"error": {"code": "credit_balance_exhausted"}}).kind is LlmErrorKind.QUOTA
    assert OpenAi().failure(400, {"error": "just words"}).message == "just words"
    assert Gemini().failure(429, {"error": {"details": [{"retryDelay": "37025.7s"}]}}).kind is LlmErrorKind.QUOTA
    assert Gemini().failure(429, {"error": {"details": [{"retryDelay": "46s"}]}}).retry_after_sec == 46


def test_gemini_gets_only_what_it_understands_of_a_schema() -> None:
    from camserver.clients.llm.provider import Question
    from camserver.clients.llm.questions import Prompt

    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"pattern": {"type": "string", "pattern": "^a$", "enum": ["a"]}},
        "required": ["pattern"],
    }
    body = Gemini().body(Question("m", Prompt("s", "t"), schema, 10))
    assert body["generationConfig"]["responseSchema"] == {
        "type": "object",
        "properties": {"pattern": {"type": "string", "enum": ["a"]}},
        "required": ["pattern"],
    }


def test_prices() -> None:
    assert price_of("openai", "gpt-5-mini-2025-08-07") == price_of("openai", "gpt-5-mini")
    assert price_of("anthropic", "claude-haiku-4-5") == Price(1.00, 5.00)
    assert price_of("gemini", "models/gemini-2.5-flash") is not None
    assert price_of("openai", "somebody/else") is None
    assert price_of("gemini", "gpt-5") is None
    assert Price(0.75, 4.5).cost_micro(Usage(1000, 200)) == 1650


@pytest.mark.parametrize("provider", ["openai", "gemini", "anthropic"])
def test_every_maker_has_dated_prices_and_its_usual_model_is_priced(provider: str) -> None:
    date.fromisoformat(as_of(provider))
    assert len(known_models(provider)) >= 7
    assert "as_of" not in known_models(provider)
    usual = load(None, {"CAMSERVER_LLM_PROVIDER": provider}).llm
    assert configured_price(usual) is not None
    for model in known_models(provider):
        price = price_of(provider, model)
        assert price is not None
        assert 0 < price.tokens_in < price.tokens_out < 1000


UNKNOWN = {"CAMSERVER_LLM_PROVIDER": "openai", "CAMSERVER_LLM_MODEL": "gpt-99"}
BUDGET = {"CAMSERVER_LLM_DAILY_COST_USD": "2"}


@pytest.mark.parametrize(
    ("environ", "refused"),
    [
        (UNKNOWN | BUDGET, True),
        (UNKNOWN, False),
        (UNKNOWN | BUDGET | {"CAMSERVER_LLM_PRICE_IN": "1", "CAMSERVER_LLM_PRICE_OUT": "2"}, False),
        (UNKNOWN | BUDGET | {"CAMSERVER_LLM_MODEL": "gpt-6-luna"}, False),
        (BUDGET | {"CAMSERVER_LLM_PROVIDER": "openai", "CAMSERVER_LLM_BASE_URL": "http://127.0.0.1:1/v1"}, True),
        (BUDGET, False),
    ],
)
def test_a_budget_for_a_model_without_a_price_is_refused(environ: dict[str, str], refused: bool) -> None:
    chosen = load(None, environ).llm
    if not refused:
        refuse_unpriced(chosen)
        return
    with pytest.raises(BadSettings, match=r"llm\.price_in and llm\.price_out") as error:
        refuse_unpriced(chosen)
    assert ("gpt-6-luna" in error.value.message) == (chosen.base_url is None), "those that have one are named"
