"""Cooldowns, caps and reservations, on all databases and with two dispatchers at once."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from camserver.domain.notices import BACK, CONTINUES, INCIDENT_OPENED, LATE_INCIDENT, SEVERITY_ROSE, NotifyPolicy
from camserver.domain.routing import HOUR_MS, Verdict
from camserver.store import Store, Tx, cooldowns
from camserver.store.cooldowns import RESERVED_MS, Busy, Held, Reserved, Sending

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW_MS = 1_800_000_000_000 - 1_800_000_000_000 % HOUR_MS
SEC = 1000
POLICY = NotifyPolicy()
SENDING = Sending(tenant_id=1, receiver_id=2, camera_key=3, scope="human", reason=INCIDENT_OPENED, hourly_cap=None)


async def reserve(store: Store, now_ms: int = NOW_MS, **changes: Any) -> Reserved | Busy | Held:
    return await store.write(cooldowns.reserve, replace(SENDING, **changes), now_ms)


async def send(store: Store, now_ms: int = NOW_MS, **changes: Any) -> Reserved:
    reserved = await reserve(store, now_ms, **changes)
    assert isinstance(reserved, Reserved), reserved
    await store.write(cooldowns.sent, reserved, POLICY, now_ms)
    return reserved


async def hold_back(store: Store, count: int = 1, now_ms: int = NOW_MS) -> None:
    for _ in range(count):
        await store.write(cooldowns.held_back, 1, 2, 3, now_ms)


async def hours(tx: Tx) -> list[tuple[int, int]]:
    rows = await tx.all("SELECT sent, suppressed FROM receiver_hours ORDER BY hour_at")
    return [(row["sent"], row["suppressed"]) for row in rows]


async def test_a_sent_message_starts_both_cooldowns(fresh_store: Store) -> None:
    await send(fresh_store)
    for after_sec, scope, verdict in (
        (59, "human", Held(Verdict.COOLDOWN, NOW_MS + 300 * SEC)),
        (59, "vehicle", Held(Verdict.COOLDOWN, NOW_MS + 60 * SEC)),
        (299, "human", Held(Verdict.COOLDOWN, NOW_MS + 300 * SEC)),
    ):
        assert await reserve(fresh_store, NOW_MS + after_sec * SEC, scope=scope) == verdict
    assert isinstance(await reserve(fresh_store, NOW_MS + 60 * SEC, scope="vehicle"), Reserved)


async def test_the_same_again_after_its_cooldown(fresh_store: Store) -> None:
    await send(fresh_store)
    assert isinstance(await reserve(fresh_store, NOW_MS + 300 * SEC), Reserved)


async def test_cooldowns_are_per_receiver_and_camera(fresh_store: Store) -> None:
    await send(fresh_store)
    await send(fresh_store, receiver_id=9)
    await send(fresh_store, camera_key=9)


@pytest.mark.parametrize("reason", [SEVERITY_ROSE, LATE_INCIDENT, BACK])
async def test_what_does_not_wait_goes_through(fresh_store: Store, reason: str) -> None:
    await send(fresh_store)
    await send(fresh_store, NOW_MS + 1, reason=reason)


@pytest.mark.parametrize("reason", [LATE_INCIDENT, BACK])
async def test_what_is_past_starts_no_cooldown(fresh_store: Store, reason: str) -> None:
    await send(fresh_store, reason=reason)
    await send(fresh_store, NOW_MS + 1)


async def test_an_attempt_that_fails_starts_nothing(fresh_store: Store) -> None:
    reserved = await reserve(fresh_store, hourly_cap=1)
    assert isinstance(reserved, Reserved)
    await fresh_store.write(cooldowns.given_up, reserved)
    assert await fresh_store.read(hours) == [(0, 0)]
    assert isinstance(await reserve(fresh_store, NOW_MS + 1, hourly_cap=1), Reserved)


async def test_while_one_sends_the_other_waits(fresh_store: Store) -> None:
    first = await reserve(fresh_store)
    assert isinstance(first, Reserved)
    assert await reserve(fresh_store, NOW_MS + 1) == Busy(NOW_MS + RESERVED_MS)
    assert isinstance(await reserve(fresh_store, NOW_MS + 1, camera_key=4), Reserved), "another camera"


async def test_a_holder_that_died_lets_go_by_itself(fresh_store: Store) -> None:
    first = await reserve(fresh_store)
    assert isinstance(first, Reserved)
    later = NOW_MS + RESERVED_MS
    second = await reserve(fresh_store, later)
    assert isinstance(second, Reserved)
    await fresh_store.write(cooldowns.given_up, first)
    assert isinstance(await reserve(fresh_store, later + 1), Busy), "a former holder ends no other reservation"


async def test_a_reservation_that_is_taken_over_gives_the_hours_place_back(fresh_store: Store) -> None:
    """Else dispatchers that die would use up a receiver's hour without having sent anything."""
    dead = await reserve(fresh_store, hourly_cap=1)
    assert isinstance(dead, Reserved)
    later = NOW_MS + cooldowns.RESERVED_MS
    taken = await reserve(fresh_store, later, hourly_cap=1)
    assert isinstance(taken, Reserved)
    assert await fresh_store.read(hours) == [(1, 0)]
    # The first holder was only slow: what it says now changes nothing about the second one's place.
    await fresh_store.write(cooldowns.given_up, dead)
    assert await fresh_store.read(hours) == [(1, 0)]
    assert isinstance(await reserve(fresh_store, later, hourly_cap=9), Busy)
    await fresh_store.write(cooldowns.sent, taken, POLICY, later)
    assert await fresh_store.read(hours) == [(1, 0)]
    await fresh_store.write(cooldowns.sent, dead, POLICY, later)
    assert await fresh_store.read(hours) == [(2, 0)], "it was sent after all"


