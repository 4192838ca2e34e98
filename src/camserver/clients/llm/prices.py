"""What a question costs. The table is `prices.toml`; one US dollar per million tokens is one micro-dollar a token."""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from camserver.clients.llm.questions import Usage

_AS_OF = "as_of"
_DATE = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@dataclass(frozen=True, slots=True)
class Price:
    """In US dollars per million tokens."""

    tokens_in: float
    tokens_out: float

    def cost_micro(self, usage: Usage) -> int:
        """In millionths of a dollar."""
        return round(usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out)


def price_of(provider: str, model: str) -> Price | None:
    """What the table says; None for a model it does not know."""
    return _table().get((provider, _DATE.sub("", model.removeprefix("models/"))))


def known_models(provider: str) -> list[str]:
    """The models of a maker that the table has prices of."""
    return sorted(model for maker, model in _table() if maker == provider)


def as_of(provider: str) -> str:
    """The date of the newest source of a maker's prices, YYYY-MM-DD."""
    return str(_document()[provider][_AS_OF])


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], Price]:
    return {
        (provider, model): Price(float(price["in"]), float(price["out"]))
        for provider, models in _document().items()
        for model, price in models.items()
        if model != _AS_OF
    }


@lru_cache(maxsize=1)
def _document() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "prices.toml").read_text())
