"""What a language model scored events at, as people read it."""

from dataclasses import dataclass

from camserver.domain.people import Permission
from camserver.store.tx import Scoped

SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class ShownScore:
    category: str
    score: float
    scored_at: int


async def of_event(tx: Scoped, event_uuid: str) -> tuple[ShownScore, ...]:
    """The highest first; none for those who may not investigate, as with a model's other opinions."""
    if not tx.principal.may(Permission.INVESTIGATE):
        return ()
    rows = await tx.all(
        "SELECT v.category, v.score, v.scored_at FROM events e JOIN event_scores v ON v.event_id = e.event_id "
        "WHERE e.tenant_id = :tenant_id AND IN_REACH(e) AND e.event_uuid = :event_uuid "
        f"ORDER BY v.score DESC, v.category LIMIT {SHOWN_MAX}",
        event_uuid=event_uuid,
    )
    return tuple(ShownScore(row["category"], row["score"], row["scored_at"]) for row in rows)