async def test_what_is_held_back_is_told_by_the_next_message(fresh_store: Store) -> None:
    await hold_back(fresh_store, 3)
    reserved = await reserve(fresh_store)
    assert isinstance(reserved, Reserved)
    assert reserved.held_back == 3
    await hold_back(fresh_store)
    await fresh_store.write(cooldowns.sent, reserved, POLICY, NOW_MS)
    again = await reserve(fresh_store, NOW_MS + 300 * SEC)
    assert isinstance(again, Reserved)
    assert again.held_back == 1, "the one that came while it was sent"


async def test_what_is_held_back_survives_a_failed_attempt(fresh_store: Store) -> None:
    await hold_back(fresh_store, 2)
    reserved = await reserve(fresh_store)
    assert isinstance(reserved, Reserved)
    await fresh_store.write(cooldowns.given_up, reserved)
    assert (await send(fresh_store, NOW_MS + 1)).held_back == 2
    assert (await send(fresh_store, NOW_MS + 301 * SEC)).held_back == 0


async def test_holding_back_starts_no_cooldown(fresh_store: Store) -> None:
    await hold_back(fresh_store)
    assert isinstance(await reserve(fresh_store), Reserved)


async def test_an_hour_has_room_for_so_many(fresh_store: Store) -> None:
    first = await send(fresh_store, hourly_cap=2, camera_key=1)
    second = await send(fresh_store, hourly_cap=2, camera_key=2)
    assert (first.is_last_of_hour, second.is_last_of_hour) == (False, True)
    assert await reserve(fresh_store, hourly_cap=2, camera_key=3) == Held(Verdict.CAP, NOW_MS + HOUR_MS)
    assert isinstance(await reserve(fresh_store, NOW_MS + HOUR_MS, hourly_cap=2, camera_key=3), Reserved)
    assert await fresh_store.read(hours) == [(2, 0), (1, 0)]


async def test_hours_long_past_are_forgotten(fresh_store: Store) -> None:
    await send(fresh_store)
    await send(fresh_store, NOW_MS + cooldowns.HOURS_KEPT * HOUR_MS)
    assert len(await fresh_store.read(hours)) == 2
    await send(fresh_store, NOW_MS + (cooldowns.HOURS_KEPT + 1) * HOUR_MS)
    assert len(await fresh_store.read(hours)) == 2


