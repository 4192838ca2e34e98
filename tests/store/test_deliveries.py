"""The outbox: fair claims, fences, endings that are whole or nothing, and what sweeps bring back."""

import asyncio
import json
from typing import Any

import pytest
import uuid_utils

from camserver.domain.deliveries import (
    Along,
    Child,
    Claimed,
    DeliveriesPolicy,
    Done,
    FanOut,
    Later,
    Suppressed,
)
from camserver.domain.facts import DeliveryKind
from camserver.domain.jobs import Dead, Delay
from camserver.store import Dialect, Sql, Store, Tx
from camserver.store.deliveries import (
    _DUE,
    _RECEIVERS,
    RECEIVERS_MAX,
    NewDelivery,
    Wanted,
    _heads_of_kind,
    _heads_of_receiver,
    add,
    claim,
    count_by_status,
    give_back,
    note,
    promote_delayed,
    release,
    renew,
)
from camserver.store.delivery_endings import Failed, Settled, return_expired, settle
from tests.store.scenery import NOW_MS, furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")

POLICY = DeliveriesPolicy()
KINDS = ((DeliveryKind.NOTIFY, 16), (DeliveryKind.ARCHIVE, 16))
EVERYTHING = Wanted(total=1000, kinds=KINDS, each_receiver=1000)


def message(receiver_id: int | None = None, **changes: Any) -> NewDelivery:
    kind = DeliveryKind.NOTIFY if receiver_id is None else DeliveryKind.MESSAGE
    values: dict[str, Any] = {
        "delivery_uuid": str(uuid_utils.uuid7()),
        "tenant_id": 1,
        "kind": kind,
        "reason": "continues",
        "request": {"text": "人"},
        "receiver_id": receiver_id,
    }
    return NewDelivery(**{**values, **changes})


async def queue(store: Store, *new: NewDelivery) -> None:
    await store.write(add, new, NOW_MS)


async def take(store: Store, wanted: Wanted = EVERYTHING, token: str = "t", by: str = "d") -> tuple[Claimed, ...]:
    return (await store.write(claim, by, token, wanted, NOW_MS + 60_000)).deliveries


async def rows(store: Store, names: str) -> list[tuple[Any, ...]]:
    return await store.read(_rows, names)


async def _rows(tx: Tx, names: str) -> list[tuple[Any, ...]]:
    found = await tx.all(f"SELECT {names} FROM deliveries ORDER BY delivery_id")
    return [tuple(row[name.strip()] for name in names.split(",")) for row in found]


async def end(store: Store, claimed: Claimed, ending: Any, now_ms: int = NOW_MS) -> bool:
    (kept,) = await store.write(settle, (Settled(claimed.delivery_id, claimed.token, ending),), now_ms)
    return kept


async def write_reason(tx: Tx, delivery_id: int, reason: str) -> None:
    await tx.run(
        "UPDATE deliveries SET reason = :reason WHERE delivery_id = :delivery_id",
        delivery_id=delivery_id,
        reason=reason,
    )


async def fail_on_purpose(tx: Tx) -> None:
    raise ValueError("on purpose")


# Claiming


async def test_a_claim_has_everything_its_handler_needs(fresh_store: Store) -> None:
    new = message(7, site_id=2, camera_key=3, frame_id=4, event_id=5, incident_id=6, parent_id=8)
    await queue(fresh_store, new)
    (found,) = await take(fresh_store)
    assert found == Claimed(
        delivery_id=found.delivery_id,
        delivery_uuid=new.delivery_uuid,
        token="t",
        tenant_id=1,
        site_id=2,
        camera_key=3,
        kind=DeliveryKind.MESSAGE,
        reason="continues",
        frame_id=4,
        event_id=5,
        incident_id=6,
        receiver_id=7,
        parent_id=8,
        attempt=1,
        created_at=NOW_MS,
        request={"text": "人"},
        result={},
    )
    assert await take(fresh_store, token="other") == ()


async def test_a_long_queue_of_one_receiver_hides_nobody(fresh_store: Store) -> None:
    await queue(fresh_store, *[message(1) for _ in range(50)], message(2), message(3), message())
    found = await take(fresh_store, Wanted(total=8, kinds=KINDS, each_receiver=8))
    assert len(found) <= 8
    assert {one.receiver_id for one in found} == {None, 1, 2, 3}


