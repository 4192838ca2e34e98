"""What a question costs. The table is `prices.toml`; one US dollar per million tokens is one micro-dollar a token."""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from camserver.clients.llm.questions import Usage

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


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, str], Price]:
    document = tomllib.loads((Path(__file__).parent / "prices.toml").read_text())
    return {
        (provider, model): Price(float(price["in"]), float(price["out"]))
        for provider, models in document.items()
        for model, price in models.items()
    }
