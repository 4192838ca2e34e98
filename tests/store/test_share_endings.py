"""Shares of what a case takes and gives up, on each database: whatever way it goes, none comes alive again."""

from collections.abc import Awaitable, Callable

import pytest

from camserver.domain.cases import CaseState, ItemKind
from camserver.domain.shares import Sharing
from camserver.store import Store, shares
from camserver.store.shares import NewShare
from tests.store.casework import Evidence, run
from tests.store.people_rows import audit_rows
from tests.store.scenery import NOW_MS

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def share(evidence: Evidence, kind: ItemKind, key: int, name: str, expires_at: int | None = None) -> None:
    uuid = await evidence.uuid(kind, key)
    new = NewShare(kind.value, uuid, "", expires_at, name)
    await evidence.store.as_(evidence.somebody).write(shares.add, new, Sharing.MANAGERS, "", NOW_MS)


async def is_open(evidence: Evidence, name: str) -> bool:
    return await evidence.store.read(shares.opened, name, Sharing.MANAGERS, "", NOW_MS) is not None


async def listed(evidence: Evidence) -> set[str]:
    found = await evidence.rows("SELECT token_hash FROM shares WHERE revoked_at IS NULL")
    return {row["token_hash"] for row in found}


async def revoked(evidence: Evidence) -> list[tuple[str, object]]:
    """Who revoked a share, and what it showed."""
    rows = await evidence.store.read(audit_rows)
    return [(row[2], row[4]) for row in rows if row[1] == "share_revoked"]


async def end_by_closing(evidence: Evidence, case: str, kind: ItemKind, key: int) -> None:
    await evidence.change(case, CaseState.CLOSED)


async def end_by_taking_out(evidence: Evidence, case: str, kind: ItemKind, key: int) -> None:
    await evidence.take_out(case, kind, key)


@pytest.mark.parametrize("end", [end_by_closing, end_by_taking_out])
@pytest.mark.parametrize(
    ("kind", "ended"),
    [
        (ItemKind.EVENT, {"event", "best", "second"}),
        (ItemKind.CLIP, {"event", "best", "second"}),
        (ItemKind.FRAME, {"second"}),
    ],
)
async def test_what_a_case_takes_is_shared_no_more_neither_then_nor_afterwards(
    fresh_store: Store,
    kind: ItemKind,
    ended: set[str],
    end: Callable[[Evidence, str, ItemKind, int], Awaitable[None]],
) -> None:
    evidence = await Evidence.gather(fresh_store)
    event = await evidence.event(NOW_MS, frames=2)
    await evidence.clip(event, NOW_MS)
    best, second = sorted(await evidence.classes())
    other = await evidence.event(NOW_MS + 60_000)
    await share(evidence, ItemKind.EVENT, event, "event")
    await share(evidence, ItemKind.FRAME, best, "best")
    await share(evidence, ItemKind.FRAME, second, "second")
    await share(evidence, ItemKind.EVENT, other, "other")
    await share(evidence, ItemKind.EVENT, event, "over", expires_at=NOW_MS - 1)
    everyone = {"event", "best", "second", "other", "over"}
    key = second if kind is ItemKind.FRAME else event
    case = await evidence.case((kind, key))
    assert await listed(evidence) == everyone - ended
    by_case = [details for who, details in await revoked(evidence) if who == "local_admin_token"]
    assert len(by_case) == len(ended)
    assert all(isinstance(details, dict) and details["by"] == "case" for details in by_case)
    await end(evidence, case, kind, key)
    assert set((await evidence.classes()).values()) == {"normal"}
    # The event's left out its frame of the case, and would show that from now on.
    assert await listed(evidence) == {"other", "best", "over"} - ended
    assert [name for name in sorted(everyone) if await is_open(evidence, name)] == sorted({"other", "best"} - ended)


async def test_shares_that_were_made_while_a_case_was_closed_end_when_it_is_reopened(fresh_store: Store) -> None:
    evidence = await Evidence.gather(fresh_store)
    event, frame = await evidence.event(NOW_MS), await evidence.frame(NOW_MS + 5_000)
    case = await evidence.case((ItemKind.EVENT, event), (ItemKind.FRAME, frame))
    await evidence.change(case, CaseState.CLOSED)
    await share(evidence, ItemKind.EVENT, event, "event")
    await share(evidence, ItemKind.FRAME, frame, "frame")
    await evidence.change(case, CaseState.OPEN)
    assert await listed(evidence) == set()
    # It follows from the case, which somebody else may have reopened than whoever happens to bring its items in step.
    assert [who for who, _ in await revoked(evidence)] == ["", ""]


async def test_what_a_case_took_without_a_word_is_met_when_it_gives_that_up(fresh_store: Store) -> None:
    """A frame that joined the case's event later, and shares of before this was looked at."""
    evidence = await Evidence.gather(fresh_store)
    event, frame = await evidence.event(NOW_MS), await evidence.frame(NOW_MS + 5_000)
    case = await evidence.case((ItemKind.EVENT, event))
    await share(evidence, ItemKind.FRAME, frame, "joined")
    joined = "UPDATE frames SET event_id = :event, retention_class = 'case' WHERE frame_id = :frame"
    await fresh_store.write(run, joined, {"event": event, "frame": frame})
    await fresh_store.write(
        run, "UPDATE events SET last_seen_at = :at WHERE event_id = :event", {"at": NOW_MS + 5_000, "event": event}
    )
    assert not await is_open(evidence, "joined")
    await evidence.take_out(case, ItemKind.EVENT, event)
    assert set((await evidence.classes()).values()) == {"normal"}
    assert not await is_open(evidence, "joined")
    assert await listed(evidence) == set()
