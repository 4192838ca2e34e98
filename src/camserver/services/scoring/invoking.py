"""InvokerPool: asks the models. One dispatcher takes tasks off the queue as the shared controller allows.

Nearly every question is asked once and answered well, so that this costs the least: it is sent without a task of its
own, its place is free as soon as its answer is there, and answers are looked at several at once and go into the
journal together. Whatever else comes back is handled by a task, with all the patience that it needs.

A question that is refused for being too many (429) waits and keeps its place. One that the network or the provider
failed is sent again, and fails its chunk after too many times. One whose answer is of no use is asked again with what
was wrong, then of the next model, and at last fails alone: a bad row never fails its chunk.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from camserver.base.log import get_logger
from camserver.clients.llm.lean_http import Came, Reply
from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import (
    BILLED,
    Answer,
    Finish,
    JsonSchema,
    LlmError,
    LlmErrorKind,
    Prompt,
    Usage,
    tokens_most,
)
from camserver.domain.scoring import PauseReason, RunSpec, ScoringPolicy, Source, retry_delay_sec
from camserver.domain.scoring_answers import Next, after_bad_answer
from camserver.domain.scoring_costs import PICTURE_TOKENS_MAX
from camserver.domain.scoring_limits import Allowance, Ticket, Wait
from camserver.domain.scoring_prompts import BlockQuestion, user_prompt
from camserver.services.scoring.budget import Budget
from camserver.services.scoring.journal import LINGER_MAX_SEC, Entry, Journal
from camserver.services.scoring.slots import Slots
from camserver.services.scoring.tasks import ChunkFailed, Interrupted, Task, Verdict, pictures_of
from camserver.services.scoring.validating import ValidationPool
from camserver.store.scoring_journal import Kept, Result, Spent

log = get_logger(__name__)
T = TypeVar("T")

# The first wait after a failure; each further one is twice as long.
FIRST_WAIT_SEC = 0.2
# Of the questions in flight, so many answers go into the journal together; they wait for each other no longer than
# such a part of the time that an answer takes.
GROUP_SHARE = 0.1
LINGER_SHARE = 0.1
# So many requests in a row that the provider can't use, and none that it could: the settings are wrong, not the rows.
BAD_REQUESTS_MAX = 5
_TOO_MANY = frozenset({LlmErrorKind.RATE_LIMITED, LlmErrorKind.OVERLOADED})
_AGAIN = frozenset({LlmErrorKind.CONNECTION, LlmErrorKind.SERVER_ERROR, LlmErrorKind.TIMEOUT})
_PAUSING = {LlmErrorKind.QUOTA: PauseReason.QUOTA, LlmErrorKind.BAD_KEY: PauseReason.KEY}


# The bytes of a row's picture; None: it is gone.
Pictures = Callable[[str], Awaitable[bytes | None]]


class Model(Protocol):
    provider: str
    model: str

    async def ask_loosely(
        self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int, came: Came | None = None
    ) -> Answer: ...

    def send(
        self, prompt: Prompt, schema: JsonSchema | None, max_tokens: int, then: Callable[[Came], None]
    ) -> bool: ...

    def read(self, reply: Reply, prompt: Prompt, schema: JsonSchema | None, max_tokens: int) -> Answer: ...


@dataclass(slots=True)
class _Tally:
    """What one task cost; and how its first question stands, which was sent before, or is to be sent now."""

    ticket: Ticket | None
    came: Came | None = None  # what came back
    is_told: bool = False  # the controller knows of it
    has_place: bool = True
    calls: int = 0
    refused: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro: int = 0

    def spent(self, same_hits: int = 0) -> Spent:
        return Spent(self.calls, self.refused, 0, same_hits, self.tokens_in, self.tokens_out, self.cost_micro)


# An answer that is there, and what it is to.
_Arrived = tuple[Task, Prompt, Ticket, Reply]


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    wrong: str
    is_final: bool  # asking this model again would not help


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
        self._prices = prices
        self._spec = spec
        self._policy = policy
        self.slots = slots
        self._journal = journal
        self._budget = budget
        self._pictures = pictures
        self._validation = ValidationPool()
        self._asked: dict[str, Task] = {}
        self._sent: set[Task] = set()  # without a task of the loop, and nothing came back yet
        self._landed = asyncio.Event()  # one of these came back
        self._arrived: list[_Arrived] = []  # not looked at yet
        self._looking: asyncio.TimerHandle | None = None
        self._is_paced = False  # answers tell what is left, which is to be heeded at once
        self._running: set[asyncio.Task[None]] = set()
        self._resting: set[asyncio.Task[None]] = set()  # those of them that wait to ask again
        self._is_draining = False
        self.trouble: str | None = None  # why nothing is answered just now
        self._interrupted: asyncio.Future[None] | None = None
        self._bad_requests = 0
        self._is_useful = False
        self._tokens = 0.0  # of one question, smoothed
        journal.on_failure = self._interrupt

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
            self._send(task, self.slots.taken() or await self.slots.acquire())

    def _is_much_owed(self) -> bool:
        """What a crash makes us pay twice is no more than may be in flight, and a few that go into the journal
        together."""
        controller, journal = self.slots.controller, self._journal
        group = int(GROUP_SHARE * controller.limit)
        journal.enough = max(1, group)
        journal.linger_sec = LINGER_SHARE * controller.latency_sec
        owed = journal.unsettled_paid + len(self._arrived)
        return owed > 0 and owed + controller.in_flight >= controller.places + group

    async def _room(self) -> None:
        self._look()
        while self._journal.unsettled_paid and self._is_much_owed():
            await self._journal.progress()

    def _send(self, task: Task, ticket: Ticket) -> None:
        if not task.picture and not self._budget.is_kept:
            prompt = Prompt(task.question.system, user_prompt(task.text), (), self._spec.temperature)
            self._sent.add(task)
            then = partial(self._came, task, prompt, ticket)
            if self._models[0].send(prompt, task.question.schema, self._spec.answer_max_tokens, then):
                return
            self._sent.discard(task)
        self._handle_apart(task, _Tally(ticket))

    def _came(self, task: Task, prompt: Prompt, ticket: Ticket, came: Came) -> None:
        """What came back to a question that was sent without a task."""
        if task not in self._sent:
            return  # it was given up
        self._sent.discard(task)
        self._landed.set()
        if isinstance(came, Exception) or came.status != 200:
            self._handle_apart(task, _Tally(ticket, came))
            return
        self.slots.controller.answered(ticket, self.slots.now_sec())
        self.slots.release()
        self._arrived.append((task, prompt, ticket, came))
        if len(self._arrived) >= self._journal.enough or self._is_paced or self._is_draining:
            self._look()
        elif self._looking is None:
            linger_sec = min(self._journal.linger_sec, LINGER_MAX_SEC)
            self._looking = asyncio.get_running_loop().call_later(linger_sec, self._look)

    def _look(self) -> None:
        """At the answers that are there, all of them: they go into the journal together."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        arrived, self._arrived = self._arrived, []
        for task, prompt, ticket, reply in arrived:
            try:
                is_done = self._is_plain(task, prompt, reply)
            except Exception as error:
                self._interrupt(error)
                is_done = False
            if not is_done:
                self._handle_apart(task, _Tally(ticket, reply, is_told=True, has_place=False))
        if self._journal.unsettled_paid:
            self._journal.hurry()

    def _is_plain(self, task: Task, prompt: Prompt, reply: Reply) -> bool:
        """Whether it is a good answer, which is settled then; any other one is looked at closely."""
        try:
            answer = self._models[0].read(reply, prompt, task.question.schema, self._spec.answer_max_tokens)
        except LlmError:
            return False
        read = self._validation.check_here(answer.text, task.question.categories)
        if read is None or read.scores is None:
            return False
        tally = _Tally(None, calls=1)
        self._good(answer)
        self._count(0, answer.usage, tally)
        self._is_useful = True
        self._settle(task, Verdict(read.scores, answer.model, task.key), tally)
        return True

    def _handle_apart(self, task: Task, tally: _Tally) -> None:
        handling = asyncio.create_task(self._handle(task, tally))
        self._running.add(handling)
        handling.add_done_callback(self._running.discard)

    async def drain(self, patience_sec: float) -> None:
        """Waits for what is in flight: it is paid for. What takes too long, or only waits to be asked again, is given
        up."""
        self._is_draining = True
        self._look()
        for resting in list(self._resting):
            resting.cancel()
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
            self._settle(task, None, _Tally(None, calls=1))

    # -- One task ------------------------------------------------------------------------------------------------

    async def _handle(self, task: Task, tally: _Tally) -> None:
        verdict: Verdict | None = None
        try:
            verdict = await self._verdict(task, tally)
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
        self._settle(task, verdict, tally)

    def _interrupt(self, error: Exception) -> None:
        if self._interrupted is not None and not self._interrupted.done():
            self._interrupted.set_exception(error)

    def _settle(self, task: Task, verdict: Verdict | None, tally: _Tally) -> None:
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

    async def _verdict(self, task: Task, tally: _Tally) -> Verdict:
        wrong, number, reasked = "", 0, 0
        while True:
            model = self._models[number]
            answer = await self._call(number, task, user_prompt(task.text, wrong if reasked else ""), tally)
            is_final = isinstance(answer, _NoAnswer) and answer.is_final
            if isinstance(answer, _NoAnswer):
                wrong = answer.wrong
            else:
                read = await self._validation.check(answer.text, task.question.categories)
                if read.scores is not None:
                    self._is_useful = True
                    key = task.key if number == 0 else self._key(task, model.model)
                    return Verdict(read.scores, answer.model, key)
                cut = " (it is longer than answer_max_tokens)" if answer.finish is Finish.LENGTH else ""
                wrong = read.wrong + cut
            asked = self._policy.reasks if is_final else reasked
            following = after_bad_answer(asked, len(self._models) - number - 1, self._policy.reasks)
            if following is Next.GIVE_UP:
                return Verdict(None, None, task.key, f"{model.model}: {wrong}")
            if following is Next.FALL_BACK:
                number, reasked = number + 1, 0
            else:
                reasked += 1

    def _key(self, task: Task, model: str) -> str:
        return task.question.key(
            task.text, self._spec.provider, model, self._spec.temperature, pictures_of(task.picture)
        )

    # -- One call ------------------------------------------------------------------------------------------------

    async def _call(self, number: int, task: Task, text: str, tally: _Tally) -> Answer | _NoAnswer:
        """An answer, or why this model will not give one to this question."""
        pictures: tuple[bytes, ...] = ()
        if task.picture:
            picture = await self._pictures(task.picture) if self._pictures is not None else None
            if picture is None:
                return _NoAnswer("the picture is gone", True)
            pictures = (picture,)
        prompt = Prompt(task.question.system, text, pictures, self._spec.temperature)
        failures = 0
        worst_micro = self._worst_micro(number, prompt, task.question) if self._budget.is_kept else 0
        while True:
            await self._budget.reserve(worst_micro)
            cost_micro = 0
            try:
                controller = self.slots.controller
                ticket = await self._ticket(tally)
                came, tally.came = tally.came, None
                is_told, tally.is_told = tally.is_told, False
                tally.calls += 1
                try:
                    answer = await self._models[number].ask_loosely(
                        prompt, task.question.schema, self._spec.answer_max_tokens, came
                    )
                except LlmError as error:
                    cost_micro = self._bill(number, error, tally)
                    if error.kind in _TOO_MANY:
                        tally.refused += error.kind is LlmErrorKind.RATE_LIMITED
                        wait = controller.refuse(ticket, error.retry_after_sec, self.slots.now_sec())
                    elif error.kind in _AGAIN:
                        controller.lost(ticket)
                        failures += 1
                        if failures > self._policy.network_retries:
                            raise ChunkFailed(error.message) from None
                        self.trouble = error.message
                        now_sec = self.slots.now_sec()
                        wait = Wait(now_sec, now_sec + FIRST_WAIT_SEC * retry_delay_sec(failures - 1), None)
                    else:
                        if not is_told:
                            controller.answered(ticket, self.slots.now_sec())
                        return self._without(error)
                else:
                    if not is_told:
                        controller.answered(ticket, self.slots.now_sec())
                    self._good(answer)
                    cost_micro = self._count(number, answer.usage, tally)
                    return answer
            finally:
                self._budget.settle(worst_micro, cost_micro)
            await self._rest(self.slots.wait_out(wait))

    async def _ticket(self, tally: _Tally) -> Ticket:
        """Of the first question, which was sent, or is sent now; of any further one when it may be sent."""
        ticket, tally.ticket = tally.ticket, None
        if ticket is None and tally.has_place:
            ticket = await self._rest(self.slots.again())
        elif ticket is None:
            ticket = await self._rest(self.slots.acquire())
            tally.has_place = True
        return ticket

    async def _rest(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Waits before asking again, unless the work is being stopped."""
        this = asyncio.current_task()
        if self._is_draining or this is None:
            waiting.close()
            raise asyncio.CancelledError
        self._resting.add(this)
        try:
            return await waiting
        finally:
            self._resting.discard(this)

    def _without(self, error: LlmError) -> _NoAnswer:
        """What to note of a question that this model does not answer; Interrupted where none will be answered."""
        if error.kind in _PAUSING:
            raise Interrupted(_PAUSING[error.kind], error.message)
        if error.kind is LlmErrorKind.BAD_REQUEST and not self._is_useful:
            self._bad_requests += 1
            if self._bad_requests >= BAD_REQUESTS_MAX:
                raise Interrupted(PauseReason.REQUEST, error.message)
        is_final = error.kind not in (LlmErrorKind.BROKEN_ANSWER, LlmErrorKind.TRUNCATED)
        return _NoAnswer(f"{error.kind.value}: {error.message}", is_final)

    def _good(self, answer: Answer) -> None:
        """Something was answered; what it tells of limits is heeded."""
        self.trouble = None
        self._is_paced = bool(answer.limits)
        used = answer.usage.tokens_in + answer.usage.tokens_out
        self._tokens = float(used) if not self._tokens else 0.9 * self._tokens + 0.1 * used
        for told in answer.limits:
            per_question = 1.0 if told.what == "requests" else max(self._tokens, 1.0)
            allowance = Allowance(told.limit, told.remaining, told.reset_sec, told.what)
            self.slots.controller.heed(allowance, per_question, self.slots.now_sec())

    def _worst_micro(self, number: int, prompt: Prompt, question: BlockQuestion) -> int:
        """What a question costs at most."""
        price = self._prices[number]
        usage = Usage(tokens_most(prompt, question.schema, PICTURE_TOKENS_MAX), self._spec.answer_max_tokens)
        return max(price.cost_micro(usage), 1) if price is not None else 1

    def _bill(self, number: int, error: LlmError, tally: _Tally) -> int:
        """What a failed question cost: as told, and where it is likely billed untold, nothing that we could know."""
        return self._count(number, error.usage, tally) if error.usage is not None and error.kind in BILLED else 0

    def _count(self, number: int, usage: Usage, tally: _Tally) -> int:
        price = self._prices[number]
        cost_micro = price.cost_micro(usage) if price is not None else 0
        tally.tokens_in += usage.tokens_in
        tally.tokens_out += usage.tokens_out
        tally.cost_micro += cost_micro
        return cost_micro


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
