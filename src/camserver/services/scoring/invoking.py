"""InvokerPool: asks the models. One dispatcher takes tasks off the queue as the shared controller allows.

Nearly every question is asked once and answered well, so that this costs the least: it is sent without a task of its
own, its place is free as soon as its answer is there, and answers go into the journal together. Whatever else comes
back is handled by a task (asking.py).
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from functools import partial

from camserver.base.log import get_logger
from camserver.clients.llm.lean_http import Came, Reply
from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import (
    LlmError,
    Prompt,
)
from camserver.domain.scoring import RunSpec, ScoringPolicy, Source
from camserver.domain.scoring_limits import Ticket
from camserver.domain.scoring_prompts import user_prompt
from camserver.services.scoring.asking import Asking, Model, Pictures
from camserver.services.scoring.budget import Budget
from camserver.services.scoring.journal import Journal
from camserver.services.scoring.slots import Slots
from camserver.services.scoring.spending import Spending, Tally
from camserver.services.scoring.tasks import ChunkFailed, Interrupted, Task, Verdict
from camserver.services.scoring.validating import ValidationPool
from camserver.store.scoring_journal import Entry, Kept, Result

log = get_logger(__name__)

# Of the questions in flight, so many answers go into the journal together; they wait for each other no longer than
# such a part of the time that an answer takes.
GROUP_SHARE = 0.5
LINGER_SHARE = 0.5


class InvokerPool:
    def __init__(
        self,
        models: Sequence[Model],
        prices: Sequence[Price | None],
        spec: RunSpec,
        policy: ScoringPolicy,
        slots: Slots,
        journal: Journal,
        budget: Budget,
        pictures: Pictures | None = None,
    ) -> None:
        self._queue: deque[Task] = deque()
        self._queue_max = 2 * policy.concurrency_max
        self._is_filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._models = models
        self._spec = spec
        self._policy = policy
        self.slots = slots
        self._journal = journal
        self._budget = budget
        self._validation = ValidationPool()
        self._spending = Spending(prices, spec.answer_max_tokens)
        self._asking = Asking(models, self._spending, spec, policy, slots, budget, self._validation, pictures)
        self._asked: dict[str, Task] = {}
        self._sent: set[Task] = set()  # without a task of the loop, and nothing came back yet
        self._landed = asyncio.Event()  # one of these came back
        self._running: set[asyncio.Task[None]] = set()
        self._interrupted: asyncio.Future[None] | None = None
        journal.on_failure = self._interrupt

    @property
    def trouble(self) -> str | None:
        """Why nothing is answered just now."""
        return self._asking.trouble

    # -- In ------------------------------------------------------------------------------------------------------

    def follow(self, task: Task) -> bool:
        """Whether the same question is on its way already; the task then shares its answer."""
        leader = self._asked.get(task.key)
        if leader is None:
            return False
        leader.followers.append(task)
        return True

    async def put(self, task: Task) -> None:
        """Back-pressure: waits while the queue is full, until it is half empty, so that it is filled seldom."""
        self._asked[task.key] = task
        while len(self._queue) >= self._queue_max:
            self._has_room.clear()
            await self._has_room.wait()
        self._queue.append(task)
        self._is_filled.set()

    async def run(self) -> None:
        """Dispatches until cancelled. Interrupted is raised when the run can't go on."""
        self._interrupted = asyncio.get_running_loop().create_future()
        dispatching = asyncio.create_task(self._dispatch())
        try:
            await asyncio.wait([dispatching, self._interrupted], return_when=asyncio.FIRST_COMPLETED)
            if self._interrupted.done():
                self._interrupted.result()
            await dispatching
        finally:
            dispatching.cancel()
            await asyncio.wait([dispatching])

    async def _dispatch(self) -> None:
        while True:
            while not self._queue:
                self._is_filled.clear()
                await self._is_filled.wait()
            task = self._queue.popleft()
            if 2 * len(self._queue) <= self._queue_max:
                self._has_room.set()
            if task.chunk.error is not None and not task.followers:
                self._drop(task)
                continue
            if self._is_much_owed():
                await self._room()
            # Money first: a place whose question waits for it would look like one in flight.
            try:
                reserved_micro = await self._reserve(task) if self._budget.is_kept else 0
            except Interrupted:
                self._drop(task)
                raise
            try:
                ticket = self.slots.taken() or await self.slots.acquire()
            except BaseException:
                self._budget.settle(reserved_micro, 0)
                raise
            self._send(task, ticket, reserved_micro)

    async def _reserve(self, task: Task) -> int:
        pictures = (b"",) if task.picture else ()
        prompt = Prompt(task.question.system, user_prompt(task.text), pictures, self._spec.temperature)
        worst_micro = self._spending.worst_micro(0, prompt, task.question.schema)
        await self._budget.reserve(worst_micro)
        return worst_micro

    def _is_much_owed(self) -> bool:
        """What a loss of power makes us pay twice is no more than may be in flight, and a few that go into the
        journal together. Of a killed process these are kept aside."""
        controller, journal = self.slots.controller, self._journal
        group = int(GROUP_SHARE * controller.limit)
        journal.enough = max(1, group)
        journal.linger_sec = LINGER_SHARE * controller.latency_sec
        owed = journal.unsettled_paid
        return owed > 0 and owed + controller.in_flight >= controller.places + group

    async def _room(self) -> None:
        while self._journal.unsettled_paid and self._is_much_owed():
            await self._journal.progress()

    def _send(self, task: Task, ticket: Ticket, reserved_micro: int) -> None:
        if not task.picture and not self._budget.is_kept:
            prompt = Prompt(task.question.system, user_prompt(task.text), (), self._spec.temperature)
            self._sent.add(task)
            then = partial(self._came, task, prompt, ticket)
            if self._models[0].send(prompt, task.question.schema, self._spec.answer_max_tokens, then):
                return
            self._sent.discard(task)
        self._handle_apart(task, Tally(ticket, reserved_micro=reserved_micro))

    def _came(self, task: Task, prompt: Prompt, ticket: Ticket, came: Came) -> None:
        """What came back to a question that was sent without a task."""
        if task not in self._sent:
            return  # it was given up
        self._sent.discard(task)
        self._landed.set()
        if isinstance(came, Exception) or came.status != 200:
            self._handle_apart(task, Tally(ticket, came))
            return
        self.slots.controller.answered(ticket, self.slots.now_sec())
        self.slots.release()
        try:
            is_done = self._is_plain(task, prompt, came)
        except Exception as error:
            self._interrupt(error)
            is_done = False
        if not is_done:
            self._handle_apart(task, Tally(ticket, came, is_told=True, has_place=False))

    def _is_plain(self, task: Task, prompt: Prompt, reply: Reply) -> bool:
        """Whether it is a good answer, which is settled then; any other one is looked at closely."""
        try:
            answer = self._models[0].read(reply, prompt, task.question.schema, self._spec.answer_max_tokens)
        except LlmError:
            return False
        read = self._validation.check_here(answer.text, task.question.categories)
        if read is None or read.scores is None:
            return False
        tally = Tally(None, calls=1)
        self._asking.heard(answer)
        self._spending.count(0, answer.usage, tally)
        self._asking.troubles.was_useful()
        self._settle(task, Verdict(read.scores, answer.model, task.key), tally)
        return True

    def _handle_apart(self, task: Task, tally: Tally) -> None:
        handling = asyncio.create_task(self._handle(task, tally))
        self._running.add(handling)
        handling.add_done_callback(self._running.discard)

    async def drain(self, patience_sec: float) -> None:
        """Waits for what is in flight: it is paid for. What takes too long, or only waits to be asked again, is given
        up."""
        self._asking.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_sec):
                while self._sent:
                    self._landed.clear()
                    await self._landed.wait()
                while self._running:
                    await asyncio.wait(self._running)
        late = list(self._running)
        for one in late:
            one.cancel()
        if late:
            await asyncio.wait(late)
        for task in list(self._sent):
            self._sent.discard(task)
            self.slots.release()
            self._settle(task, None, Tally(None, calls=1))

    # -- One task ------------------------------------------------------------------------------------------------

    async def _handle(self, task: Task, tally: Tally) -> None:
        verdict: Verdict | None = None
        try:
            verdict = await self._asking.verdict(task, tally)
        except ChunkFailed as error:
            for one in (task, *task.followers):
                one.chunk.fail(str(error))
        except asyncio.CancelledError:
            self._settle(task, None, tally)
            raise
        except Exception as error:
            self._interrupt(error)
        finally:
            if tally.has_place:
                self.slots.release()
            if tally.reserved_micro:
                self._budget.settle(tally.reserved_micro, 0)
        self._settle(task, verdict, tally)

    def _interrupt(self, error: Exception) -> None:
        if self._interrupted is not None and not self._interrupted.done():
            self._interrupted.set_exception(error)

    def _settle(self, task: Task, verdict: Verdict | None, tally: Tally) -> None:
        """Journal first; then the chunks are told. From here on, no further task joins this one."""
        self._asked.pop(task.key, None)
        if verdict is None:
            if tally.calls:
                self._journal.put(Entry(spent=tally.spent()), lambda: None)
            self._drop(task)
            return
        everyone = (task, *task.followers)
        kept: tuple[Kept, ...] = ()
        if verdict.scores is not None:
            answer = Kept(verdict.key, verdict.scores, verdict.model or "")
            self._journal.remember(task.key, answer)
            kept = (answer,)
        results = tuple(result_of(one, verdict, Source.CALL if one is task else Source.SAME) for one in everyone)
        is_scored = verdict.scores is not None

        def tell() -> None:
            for one in everyone:
                one.chunk.settle(is_scored)

        self._journal.put(Entry(results, kept, tally.spent(len(everyone) - 1)), tell)

    def _drop(self, task: Task) -> None:
        self._asked.pop(task.key, None)
        for one in (task, *task.followers):
            one.chunk.abandon()


def result_of(task: Task, verdict: Verdict, source: Source) -> Result:
    return Result(
        task.chunk.plan.number,
        task.row,
        task.question.first_category,
        task.identity,
        verdict.scores,
        task.key,
        verdict.model,
        source,
        verdict.note,
    )
