"""A fake language model that scores: a real HTTP server with a capacity, which misbehaves by chance or on demand.

It knows the truth: what it says of a text and a category follows from them alone, so a test can tell whether a cell
is right. `python -m tests.fakes.scoring_llm --help` runs it as a process of its own.
"""

from tests.fakes.scoring_llm.capacity import (
    ByConcurrency,
    ByConcurrencyOverTime,
    ByRate,
    ByTokens,
    Capacity,
    InAnyWindow,
)
from tests.fakes.scoring_llm.server import Behaviour, ScoringLlm
from tests.fakes.scoring_llm.truth import truth

__all__ = [
    "Behaviour",
    "ByConcurrency",
    "ByConcurrencyOverTime",
    "ByRate",
    "ByTokens",
    "Capacity",
    "InAnyWindow",
    "ScoringLlm",
    "truth",
]
