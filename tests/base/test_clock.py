import asyncio

import pytest

from camserver.base import clock as clocks
from camserver.base.clock import SYNC_EVERY_SEC, StoreClock, boot_id, follow, sync
from camserver.base.errors import StoreUnavailable


class Boot:
    """Stands for the machine's boot-time clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ms = 1_000_000
        monkeypatch.setattr(clocks, "boot_time_ms", lambda: self.ms)


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    return Boot(monkeypatch)


def test_until_synced_it_is_anchored_at_the_wall_clock_of_its_making(
    boot: Boot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "wall_time_ms", lambda: 50_000_000)
    clock = StoreClock()
    monkeypatch.setattr(clocks, "wall_time_ms", lambda: 99_000_000)
    boot.ms += 10
    assert (clock.now_ms(), clock.synced) == (50_000_010, False)


def test_an_observation_counts_from_the_middle_of_the_round_trip(boot: Boot) -> None:
    clock = StoreClock()
    clock.observe(7_000_000, sent_boot_ms=1_000_000, received_boot_ms=1_000_100)
    assert clock.at_boot_ms(1_000_050) == 7_000_000
    assert clock.synced


async def test_sync_takes_the_remote_time(boot: Boot) -> None:
    clock = StoreClock()

    async def ask() -> int:
        boot.ms += 40
        return 9_000_000

    assert await sync(clock, ask)
    assert clock.now_ms() == 9_000_020


async def test_without_a_remote_time_the_clock_stays(boot: Boot) -> None:
    clock = StoreClock()
    before = clock.now_ms()

    async def ask() -> None:
        return None

    assert not await sync(clock, ask)
    assert (clock.now_ms(), clock.synced) == (before, False)


async def test_a_slow_answer_is_used_only_when_there_is_nothing_better(boot: Boot) -> None:
    clock = StoreClock()

    async def slow() -> int:
        boot.ms += 10_000
        return 9_000_000

    assert await sync(clock, slow)
    first = clock.now_ms()
    assert first == 9_005_000
    assert await sync(clock, slow)
    assert clock.now_ms() == first + 10_000


async def test_follow_asks_every_30_s_and_survives_an_outage(boot: Boot, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StoreClock()
    answers: list[int | Exception] = [1_000, StoreUnavailable("away"), 5_000]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not answers:
            raise asyncio.CancelledError

    async def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(clock, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await follow(clock, ask)
    assert clock.now_ms() == 5_000
    assert slept == [SYNC_EVERY_SEC] * 4


def test_the_boot_is_named_the_same_twice() -> None:
    assert boot_id() == boot_id()
    assert len(boot_id()) == 36


def test_the_boot_clock_does_not_go_back() -> None:
    readings = [clocks.boot_time_ms() for _ in range(100)]
    assert readings == sorted(readings)
