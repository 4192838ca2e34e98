"""Producer: reads a chunk of the sheet and makes tasks of it, as fast as the questions are asked and no faster.

A row and block that is in the journal, or whose cells are filled, makes no task. One whose question is on its way,
was answered a moment ago or is in the cache makes a result without a call.
"""

from collections.abc import Sequence

from camserver.base.clock import Clock
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.scoring import ResultState, RunSpec, ScoringPolicy, Source
from camserver.domain.scoring_answers import is_valid
from camserver.domain.scoring_prompts import BlockQuestion
from camserver.domain.sheet_layout import blocks
from camserver.domain.sheet_rows import SheetRow
from camserver.services.scoring.following import Following
from camserver.services.scoring.invoking import InvokerPool, result_of
from camserver.services.scoring.journal import Journal
from camserver.services.scoring.tasks import OpenChunk, Task, Verdict, pictures_of
from camserver.store import Store, scoring_journal
from camserver.store.scoring_journal import Entry, Kept, Spent

# Tasks that the cache is asked for at once.
LOOKED_UP_AT_ONCE = 100
DAY_MS = 86_400_000
# What of the journal needs no new look: what failed is tried again only when somebody asks for it. What is written is
# looked at all the same: rows with equal texts may have changed places, and this one may be empty.
_SEEN_TO = frozenset({ResultState.SCORED, ResultState.FAILED, ResultState.REFUSED})
_IN_SHEET = frozenset({ResultState.WRITTEN, ResultState.AWAY})


def questions_of(spec: RunSpec) -> list[BlockQuestion]:
    size = spec.layout.block_size
    return [
        BlockQuestion(number, number * size, categories, spec.form, spec.instructions)
        for number, categories in enumerate(blocks(spec.categories, size))
    ]


class Producer:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        sheet: Sheet,
        run_id: int,
        tenant_id: int,
        spec: RunSpec,
        policy: ScoringPolicy,
        invokers: InvokerPool,
        journal: Journal,
        following: Following,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sheet = sheet
        self._run_id = run_id
        self._tenant_id = tenant_id
        self._spec = spec
        self._policy = policy
        self._invokers = invokers
        self._journal = journal
        self._following = following
        self._questions = questions_of(spec)

    async def produce(self, chunk: OpenChunk) -> None:
        """Every task of the chunk is on its way when this returns. The chunk stays open meanwhile."""
        plan = chunk.plan
        known = await self._store.read(scoring_journal.of_chunk, self._run_id, plan.row_start, plan.row_end)
        waiting: list[Task] = []
        seen: dict[tuple[int, int, str], bool] = {}
        async for page in self._sheet.rows(plan.row_start, plan.row_end):
            for row in page:
                waiting += self._tasks(chunk, row, known)
                if known:
                    for question in self._questions:
                        seen[row.row, question.first_category, row.identity] = not _is_open(row, question)
                while len(waiting) >= LOOKED_UP_AT_ONCE:
                    await self._send(waiting[:LOOKED_UP_AT_ONCE])
                    del waiting[:LOOKED_UP_AT_ONCE]
        await self._send(waiting)
        await self._following.mark(known, seen)

    def _tasks(self, chunk: OpenChunk, row: SheetRow, known: dict[tuple[int, int, str], ResultState]) -> list[Task]:
        made: list[Task] = []
        for question in self._questions:
            first = question.first_category
            state = known.get((row.row, first, row.identity))
            is_open = _is_open(row, question)
            if state in _SEEN_TO or (state in _IN_SHEET and not is_open):
                chunk.tasks += 1
                chunk.done += state is not ResultState.FAILED
                chunk.failed += state is ResultState.FAILED
                continue
            if not row.text or not is_open:
                continue
            key = question.key(
                row.text, self._spec.provider, self._spec.model, self._spec.temperature, pictures_of(row.picture)
            )
            chunk.add()
            made.append(Task(chunk, row.row, row.identity, row.text, question, key, row.picture))
        return made

    async def _send(self, tasks: Sequence[Task]) -> None:
        if not tasks:
            return
        found = await self._found(tasks)
        answered: list[tuple[Task, Kept, Source]] = []
        for task in tasks:
            if task.chunk.error is not None:
                task.chunk.abandon()
                continue
            kept = self._journal.recent(task.key)
            source = Source.SAME
            if kept is None:
                kept, source = found.get(task.key), Source.CACHE
            if kept is not None:
                answered.append((task, kept, source))
            elif not self._invokers.follow(task):
                await self._invokers.put(task)
        if answered:
            await self._settle(answered)

    async def _found(self, tasks: Sequence[Task]) -> dict[str, Kept]:
        """What the cache has for each task's key, of the first model that has it; valid answers only."""
        if not self._policy.cache_days or not self._policy.cache_max:
            return {}
        keys = {task.key: self._keys(task) for task in tasks if self._journal.recent(task.key) is None}
        if not keys:
            return {}
        since_ms = self._clock.now_ms() - self._policy.cache_days * DAY_MS
        wanted = [one for several in keys.values() for one in several]
        held = await self._store.read(scoring_journal.find_kept, self._tenant_id, wanted, since_ms)
        sizes = {task.key: len(task.question.categories) for task in tasks}
        found: dict[str, Kept] = {}
        for key, several in keys.items():
            kept = next((held[one] for one in several if one in held), None)
            if kept is not None and is_valid(kept.scores, sizes[key]):
                found[key] = kept
        return found

    def _keys(self, task: Task) -> list[str]:
        spec = self._spec
        pictures = pictures_of(task.picture)
        others = [
            task.question.key(task.text, spec.provider, one, spec.temperature, pictures)
            for one in spec.fallback_models
        ]
        return [task.key, *others]

    async def _settle(self, answered: list[tuple[Task, Kept, Source]]) -> None:
        """All in one entry of the journal: these are many, and cost nothing else."""
        results = tuple(
            result_of(task, Verdict(kept.scores, kept.model, kept.question_key), source)
            for task, kept, source in answered
        )
        cached = sum(source is Source.CACHE for _, _, source in answered)
        spent = Spent(cache_hits=cached, same_hits=len(answered) - cached)

        def tell() -> None:
            for task, _, _ in answered:
                task.chunk.settle(True)

        await self._journal.room()
        self._journal.put(Entry(results, (), spent), tell)


def _is_open(row: SheetRow, question: BlockQuestion) -> bool:
    """Whether a cell of the block is empty."""
    cells = (1 << len(question.categories)) - 1
    return row.filled >> question.first_category & cells != cells