async def test_two_dispatchers_never_both_send(fresh_pair: tuple[Store, Store]) -> None:
    """Whoever sends reserves first; of many at once exactly one may."""
    answers = await asyncio.gather(*(reserve(fresh_pair[number % 2], reason=CONTINUES) for number in range(12)))
    assert sorted(type(one).__name__ for one in answers) == ["Busy"] * 11 + ["Reserved"]
    (reserved,) = [one for one in answers if isinstance(one, Reserved)]
    await fresh_pair[0].write(cooldowns.sent, reserved, POLICY, NOW_MS)
    assert isinstance(await reserve(fresh_pair[1], NOW_MS + 1, reason=CONTINUES), Held)


async def test_whoever_waits_for_the_other_to_finish_finds_its_cooldown(fresh_pair: tuple[Store, Store]) -> None:
    """The end of one sending and the beginning of the next meet, again and again."""
    for round_number in range(10):
        camera_key = 1000 + round_number
        reserved = await reserve(fresh_pair[0], camera_key=camera_key)
        assert isinstance(reserved, Reserved)
        answers = await asyncio.gather(
            fresh_pair[0].write(cooldowns.sent, reserved, POLICY, NOW_MS),
            *(reserve(fresh_pair[number % 2], NOW_MS + 1, camera_key=camera_key) for number in range(6)),
        )
        assert {type(one) for one in answers[1:]} <= {Busy, Held}


async def test_two_dispatchers_never_pass_the_cap(fresh_pair: tuple[Store, Store]) -> None:
    answers = await asyncio.gather(
        *(reserve(fresh_pair[number % 2], hourly_cap=5, camera_key=100 + number) for number in range(16))
    )
    assert sum(isinstance(one, Reserved) for one in answers) == 5


# Many at once: the same as one after the other


def about(receiver_id: int, **changes: Any) -> tuple[Sending, ...]:
    """Messages of one receiver that meet everything: what is free, taken, cooling, about the past, said twice."""
    cameras = (*range(10, 18), 12, 40)
    reasons = (INCIDENT_OPENED, CONTINUES, LATE_INCIDENT, BACK, SEVERITY_ROSE)
    scopes = ("human", "vehicle", "human")
    return tuple(
        replace(
            SENDING,
            receiver_id=receiver_id,
            camera_key=camera,
            reason=reasons[number % len(reasons)],
            scope=scopes[number % len(scopes)],
            **changes,
        )
        for number, camera in enumerate(cameras)
    )


async def set_the_scene(store: Store, receiver_id: int) -> None:
    """Cameras 10 and 11 cool down, 12 and 13 are reserved, 14's holder died, 15 has something to tell."""
    for camera_key in (10, 11):
        await send(store, receiver_id=receiver_id, camera_key=camera_key)
    for camera_key in (12, 13):
        assert isinstance(
            await reserve(store, NOW_MS + SEC, receiver_id=receiver_id, camera_key=camera_key), Reserved
        )
    dead = await reserve(store, NOW_MS + 2 * SEC - RESERVED_MS, receiver_id=receiver_id, camera_key=14)
    assert isinstance(dead, Reserved)
    for _ in range(2):
        await store.write(cooldowns.held_back, 1, receiver_id, 15, NOW_MS)


async def of_receiver(tx: Tx, receiver_id: int) -> list[tuple[Any, ...]]:
    """Everything that is written about it, without its own name."""
    rows = await tx.all(
        "SELECT camera_key, scope, until, suppressed FROM cooldowns WHERE receiver_id = :receiver_id "
        "ORDER BY camera_key, scope",
        receiver_id=receiver_id,
    )
    hour_rows = await tx.all(
        "SELECT hour_at, sent, suppressed FROM receiver_hours WHERE receiver_id = :receiver_id ORDER BY hour_at",
        receiver_id=receiver_id,
    )
    return [
        *((row["camera_key"], row["scope"], row["until"], row["suppressed"]) for row in rows),
        *((row["hour_at"], row["sent"], row["suppressed"]) for row in hour_rows),
    ]


def unnamed(answer: Reserved | Busy | Held) -> Reserved | Busy | Held:
    if isinstance(answer, Reserved):
        return replace(answer, sending=replace(answer.sending, receiver_id=0))
    return answer