async def test_a_receiver_gets_as_many_as_it_may(fresh_store: Store) -> None:
    await queue(fresh_store, *[message(receiver) for receiver in (1, 1, 1, 2, 2, 2, 3, 3, 3)])
    wanted = Wanted(total=100, kinds=(), each_receiver=2, receivers=((1, 0), (2, 1)))
    found = [one.receiver_id for one in await take(fresh_store, wanted)]
    assert sorted(found, key=str) == [2, 3, 3]


async def test_kinds_without_a_receiver_have_bounds_of_their_own(fresh_store: Store) -> None:
    archive = [message(kind=DeliveryKind.ARCHIVE) for _ in range(5)]
    await queue(fresh_store, *archive, message(), message(kind=DeliveryKind.LLM_REVIEW))
    found = await take(fresh_store, Wanted(10, ((DeliveryKind.ARCHIVE, 2), (DeliveryKind.NOTIFY, 2)), 10))
    assert [one.kind for one in found] == [DeliveryKind.ARCHIVE, DeliveryKind.ARCHIVE, DeliveryKind.NOTIFY]


async def test_oldest_first_within_a_receiver(fresh_store: Store) -> None:
    await queue(fresh_store, *[message(1) for _ in range(6)])
    first = await take(fresh_store, Wanted(10, (), 3), "a")
    second = await take(fresh_store, Wanted(10, (), 3), "b")
    ids = [one.delivery_id for one in (*first, *second)]
    assert ids == sorted(ids)
    assert len(ids) == 6


async def test_the_round_reaches_every_receiver(fresh_store: Store) -> None:
    receivers = range(1, 2 * RECEIVERS_MAX + 6)
    await queue(fresh_store, *[message(receiver) for receiver in receivers for _ in range(3)])
    seen: set[int | None] = set()
    after = 0
    for turn in range(4):
        found = await fresh_store.write(claim, "d", f"t{turn}", Wanted(1000, (), 1, (), after), NOW_MS)
        after = found.after_receiver
        seen |= {one.receiver_id for one in found.deliveries}
    assert seen == set(receivers)


async def test_two_dispatchers_never_get_the_same(fresh_pair: tuple[Store, Store]) -> None:
    await queue(fresh_pair[0], *[message(receiver) for receiver in range(1, 11) for _ in range(10)])
    claims = await asyncio.gather(
        *(
            store.write(claim, f"d{number}", f"t{number}-{turn}", Wanted(15, KINDS, 5), NOW_MS)
            for number, store in enumerate(fresh_pair)
            for turn in range(4)
        )
    )
    ids = [one.delivery_id for found in claims for one in found.deliveries]
    assert len(ids) == len(set(ids))
    assert ids


# Endings


async def test_done_keeps_its_result(fresh_store: Store) -> None:
    await queue(fresh_store, message(1))
    (found,) = await take(fresh_store)
    assert await end(fresh_store, found, Done({"status": 204}, (Along(write_reason, (found.delivery_id, "along")),)))
    ((status, result, finished_at, reason, token),) = await rows(
        fresh_store, "status, result, finished_at, reason, locked_token"
    )
    assert (status, json.loads(result), finished_at, reason, token) == (
        "done",
        {"status": 204},
        NOW_MS,
        "along",
        None,
    )


NESTED: Any = {}
for _ in range(100):
    NESTED = {"in": NESTED}
UNSTORABLE = (
    {"ts": "half \ud800"},
    {"ts": "nul \0"},
    {"\0": 1},
    {"ts": float("nan")},
    {"ts": [1, {"deep": float("inf")}]},
    {"ts": 10**40},
    {"ts": "x" * 300_000},
    {"ts": object()},
    NESTED,
)


async def test_what_was_done_is_done_whatever_its_receiver_said(fresh_store: Store) -> None:
    """A result that not every database takes is left out: else it would be sent again and again."""
    await queue(fresh_store, *(message() for _ in UNSTORABLE))
    found = await take(fresh_store)
    assert len(found) == len(UNSTORABLE)
    settled = tuple(
        Settled(one.delivery_id, one.token, Done(result)) for one, result in zip(found, UNSTORABLE, strict=True)
    )
    assert all(await fresh_store.write(settle, settled, NOW_MS))
    assert set(await rows(fresh_store, "status, result")) == {("done", "{}")}


