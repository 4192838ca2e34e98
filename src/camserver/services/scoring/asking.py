"""Asks about one task until there is a verdict, with all the patience that it needs.

A question that is refused for being too many (429) waits and keeps its place. One that the network or the provider
failed is sent again, and fails its chunk after too many times. One whose answer is of no use is asked again with what
was wrong, then of the next model, and at last fails alone: a bad row never fails its chunk.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from camserver.clients.llm.lean_http import Came, Reply
from camserver.clients.llm.questions import Answer, Finish, JsonSchema, LlmError, LlmErrorKind, Prompt
from camserver.domain.scoring import RunSpec, ScoringPolicy, retry_delay_sec
from camserver.domain.scoring_answers import Next, after_bad_answer
from camserver.domain.scoring_limits import Allowance, Ticket, Wait
from camserver.domain.scoring_prompts import user_prompt
from camserver.services.scoring.budget import Budget
from camserver.services.scoring.slots import Slots
from camserver.services.scoring.spending import Spending, Tally
from camserver.services.scoring.tasks import ChunkFailed, Task, Verdict, pictures_of
from camserver.services.scoring.troubles import Follows, NoAnswer, Troubles, follows
from camserver.services.scoring.validating import ValidationPool

T = TypeVar("T")

# The first wait after a failure; each further one is twice as long.
FIRST_WAIT_SEC = 0.2

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


class Asking:
    def __init__(
        self,
        models: Sequence[Model],
        spending: Spending,
        spec: RunSpec,
        policy: ScoringPolicy,
        slots: Slots,
        budget: Budget,
        validation: ValidationPool,
        pictures: Pictures | None,
    ) -> None:
        self._models = models
        self._spending = spending
        self._spec = spec
        self._policy = policy
        self._slots = slots
        self._budget = budget
        self._validation = validation
        self._pictures = pictures
        self._resting: set[asyncio.Task[Any]] = set()  # those that wait to ask again
        self._tokens = 0.0  # of one question, smoothed
        self.troubles = Troubles()
        self.trouble: str | None = None  # why nothing is answered just now
        self.is_paced = False  # answers tell what is left, which is to be heeded at once
        self.is_draining = False  # nothing is asked again

    def drain(self) -> None:
        """What only waits to be asked again is given up, now and from here on."""
        self.is_draining = True
        for resting in list(self._resting):
            resting.cancel()

    async def verdict(self, task: Task, tally: Tally) -> Verdict:
        wrong, number, reasked = "", 0, 0
        while True:
            model = self._models[number]
            answer = await self._call(number, task, user_prompt(task.text, wrong if reasked else ""), tally)
            is_final = isinstance(answer, NoAnswer) and answer.is_final
            if isinstance(answer, NoAnswer):
                wrong = answer.wrong
            else:
                read = await self._validation.check(answer.text, task.question.categories)
                if read.scores is not None:
                    self.troubles.was_useful()
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

    async def _call(self, number: int, task: Task, text: str, tally: Tally) -> Answer | NoAnswer:
        """An answer, or why this model will not give one to this question."""
        pictures: tuple[bytes, ...] = ()
        if task.picture:
            picture = await self._pictures(task.picture) if self._pictures is not None else None
            if picture is None:
                return NoAnswer("the picture is gone", True)
            pictures = (picture,)
        prompt = Prompt(task.question.system, text, pictures, self._spec.temperature)
        failures = 0
        worst_micro = self._spending.worst_micro(number, prompt, task.question.schema) if self._budget.is_kept else 0
        while True:
            if tally.reserved_micro:
                worst_micro, tally.reserved_micro = tally.reserved_micro, 0
            else:
                await self._budget.reserve(worst_micro)
            cost_micro = 0
            try:
                controller = self._slots.controller
                ticket = await self._ticket(tally)
                came, tally.came = tally.came, None
                is_told, tally.is_told = tally.is_told, False
                tally.calls += 1
                try:
                    answer = await self._models[number].ask_loosely(
                        prompt, task.question.schema, self._spec.answer_max_tokens, came
                    )
                except LlmError as error:
                    cost_micro = self._spending.bill(number, error, tally)
                    following = follows(error.kind)
                    if following is Follows.WAITING:
                        tally.refused += error.kind is LlmErrorKind.RATE_LIMITED
                        wait = controller.refuse(ticket, error.retry_after_sec, self._slots.now_sec())
                    elif following is Follows.SENDING_AGAIN:
                        controller.lost(ticket)
                        failures += 1
                        if failures > self._policy.network_retries:
                            raise ChunkFailed(error.message) from None
                        self.trouble = error.message
                        now_sec = self._slots.now_sec()
                        wait = Wait(now_sec, now_sec + FIRST_WAIT_SEC * retry_delay_sec(failures - 1), None)
                    else:
                        if not is_told:
                            controller.answered(ticket, self._slots.now_sec())
                        return self.troubles.without(error)
                else:
                    if not is_told:
                        controller.answered(ticket, self._slots.now_sec())
                    self.heard(answer)
                    cost_micro = self._spending.count(number, answer.usage, tally)
                    return answer
            finally:
                self._budget.settle(worst_micro, cost_micro)
            await self._rest(self._slots.wait_out(wait))

    async def _ticket(self, tally: Tally) -> Ticket:
        """Of the first question, which was sent, or is sent now; of any further one when it may be sent."""
        ticket, tally.ticket = tally.ticket, None
        if ticket is None and tally.has_place:
            ticket = await self._rest(self._slots.again())
        elif ticket is None:
            ticket = await self._rest(self._slots.acquire())
            tally.has_place = True
        return ticket

    async def _rest(self, waiting: Coroutine[Any, Any, T]) -> T:
        """Waits before asking again, unless the work is being stopped."""
        this = asyncio.current_task()
        if self.is_draining or this is None:
            waiting.close()
            raise asyncio.CancelledError
        self._resting.add(this)
        try:
            return await waiting
        finally:
            self._resting.discard(this)

    def heard(self, answer: Answer) -> None:
        """Something was answered; what it tells of limits is heeded."""
        self.trouble = None
        self.is_paced = bool(answer.limits)
        used = answer.usage.tokens_in + answer.usage.tokens_out
        self._tokens = float(used) if not self._tokens else 0.9 * self._tokens + 0.1 * used
        for told in answer.limits:
            per_question = 1.0 if told.what == "requests" else max(self._tokens, 1.0)
            allowance = Allowance(told.limit, told.remaining, told.reset_sec, told.what)
            self._slots.controller.heed(allowance, per_question, self._slots.now_sec())
