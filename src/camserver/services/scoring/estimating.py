"""The dry run: reads the sheet and the cache, asks nothing and writes nothing."""

from camserver.base.clock import Clock
from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import Usage
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import RunSpec, ScoringPolicy
from camserver.domain.scoring_answers import is_valid
from camserver.domain.scoring_costs import (
    AROUND_TOKENS,
    PICTURE_TOKENS,
    Estimate,
    answer_tokens,
    seconds_for,
    tokens_of,
)
from camserver.domain.scoring_prompts import BlockQuestion, user_prompt
from camserver.services.scoring.producing import DAY_MS, questions_of
from camserver.services.scoring.tasks import pictures_of
from camserver.store import Store, scoring_journal

_LOOKED_UP_AT_ONCE = 500


async def estimate(
    store: Store,
    clock: Clock,
    tenant_id: int,
    sheet: Sheet,
    spec: RunSpec,
    policy: ScoringPolicy,
    price: Price | None,
) -> Estimate:
    counting = _Counting(spec)
    since_ms = clock.now_ms() - policy.cache_days * DAY_MS
    async for page in sheet.rows(spec.layout.first_data_row):
        for row in page:
            counting.rows += 1
            open_ones = set(row.open_categories(len(spec.categories)))
            for question in counting.questions:
                first = question.first_category
                if open_ones.isdisjoint(range(first, first + len(question.categories))):
                    counting.filled += 1
                else:
                    counting.add(question, row.text, row.picture)
        while len(counting.waiting) >= _LOOKED_UP_AT_ONCE:
            await _look_up(store, tenant_id, counting, since_ms)
    while counting.waiting:
        await _look_up(store, tenant_id, counting, since_ms)
    measured = await store.read(scoring_journal.calls_per_sec, tenant_id, spec.provider, spec.model)
    usage = Usage(counting.tokens_in, counting.tokens_out)
    return Estimate(
        counting.rows,
        counting.tasks,
        counting.calls,
        counting.cache_hits,
        counting.same,
        counting.filled,
        usage.tokens_in,
        usage.tokens_out,
        None if price is None else price.cost_micro(usage) / 1_000_000,
        seconds_for(counting.calls, measured),
        measured is not None,
    )


class _Counting:
    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self.questions = questions_of(spec)
        self._heads = [tokens_of(one.system) + AROUND_TOKENS for one in self.questions]
        self._answers = [answer_tokens(one.categories, spec.form) for one in self.questions]
        # 64 bits of each key: a million of them are some tens of megabytes, and two that agree by chance harm nobody.
        self._seen: set[int] = set()
        self.waiting: dict[str, tuple[BlockQuestion, str, int]] = {}
        self.rows = self.tasks = self.calls = self.cache_hits = self.same = self.filled = 0
        self.tokens_in = self.tokens_out = 0

    def add(self, question: BlockQuestion, text: str, picture: str) -> None:
        self.tasks += 1
        key = question.key(text, self._spec.provider, self._spec.model, self._spec.temperature, pictures_of(picture))
        short = int(key[:16], 16)
        if short in self._seen:
            self.same += 1
            return
        self._seen.add(short)
        self.waiting[key] = (question, text, PICTURE_TOKENS if picture else 0)

    def settle(self, found: dict[str, scoring_journal.Kept], looked_up: list[str]) -> None:
        for key in looked_up:
            question, text, more = self.waiting.pop(key)
            kept = found.get(key)
            if kept is not None and is_valid(kept.scores, len(question.categories)):
                self.cache_hits += 1
                continue
            self.calls += 1
            self.tokens_in += self._heads[question.block] + tokens_of(user_prompt(text)) + more
            self.tokens_out += self._answers[question.block]


async def _look_up(store: Store, tenant_id: int, counting: _Counting, since_ms: int) -> None:
    keys = list(counting.waiting)[:_LOOKED_UP_AT_ONCE]
    counting.settle(await store.read(scoring_journal.find_kept, tenant_id, keys, since_ms), keys)