async def test_what_failed_is_written_down_whatever_was_said(fresh_store: Store) -> None:
    await furnish(fresh_store)
    await queue(fresh_store, message(), message(), message(), message())
    first, second, third, fourth = await take(fresh_store)
    said = "nul \0 and half \udfff"
    assert await end(fresh_store, first, Failed(Delay(NOW_MS, refund=False), said, {"ts": "\0"}))
    assert await end(fresh_store, second, Failed(Dead("refused"), said))
    assert await end(fresh_store, third, Suppressed(said))
    assert await end(fresh_store, fourth, Later(NOW_MS, said))
    for (error,) in await rows(fresh_store, "last_error"):
        assert error.endswith("nul   and half  ")


async def test_who_lost_the_fence_writes_nothing(fresh_store: Store) -> None:
    await queue(fresh_store, message(1))
    (found,) = await take(fresh_store)
    await fresh_store.write(release, "d")
    (again,) = await take(fresh_store, token="other")
    late = Done({"late": 1}, (Along(write_reason, (found.delivery_id, "late")),))
    assert not await end(fresh_store, found, late)
    assert not await fresh_store.write(note, found.delivery_id, found.token, {"late": 1})
    assert await rows(fresh_store, "status, result, reason") == [("running", None, "continues")]
    assert await end(fresh_store, again, Done())


async def test_what_goes_along_is_written_with_the_end_or_not_at_all(fresh_store: Store) -> None:
    await queue(fresh_store, message(1))
    (found,) = await take(fresh_store)
    with pytest.raises(Exception, match="on purpose"):
        await end(fresh_store, found, Done({}, (Along(fail_on_purpose),)))
    assert await rows(fresh_store, "status") == [("running",)]


async def test_a_fan_out_is_one_transaction_and_a_repeat_adds_nothing(fresh_store: Store) -> None:
    parent = message(site_id=2, camera_key=3, frame_id=4, event_id=5, incident_id=6)
    await queue(fresh_store, parent)
    children = tuple(Child(DeliveryKind.MESSAGE, receiver, {"n": receiver}) for receiver in (1, 2))
    (found,) = await take(fresh_store)
    assert await end(fresh_store, found, FanOut(children))
    await fresh_store.write(_queue_again, found.delivery_id)
    (again,) = await take(fresh_store, Wanted(10, KINDS, 0), "again")
    assert await end(fresh_store, again, FanOut((*children, Child(DeliveryKind.MESSAGE, 9))))
    made = await rows(
        fresh_store,
        "status, kind, receiver_id, parent_id, site_id, camera_key, frame_id, event_id, incident_id, reason",
    )
    rest = (found.delivery_id, 2, 3, 4, 5, 6, "continues")
    assert made == [
        ("done", "notify", None, None, *rest[1:]),
        *[("queued", "message", receiver, *rest) for receiver in (1, 2, 9)],
    ]


async def _queue_again(tx: Tx, delivery_id: int) -> None:
    await tx.run("UPDATE deliveries SET status = 'queued' WHERE delivery_id = :delivery_id", delivery_id=delivery_id)


async def test_what_may_exist_once_is_added_once(fresh_store: Store) -> None:
    for _ in range(2):
        await queue(fresh_store, message(once_key="summary:1"), message())
    assert await fresh_store.read(count_by_status) == {"queued": 3}


async def test_a_failure_is_put_off_and_its_progress_kept(fresh_store: Store) -> None:
    await queue(fresh_store, message(1))
    (found,) = await take(fresh_store)
    await fresh_store.write(note, found.delivery_id, found.token, {"session": "a"})
    assert await end(fresh_store, found, Failed(Delay(NOW_MS + 500, refund=True), "away"))
    assert await rows(fresh_store, "status, attempt, available_at, last_error") == [
        ("delayed", 0, NOW_MS + 500, "away")
    ]
    assert await fresh_store.write(promote_delayed, NOW_MS + 499) == 0
    assert await fresh_store.write(promote_delayed, NOW_MS + 500) == 1
    (again,) = await take(fresh_store)
    assert again.result == {"session": "a"}
    assert await end(fresh_store, again, Failed(Delay(NOW_MS, refund=False), "500", {"session": "b"}))
    assert [(attempt, json.loads(result)) for attempt, result in await rows(fresh_store, "attempt, result")] == [
        (1, {"session": "b"})
    ]


