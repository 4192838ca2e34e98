"""An event with all that its page shows, read at once."""

from dataclasses import dataclass

from camserver.store import clips, event_pages, event_scores, llm_reviews
from camserver.store.event_pages import EventDetail
from camserver.store.tx import Scoped


@dataclass(frozen=True, slots=True)
class EventView:
    event: EventDetail
    clip: clips.ClipDetail | None
    review: llm_reviews.ShownReview | None  # None also for people who may not investigate
    scores: tuple[event_scores.ShownScore, ...]


async def get(tx: Scoped, event_uuid: str) -> EventView:
    row = await event_pages.row_of(tx, event_uuid)
    return EventView(
        await event_pages.detail_of(tx, row),
        await clips.of_event(tx, row.event_id, row.retention_class),
        await llm_reviews.of_event(tx, event_uuid),
        await event_scores.of_event(tx, event_uuid),
    )
