"""How each dispatcher finds each analyzer: written by dispatchers every few seconds, read by people.

For show only: nobody decides by these rows. They are of the installation, not of a tenant.
"""

from dataclasses import dataclass

from camserver.store.tx import Row, Tx

# Rows of a dispatcher that was not heard of for this long are dropped.
FORGOTTEN_MS = 60_000
URL_CHARS_MAX = 255
ERROR_CHARS_MAX = 255


@dataclass(frozen=True, slots=True)
class Seen:
    """One analyzer as one dispatcher sees it."""

    url: str
    state: str  # domain.analyzers.LaneState
    in_flight: int
    concurrency: int  # most questions it gets at once now
    latency_ms: int | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class SeenBy:
    dispatcher: str
    seen: Seen
    seen_at: int


async def report(tx: Tx, dispatcher: str, seen: tuple[Seen, ...], now_ms: int) -> None:
    """Replaces what this dispatcher said before, and drops what others said long ago."""
    await tx.run(
        "DELETE FROM analyzers WHERE dispatcher = :dispatcher OR seen_at < :forgotten_at",
        dispatcher=dispatcher,
        forgotten_at=now_ms - FORGOTTEN_MS,
    )
    await tx.many(
        """
        INSERT INTO analyzers (dispatcher, url, state, in_flight, concurrency, latency_ms, last_error, seen_at)
        VALUES (:dispatcher, :url, :state, :in_flight, :concurrency, :latency_ms, :last_error, :seen_at)""",
        [
            {
                "dispatcher": dispatcher,
                "url": one.url[:URL_CHARS_MAX],
                "state": one.state,
                "in_flight": one.in_flight,
                "concurrency": one.concurrency,
                "latency_ms": one.latency_ms,
                "last_error": None if one.last_error is None else one.last_error[:ERROR_CHARS_MAX],
                "seen_at": now_ms,
            }
            for one in seen
        ],
    )


async def forget(tx: Tx, dispatcher: str) -> None:
    """When a dispatcher stops."""
    await tx.run("DELETE FROM analyzers WHERE dispatcher = :dispatcher", dispatcher=dispatcher)


async def seen(tx: Tx, now_ms: int) -> tuple[SeenBy, ...]:
    """What the dispatchers that live said last."""
    rows = await tx.all(
        "SELECT * FROM analyzers WHERE seen_at >= :since ORDER BY url, dispatcher", since=now_ms - FORGOTTEN_MS
    )
    return tuple(_seen_by(row) for row in rows)


def _seen_by(row: Row) -> SeenBy:
    return SeenBy(
        dispatcher=row["dispatcher"],
        seen=Seen(
            url=row["url"],
            state=row["state"],
            in_flight=row["in_flight"],
            concurrency=row["concurrency"],
            latency_ms=row["latency_ms"],
            last_error=row["last_error"],
        ),
        seen_at=row["seen_at"],
    )
