"""Asks a language model about events that the analyzer could not name (decision 26): the handler of `llm_review`.

Fetch the event's best frame of now, reserve the question, ask, keep the answer with the delivery's end. The answer is
a memo for people who may investigate; nothing else follows from it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.base.errors import NotFound, Retry
from camserver.base.log import get_logger
from camserver.base.zones import zone_of
from camserver.clients.llm.opening import configured_price, open_configured
from camserver.clients.llm.prices import Price
from camserver.clients.llm.questions import BILLED, Answer, LlmClient, LlmError, LlmErrorKind, Prompt, Usage
from camserver.domain import reviews
from camserver.domain.deliveries import Along, Claimed, DeliveryError, Done, Ending, Suppressed, Trouble
from camserver.domain.notices import LlmReviewPolicy
from camserver.domain.reviews import Budget
from camserver.objects.keys import Kind, frame_key
from camserver.objects.local import Objects
from camserver.store import Store, llm_reviews
from camserver.store.llm_reviews import Question, Reserved, Spent, Subject

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

# Providers take no picture beyond a few megabytes; then the small one must do.
PICTURE_BYTES_MAX = 4_000_000
# An answer that can't be used is paid for: it is asked for again, but not as often as a delivery is tried.
USELESS_MAX = 3
# How long nothing is asked after the provider said that money or the day's allowance is used up.
QUOTA_REST_SEC = 900.0

_LATER = frozenset({LlmErrorKind.RATE_LIMITED, LlmErrorKind.OVERLOADED, LlmErrorKind.CONNECTION})
_USELESS = frozenset({LlmErrorKind.BROKEN_ANSWER, LlmErrorKind.TRUNCATED})
_HOPELESS = frozenset({LlmErrorKind.BAD_KEY, LlmErrorKind.BAD_REQUEST, LlmErrorKind.REFUSED})


@dataclass(frozen=True, slots=True)
class ReviewTerms:
    policy: LlmReviewPolicy
    budget: Budget
    price: Price | None  # None: not known
    max_tokens: int


def open_reviewer(store: Store, objects: Objects, clock: Clock, settings: "Settings") -> "Reviewer | None":
    """None when no model is configured."""
    chosen = settings.llm
    if not chosen.is_configured:
        return None
    terms = terms_of(settings)
    if terms.price is None and terms.budget.cost_micro is not None:
        log.warning(
            "llm_price_unknown",
            model=chosen.model,
            why="llm.daily_cost_usd is set, and what the model costs is not known: nothing is asked. "
            "Set llm.price_in and llm.price_out",
        )
    return Reviewer(store, objects, clock, open_configured(chosen), terms)


def terms_of(settings: "Settings") -> ReviewTerms:
    chosen = settings.llm
    money = round(chosen.daily_cost_usd * 1_000_000) or None
    return ReviewTerms(
        settings.llm_review, Budget(chosen.daily_calls, money), configured_price(chosen), chosen.max_tokens
    )


class Reviewer:
    def __init__(self, store: Store, objects: Objects, clock: Clock, client: LlmClient, terms: ReviewTerms) -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._client = client
        self._terms = terms

    async def close(self) -> None:
        await self._client.close()

    async def handle(self, claimed: Claimed) -> Ending:
        subject = None
        if claimed.event_id is not None:
            subject = await self._store.read(llm_reviews.find_subject, claimed.event_id)
        if subject is None:
            return Suppressed("the event or its picture is gone")
        question = self._question(claimed, subject)
        if question is None:
            return Suppressed("llm.daily_cost_usd is set, and the model's price is not known")
        reserved = await self._store.write(llm_reviews.reserve, question, self._clock.now_ms())
        if reserved is Reserved.BUDGET_FIRST:
            log.warning("llm_budget_used_up", day=question.day, tenant_id=subject.tenant_id)
        if reserved is not Reserved.YES:
            return Suppressed(_WHY_NOT[reserved])
        try:
            picture = await self._picture(subject)
        except Retry as error:
            raise DeliveryError(Trouble.RETRY, error.message, along=(_free(question),)) from None
        if picture is None:
            return Suppressed("the picture of the event's best frame is gone", along=(_free(question),))
        return await self._ask(claimed, question, picture)

    async def _picture(self, subject: Subject) -> bytes | None:
        kinds = {Kind.INFER: subject.infer_bytes, Kind.FULL: subject.full_bytes}
        order = (Kind.FULL, Kind.INFER) if self._terms.policy.picture == "full" else (Kind.INFER, Kind.FULL)
        for kind in order:
            size_bytes = kinds[kind]
            if size_bytes is None or size_bytes > PICTURE_BYTES_MAX:
                continue
            key = frame_key(
                subject.epoch_id, subject.tenant_id, subject.camera_key, subject.captured_at, subject.frame_uuid, kind
            )
            try:
                return await self._objects.get(key)
            except NotFound:
                continue
        return None

    def _question(self, claimed: Claimed, subject: Subject) -> Question | None:
        """None when the budget is in money and nobody knows what the question costs."""
        price, budget = self._terms.price, self._terms.budget
        if price is None and budget.cost_micro is not None:
            return None
        most = Usage(reviews.TOKENS_IN_RESERVED, self._terms.max_tokens)
        return Question(
            delivery_uuid=claimed.delivery_uuid,
            subject=subject,
            provider=self._client.provider,
            model=self._client.model,
            day=reviews.day_of(self._clock.now_ms()),
            cost_micro=0 if price is None else price.cost_micro(most),
            budget=budget,
            policy=self._terms.policy,
        )

    async def _ask(self, claimed: Claimed, question: Question, picture: bytes) -> Ending:
        policy = self._terms.policy
        asked = reviews.ask(
            policy.labels, policy.language, question.subject.captured_at, zone_of(question.subject.timezone)
        )
        try:
            answer = await self._client.ask(
                Prompt(asked.system, asked.text, (picture,)), asked.schema, self._terms.max_tokens
            )
            review = reviews.read_review(answer.parsed or {}, policy.labels)
            if review is None:
                raise LlmError(LlmErrorKind.BROKEN_ANSWER, "the answer has no memo", usage=answer.usage)
        except LlmError as error:
            raise self._failed(claimed, question, error) from None
        return self._done(question, review, answer)

    def _done(self, question: Question, review: reviews.Review, answer: Answer) -> Done:
        spent = self._spent(answer.usage)
        log.info("llm_reviewed", label=review.label, tokens_in=spent.tokens_in, tokens_out=spent.tokens_out)
        return Done(
            {
                "label": review.label,
                "model": answer.model,
                "tokens_in": spent.tokens_in,
                "tokens_out": spent.tokens_out,
                "cost_micro": spent.cost_micro,
            },
            along=(Along(llm_reviews.finish, (question, review, answer.model, spent, self._clock.now_ms())),),
        )

    def _spent(self, usage: Usage) -> Spent:
        cost = 0 if self._terms.price is None else self._terms.price.cost_micro(usage)
        return Spent(1, usage.tokens_in, usage.tokens_out, cost)

    def _failed(self, claimed: Claimed, question: Question, error: LlmError) -> DeliveryError:
        """What becomes of the delivery; in the same transaction only what was billed stays counted."""
        if error.kind not in BILLED:
            spent = Spent(0)
        elif error.usage is None:
            # Nobody said what it cost, so what was reserved stays.
            spent = Spent(1, cost_micro=question.cost_micro)
        else:
            spent = self._spent(error.usage)
        trouble, retry_after_sec = Trouble.FAILED, error.retry_after_sec
        if error.kind in _LATER:
            trouble = Trouble.RETRY
        elif error.kind is LlmErrorKind.QUOTA:
            trouble, retry_after_sec = Trouble.RETRY, max(QUOTA_REST_SEC, error.retry_after_sec or 0.0)
            log.error("llm_quota_exhausted", why=error.message, next_step="top up the account of llm.key")
        elif error.kind in _HOPELESS or (error.kind in _USELESS and claimed.attempt >= USELESS_MAX):
            trouble = Trouble.REFUSED
        return DeliveryError(
            trouble,
            f"{error.kind.value}: {error.message}",
            retry_after_sec,
            along=(Along(llm_reviews.give_back, (question, spent)),),
        )


def _free(question: Question) -> Along:
    """Nothing was asked, so nothing is counted."""
    return Along(llm_reviews.give_back, (question, Spent(0)))


_WHY_NOT = {
    Reserved.REVIEWED: "the event has its review",
    Reserved.TAKEN: "the event is being reviewed",
    Reserved.RESTING: "the camera was reviewed a moment ago",
    Reserved.BUDGET: "the day's budget is used up",
    Reserved.BUDGET_FIRST: "the day's budget is used up",
}
