"""What a run will cost, before it is begun: tokens, money and time, as well as they can be known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from camserver.domain.scoring import ScoreForm
from camserver.domain.sheet_layout import Category

# What providers put around a question.
AROUND_TOKENS: Final = 12
# {"scores": […]} and one entry of it.
ANSWER_TOKENS: Final = 8
ENTRY_TOKENS: Final = {"numeric": 5, "anchors": 4}
# A picture of a camera: what it usually takes, and at most.
PICTURE_TOKENS: Final = 800
PICTURE_TOKENS_MAX: Final = 4_000
# Where nothing was measured yet.
LATENCY_USUAL_SEC: Final = 1.5
IN_FLIGHT_USUAL: Final = 16


@dataclass(frozen=True, slots=True)
class Estimate:
    rows: int
    tasks: int
    unique_calls: int  # that have to be asked: neither equal to another one nor in the cache
    cache_hits: int
    same: int  # equal to another one of the sheet
    filled: int  # tasks whose cells hold something already
    tokens_in: int
    tokens_out: int
    cost_usd: float | None  # None: nobody knows the price
    seconds: float
    is_time_measured: bool  # by an earlier run of the model; else a guess


def tokens_of(text: str) -> int:
    """About how many tokens a text is: four letters of a Latin script make one, any other character one by itself."""
    plain = sum(1 for letter in text if letter < "\u0250")
    return -(-plain // 4) + len(text) - plain


def answer_tokens(categories: Sequence[Category], form: ScoreForm) -> int:
    return ANSWER_TOKENS + ENTRY_TOKENS[form] * len(categories)


def seconds_for(calls: int, measured_per_sec: float | None) -> float:
    per_sec = measured_per_sec or IN_FLIGHT_USUAL / LATENCY_USUAL_SEC
    return calls / per_sec
