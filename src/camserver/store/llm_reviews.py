"""What a language model said of events, and the day's budget for asking it (decision 26).

A question is *reserved* before it is asked: in one transaction the event is taken (UNIQUE: at most one review an
event), the camera's rest is checked and the day's budget is drawn on as if the answer were as long as it may be. What
it really cost is settled when the delivery ends. Whoever dies in between has drawn too much, never too little. A row
without a label is such a reservation; `review_uuid` is the uuid of its delivery, so that a repeat knows its own.
"""

from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.notices import LlmReviewPolicy, may_review
from camserver.domain.people import Permission
from camserver.domain.reviews import Budget, Review
from camserver.store import search_texts
from camserver.store.sql import Sql
from camserver.store.tx import Scoped, Tx

BUDGET_REPORT = "llm_budget"
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Subject:
    """What a review is about: an event and the frame that is its best now."""

    event_id: int
    tenant_id: int
    site_id: int
    camera_key: int
    timezone: str
    frame_id: int
    frame_uuid: str
    captured_at: int
    epoch_id: int
    infer_bytes: int | None
    full_bytes: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is about to be asked."""

    delivery_uuid: str
    subject: Subject
    provider: str
    model: str
    day: str
    cost_micro: int  # at most; 0 where the price is not known
    budget: Budget
    policy: LlmReviewPolicy


@dataclass(frozen=True, slots=True)
class Spent:
    """What a question really cost. `calls` is 0 when nobody bills it."""

    calls: int = 1
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micro: int = 0


class Reserved(StrEnum):
    YES = "yes"
    REVIEWED = "reviewed"  # the event has its review
    TAKEN = "taken"  # another delivery of the event is at it
    RESTING = "camera_cooldown"
    BUDGET = "daily_budget"
    BUDGET_FIRST = "daily_budget_first"  # the same, for the first time today


@dataclass(frozen=True, slots=True)
class ShownReview:
    """A review as people who may investigate read it."""

    label: str
    memo: str
    provider: str
    model: str
    created_at: int


async def find_subject(tx: Tx, event_id: int) -> Subject | None:
    """None when the event or the picture of its best frame is gone."""
    row = await tx.one(
        """
        SELECT e.event_id, e.tenant_id, e.site_id, e.camera_key, s.timezone, f.frame_id, f.frame_uuid, f.captured_at,
          f.epoch_id, f.infer_bytes, f.full_bytes
        FROM events e JOIN sites s ON s.site_id = e.site_id JOIN frames f ON f.frame_id = e.best_frame_id
        WHERE e.event_id = :event_id""",
        event_id=event_id,
    )
    if row is None or row["epoch_id"] is None or (row["infer_bytes"] is None and row["full_bytes"] is None):
        return None
    return Subject(
        event_id=row["event_id"],
        tenant_id=row["tenant_id"],
        site_id=row["site_id"],
        camera_key=row["camera_key"],
        timezone=row["timezone"],
        frame_id=row["frame_id"],
        frame_uuid=row["frame_uuid"],
        captured_at=row["captured_at"],
        epoch_id=row["epoch_id"],
        infer_bytes=row["infer_bytes"],
        full_bytes=row["full_bytes"],
    )


async def reserve(tx: Tx, question: Question, now_ms: int) -> Reserved:
    """Whether the question may be asked now; if so it is counted already."""
    subject = question.subject
    # One at a time for a camera, whichever of its events they are about.
    await tx.one(
        "SELECT camera_key FROM camera_state WHERE camera_key = :camera_key FOR UPDATE", camera_key=subject.camera_key
    )
    taken = await _taken(tx, question)
    if taken is not None:
        return taken
    last = await tx.one(
        """
        SELECT MAX(created_at) AS at FROM llm_reviews
        WHERE camera_key = :camera_key AND created_at > :since AND event_id <> :event_id""",
        camera_key=subject.camera_key,
        since=now_ms - question.policy.cooldown_sec * 1000,
        event_id=subject.event_id,
    )
    if not may_review(last["at"] if last is not None else None, question.policy, now_ms):
        return Reserved.RESTING
    if not await _drawn(tx, question):
        return Reserved.BUDGET_FIRST if await _reported(tx, question, now_ms) else Reserved.BUDGET
    values = {
        "review_uuid": question.delivery_uuid,
        "event_id": subject.event_id,
        "frame_id": subject.frame_id,
        "provider": question.provider,
        "model": question.model[:128],
        "now_ms": now_ms,
    }
    if not await tx.run(_TAKE_OVER, **values):
        await tx.insert(_INSERT, tenant_id=subject.tenant_id, camera_key=subject.camera_key, **values)
    return Reserved.YES


async def _taken(tx: Tx, question: Question) -> Reserved | None:
    row = await tx.one(
        """
        SELECT r.review_uuid, r.label, d.status FROM llm_reviews r
        LEFT JOIN deliveries d ON d.delivery_uuid = r.review_uuid WHERE r.event_id = :event_id""",
        event_id=question.subject.event_id,
    )
    if row is None:
        return None
    if row["label"]:
        return Reserved.REVIEWED
    # One that is over and left no label, or whose row is gone, is not at it any more.
    is_at_it = row["status"] in ("queued", "delayed", "running")
    return Reserved.TAKEN if is_at_it and row["review_uuid"] != question.delivery_uuid else None


async def _drawn(tx: Tx, question: Question) -> bool:
    budget, tenant_id = question.budget, question.subject.tenant_id
    await tx.run(_ENSURE_DAY, tenant_id=tenant_id, day=question.day)
    row = await tx.one(
        "SELECT calls, cost_micro FROM llm_days WHERE tenant_id = :tenant_id AND day = :day FOR UPDATE",
        tenant_id=tenant_id,
        day=question.day,
    )
    if row is None or not budget.allows(row["calls"], row["cost_micro"], question.cost_micro):
        return False
    await _count(tx, tenant_id, question.day, Spent(cost_micro=question.cost_micro))
    return True


async def _count(tx: Tx, tenant_id: int, day: str, spent: Spent) -> None:
    await tx.run(
        """
        UPDATE llm_days SET calls = calls + :calls, tokens_in = tokens_in + :tokens_in,
          tokens_out = tokens_out + :tokens_out, cost_micro = cost_micro + :cost_micro
        WHERE tenant_id = :tenant_id AND day = :day""",
        tenant_id=tenant_id,
        day=day,
        calls=spent.calls,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost_micro=spent.cost_micro,
    )


async def _reported(tx: Tx, question: Question, now_ms: int) -> bool:
    """Notes for people that the budget is used up; False when that was noted today."""
    tenant_id = question.subject.tenant_id
    since = now_ms // DAY_MS * DAY_MS
    known = await tx.one(
        "SELECT report_id FROM sweep_reports WHERE tenant_id = :tenant_id AND at >= :since AND what = :what LIMIT 1",
        tenant_id=tenant_id,
        since=since,
        what=BUDGET_REPORT,
    )
    if known is not None:
        return False
    await tx.insert(
        """
        INSERT INTO sweep_reports (tenant_id, at, what, count, reason)
        VALUES (:tenant_id, :now_ms, :what, :calls, :reason) RETURNING report_id""",
        tenant_id=tenant_id,
        now_ms=now_ms,
        what=BUDGET_REPORT,
        calls=question.budget.calls,
        reason="the day's budget for questions to the language model is used up",
    )
    return True


async def _settle(tx: Tx, question: Question, spent: Spent) -> None:
    """What it cost takes the place of what was reserved."""
    change = Spent(spent.calls - 1, spent.tokens_in, spent.tokens_out, spent.cost_micro - question.cost_micro)
    await _count(tx, question.subject.tenant_id, question.day, change)


async def finish(tx: Tx, question: Question, review: Review, model: str, spent: Spent, now_ms: int) -> None:
    """Keeps the review. Nothing but its own row, the budget and the feed is touched."""
    subject = question.subject
    await _settle(tx, question, spent)
    await tx.run(
        """
        UPDATE llm_reviews SET label = :label, memo = :memo, model = :model, tokens_in = :tokens_in,
          tokens_out = :tokens_out, cost_micro = :cost_micro, created_at = :now_ms
        WHERE event_id = :event_id AND review_uuid = :review_uuid""",
        label=review.label,
        memo=review.memo,
        model=model[:128],
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        cost_micro=spent.cost_micro,
        now_ms=now_ms,
        event_id=subject.event_id,
        review_uuid=question.delivery_uuid,
    )
    await search_texts.put_memo(tx, subject.tenant_id, subject.event_id, review.memo)
    tx.changed(
        tenant_id=subject.tenant_id,
        kind="event",
        at_ms=now_ms,
        site_id=subject.site_id,
        camera_key=subject.camera_key,
        object_id=subject.event_id,
    )


async def give_back(tx: Tx, question: Question, spent: Spent) -> None:
    """After a question without an answer: the event is free again, and only what was billed stays counted."""
    await _settle(tx, question, spent)
    await tx.run(
        "DELETE FROM llm_reviews WHERE event_id = :event_id AND review_uuid = :review_uuid AND label = ''",
        event_id=question.subject.event_id,
        review_uuid=question.delivery_uuid,
    )


async def of_event(tx: Scoped, event_uuid: str) -> ShownReview | None:
    """None where there is none, and for whoever may not investigate."""
    if not tx.principal.may(Permission.INVESTIGATE):
        return None
    row = await tx.one(
        """
        SELECT r.label, r.memo, r.provider, r.model, r.created_at
        FROM llm_reviews r JOIN events e ON e.event_id = r.event_id
        WHERE r.tenant_id = :tenant_id AND e.event_uuid = :event_uuid AND r.label <> ''
          AND IN_REACH(e)""",
        event_uuid=event_uuid,
    )
    if row is None:
        return None
    return ShownReview(row["label"], row["memo"], row["provider"], row["model"], row["created_at"])


async def spent_on(tx: Tx, tenant_id: int, day: str) -> Spent:
    row = await tx.one(
        "SELECT calls, tokens_in, tokens_out, cost_micro FROM llm_days WHERE tenant_id = :tenant_id AND day = :day",
        tenant_id=tenant_id,
        day=day,
    )
    if row is None:
        return Spent(0)
    return Spent(row["calls"], row["tokens_in"], row["tokens_out"], row["cost_micro"])


_TAKE_OVER = """
UPDATE llm_reviews SET review_uuid = :review_uuid, frame_id = :frame_id, provider = :provider, model = :model,
  created_at = :now_ms WHERE event_id = :event_id AND label = ''"""
_INSERT = """
INSERT INTO llm_reviews (review_uuid, tenant_id, camera_key, event_id, frame_id, provider, model, label, memo,
  created_at)
VALUES (:review_uuid, :tenant_id, :camera_key, :event_id, :frame_id, :provider, :model, '', '', :now_ms)
RETURNING review_id"""
_ENSURE_DAY = Sql(
    "INSERT INTO llm_days (tenant_id, day) VALUES (:tenant_id, :day) ON CONFLICT DO NOTHING",
    mariadb="INSERT INTO llm_days (tenant_id, day) VALUES (:tenant_id, :day) ON DUPLICATE KEY UPDATE calls = calls",
)
