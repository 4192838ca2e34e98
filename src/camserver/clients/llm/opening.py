"""A client as the settings want it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from camserver.base.errors import BadSettings
from camserver.base.secrets import Secret
from camserver.clients.llm.anthropic import Anthropic
from camserver.clients.llm.gemini import Gemini
from camserver.clients.llm.openai import OpenAi
from camserver.clients.llm.prices import Price, as_of, known_models, price_of
from camserver.clients.llm.provider import Provider
from camserver.clients.llm.rest_client import RestClient

if TYPE_CHECKING:
    from camserver.config.sections import LlmSettings

PROVIDERS: Final[Mapping[str, Provider]] = {one.name: one for one in (OpenAi(), Gemini(), Anthropic())}


def open_client(
    provider: str,
    *,
    model: str,
    base_url: str | None,
    key: Secret | None,
    timeout_sec: float,
    lean: bool = False,
) -> RestClient:
    """`provider` is a name of PROVIDERS; settings take no other. `lean` is for very many questions."""
    return RestClient(
        PROVIDERS[provider], base_url=base_url, model=model, key=key, timeout_sec=timeout_sec, lean=lean
    )


def open_configured(chosen: "LlmSettings") -> RestClient:
    """The client of [llm]; there must be one (`is_configured`)."""
    return open_client(
        chosen.provider,
        model=chosen.model,
        base_url=chosen.base_url,
        key=chosen.key,
        timeout_sec=chosen.timeout_sec,
    )


def refuse_unpriced(chosen: "LlmSettings") -> None:
    """BadSettings when a budget in money is set for a model that nobody knows the price of: it could not be kept."""
    if not chosen.is_configured or not chosen.daily_cost_usd or configured_price(chosen) is not None:
        return
    where = "at an address of your own" if chosen.base_url is not None else f"of {chosen.provider}"
    known = ""
    if chosen.base_url is None:
        listed = ", ".join(known_models(chosen.provider))
        known = f" Known as of {as_of(chosen.provider)} are: {listed}."
    raise BadSettings(
        f"llm.daily_cost_usd is set, and what the model {chosen.model} {where} costs is not known, so the budget "
        "can't be kept. Set llm.price_in and llm.price_out (US dollars per million tokens), or daily_cost_usd to 0 "
        f"so that only llm.daily_calls bounds it.{known}",
        model=chosen.model,
    )


def configured_price(chosen: "LlmSettings") -> Price | None:
    """What the configured model costs: as the operator says, else by the table. None: nobody knows."""
    if chosen.price_in or chosen.price_out:
        return Price(chosen.price_in, chosen.price_out)
    # A server of one's own may give any model any name.
    return price_of(chosen.provider, chosen.model) if chosen.base_url is None else None
