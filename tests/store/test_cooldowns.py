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
