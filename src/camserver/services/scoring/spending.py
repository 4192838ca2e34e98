"""What a question may cost, what it did cost, and what is noted of both. Figures only."""

from collections.abc import Sequence
from dataclasses import dataclass

from camserver.clients.llm.lean_http import Came
from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import BILLED, JsonSchema, LlmError, Prompt, Usage, tokens_most
from camserver.domain.scoring_costs import PICTURE_TOKENS_MAX
from camserver.domain.scoring_limits import Ticket
from camserver.store.scoring_journal import Spent


@dataclass(slots=True)
class Tally:
    """What one task cost; and how its first question stands, which was sent before, or is to be sent now."""

    ticket: Ticket | None
    came: Came | None = None  # what came back
    is_told: bool = False  # the controller knows of it
    has_place: bool = True
    reserved_micro: int = 0  # of the budget, for the first question
    calls: int = 0
    refused: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro: int = 0

    def spent(self, same_hits: int = 0) -> Spent:
        return Spent(self.calls, self.refused, 0, same_hits, self.tokens_in, self.tokens_out, self.cost_micro)


class Spending:
    """Models are known by their number: the one that scores is 0, those to fall back to follow."""

    def __init__(self, prices: Sequence[Price | None], answer_max_tokens: int) -> None:
        self._prices = prices
        self._answer_max_tokens = answer_max_tokens

    def worst_micro(self, number: int, prompt: Prompt, schema: JsonSchema | None) -> int:
        """What a question costs at most."""
        price = self._prices[number]
        usage = Usage(tokens_most(prompt, schema, PICTURE_TOKENS_MAX), self._answer_max_tokens)
        return max(price.cost_micro(usage), 1) if price is not None else 1

    def bill(self, number: int, error: LlmError, tally: Tally) -> int:
        """What a failed question cost: as told, and where it is likely billed untold, nothing that we could know."""
        return self.count(number, error.usage, tally) if error.usage is not None and error.kind in BILLED else 0

    def count(self, number: int, usage: Usage, tally: Tally) -> int:
        price = self._prices[number]
        cost_micro = price.cost_micro(usage) if price is not None else 0
        tally.tokens_in += usage.tokens_in
        tally.tokens_out += usage.tokens_out
        tally.cost_micro += cost_micro
        return cost_micro