async def test_dead_suppressed_and_later(fresh_store: Store) -> None:
    tenant_id = (await furnish(fresh_store)).tenant_id
    await queue(fresh_store, *[message(1, tenant_id=tenant_id) for _ in range(3)])
    dead, held_back, later = await take(fresh_store)
    assert await end(fresh_store, dead, Failed(Dead("refused"), "400: no"))
    assert await end(fresh_store, held_back, Suppressed("a cooldown"))
    assert await end(fresh_store, later, Later(NOW_MS + 9, "not now"))
    assert await rows(fresh_store, "status, last_error, attempt, finished_at") == [
        ("dead", "refused: 400: no", 1, NOW_MS),
        ("suppressed", "a cooldown", 1, NOW_MS),
        ("delayed", "not now", 0, None),
    ]


async def test_a_batch_writes_what_is_held_and_leaves_the_rest(fresh_store: Store) -> None:
    await queue(fresh_store, message(1), message(1))
    first, second = await take(fresh_store)
    batch = (
        Settled(first.delivery_id, first.token, Done()),
        Settled(second.delivery_id, "stale", Done()),
    )
    assert await fresh_store.write(settle, batch, NOW_MS) == (True, False)
    assert await rows(fresh_store, "status") == [("done",), ("running",)]


# Keeping and returning


async def test_renewing_tells_what_is_still_held(fresh_store: Store) -> None:
    await queue(fresh_store, message(1), message(1))
    first, second = await take(fresh_store)
    await end(fresh_store, first, Done())
    ids = (first.delivery_id, second.delivery_id)
    assert await fresh_store.write(renew, "d", ids, NOW_MS + 99) == {second.delivery_id}
    assert await fresh_store.write(renew, "somebody else", ids, NOW_MS + 99) == frozenset()
    assert (await rows(fresh_store, "locked_until"))[1] == (NOW_MS + 99,)


async def test_what_was_not_begun_is_given_back_unattempted(fresh_store: Store) -> None:
    await queue(fresh_store, message(1), message(1))
    first, second = await take(fresh_store)
    await fresh_store.write(give_back, ((first.delivery_id, first.token), (second.delivery_id, "stale")))
    assert await rows(fresh_store, "status, attempt") == [("queued", 0), ("running", 1)]


async def test_locks_that_ran_out_are_returned_and_count(fresh_store: Store) -> None:
    await queue(fresh_store, message(1, tenant_id=(await furnish(fresh_store)).tenant_id))
    for attempt in range(1, POLICY.max_attempt + 1):
        (found,) = await take(fresh_store)
        assert found.attempt == attempt
        assert await fresh_store.write(return_expired, NOW_MS + 60_000, POLICY, 0.5) == 0
        assert await fresh_store.write(return_expired, NOW_MS + 60_001, POLICY, 0.5) == 1
        await fresh_store.write(promote_delayed, NOW_MS + 10**9)
    ((status, error),) = await rows(fresh_store, "status, last_error")
    assert status == "dead"
    assert "attempt 12 of 12" in error


# Plans


async def plan(tx: Tx, sql: str | Sql, params: dict[str, object]) -> str:
    sql = sql if isinstance(sql, str) else sql.on(tx.dialect)
    word = "EXPLAIN QUERY PLAN" if tx.dialect is Dialect.SQLITE else "EXPLAIN"
    found: Any = await tx.all(f"{word} {sql.replace(' FOR UPDATE SKIP LOCKED', '')}", **params)
    return "\n".join(str(dict(row)) for row in found)


async def analyze(tx: Tx) -> None:
    await tx.run("ANALYZE TABLE deliveries" if tx.dialect is Dialect.MARIADB else "ANALYZE deliveries")


@pytest.mark.parametrize(
    ("sql", "params", "index"),
    [
        (_RECEIVERS, {"after": 0}, "ix_deliveries_receiver"),
        (_heads_of_receiver(4), {"receiver_id": 1}, "ix_deliveries_receiver"),
        (_heads_of_kind(4), {"kind": "notify"}, "ix_deliveries_kind"),
        (_DUE, {"now_ms": NOW_MS}, "ix_deliveries_status_available_at"),
    ],
    ids=["receivers", "of receiver", "of kind", "due"],
)
async def test_claims_read_an_index_however_long_the_queues_are(
    fresh_store: Store, sql: str | Sql, params: dict[str, object], index: str
) -> None:
    await queue(fresh_store, *[message(receiver) for receiver in (1, 2, 3, None) for _ in range(800)])
    await fresh_store.write(analyze)
    shown = await fresh_store.read(plan, sql, params)
    assert index in shown, shown
    assert "SCAN deliveries" not in shown.replace(f"USING COVERING INDEX {index}", ""), shown