@pytest.mark.parametrize("hourly_cap", [None, 6, 5, 3, 1])
async def test_many_are_reserved_as_one_after_the_other(fresh_store: Store, hourly_cap: int | None) -> None:
    now_ms = NOW_MS + 2 * SEC
    singles, together = about(2, hourly_cap=hourly_cap), about(3, hourly_cap=hourly_cap)
    for receiver_id in (2, 3):
        await set_the_scene(fresh_store, receiver_id)
    one_by_one = [await fresh_store.write(cooldowns.reserve, one, now_ms) for one in singles]
    at_once = await fresh_store.write(cooldowns.reserve_each, together, now_ms)
    assert [unnamed(one) for one in at_once] == [unnamed(one) for one in one_by_one]
    assert await fresh_store.read(of_receiver, 3) == await fresh_store.read(of_receiver, 2)
    assert [type(one) for one in at_once[2:4]] == [Busy, Busy], "the table meets what it says"


async def test_many_receivers_are_reserved_as_one_after_the_other(fresh_store: Store) -> None:
    """Each has a cap and a count of its own, whoever else is in the same transaction."""
    caps = {2: None, 3: 2, 4: 0}
    mixed = [
        one for group in zip(*(about(key, hourly_cap=cap) for key, cap in caps.items()), strict=True) for one in group
    ]
    answers = await fresh_store.write(cooldowns.reserve_each, tuple(mixed), NOW_MS)
    taken = [one.sending.receiver_id for one in answers if isinstance(one, Reserved)]
    assert (taken.count(2), taken.count(3), taken.count(4)) == (9, 2, 0)
    assert [one.is_last_of_hour for one in answers if isinstance(one, Reserved) and one.sending.receiver_id == 3] == [
        False,
        True,
    ]


async def test_many_end_as_one_after_the_other(fresh_store: Store) -> None:
    """Sent, given up and held back; also what was taken over by somebody else meanwhile."""
    later = NOW_MS + RESERVED_MS
    found: dict[int, tuple[list[Reserved], list[Reserved]]] = {}
    for receiver_id in (2, 3):
        for camera_key in (14, 15, 15):
            await fresh_store.write(cooldowns.held_back, 1, receiver_id, camera_key, NOW_MS)
        first = await fresh_store.write(cooldowns.reserve_each, about(receiver_id), NOW_MS)
        second = await fresh_store.write(cooldowns.reserve_each, about(receiver_id)[:3], later)
        found[receiver_id] = (
            [one for one in first if isinstance(one, Reserved)],
            [one for one in second if isinstance(one, Reserved)],
        )
    first, second = found[2]
    for one in (*first[:6], *second[:1]):
        await fresh_store.write(cooldowns.sent, one, POLICY, later)
    for one in (*first[6:], *second[1:]):
        await fresh_store.write(cooldowns.given_up, one)
    for camera_key, now_ms in ((14, later), (50, later), (14, later + HOUR_MS)):
        await fresh_store.write(cooldowns.held_back, 1, 2, camera_key, now_ms)
    first, second = found[3]
    await fresh_store.write(cooldowns.sent_each, tuple((one, POLICY, later) for one in (*first[:6], *second[:1])))
    await fresh_store.write(cooldowns.given_up_each, tuple((one,) for one in (*first[6:], *second[1:])))
    await fresh_store.write(
        cooldowns.held_back_each, ((1, 3, 14, later), (1, 3, 50, later), (1, 3, 14, later + HOUR_MS))
    )
    assert await fresh_store.read(of_receiver, 3) == await fresh_store.read(of_receiver, 2)


async def test_many_of_two_dispatchers_never_both_send_and_never_pass_the_cap(
    fresh_pair: tuple[Store, Store],
) -> None:
    """In whatever order each of them names the same cameras."""
    sendings = [replace(SENDING, camera_key=200 + number, hourly_cap=12) for number in range(20)]
    orders = (sendings, sendings[::-1], sendings[10:] + sendings[:10], sendings[::2] + sendings[1::2])
    answers = await asyncio.gather(
        *(
            fresh_pair[number % 2].write(cooldowns.reserve_each, tuple(order), NOW_MS)
            for number, order in enumerate(orders)
        )
    )
    taken = [one.sending.camera_key for group in answers for one in group if isinstance(one, Reserved)]
    assert len(taken) == len(set(taken)) == 12
    assert [sent for sent, _ in await fresh_pair[0].read(hours)] == [12]
