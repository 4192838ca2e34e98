"""Bells between the parts of a process."""

import asyncio

from camserver.base.bells import Bell
from tests.rig.clock import ManualClock
from tests.rig.polling import until

LONG_SEC = 1000.0


async def test_a_ring_ends_the_wait() -> None:
    bell = Bell()
    waiting = asyncio.ensure_future(bell.wait(ManualClock(), LONG_SEC))
    await asyncio.sleep(0)
    bell.ring()
    assert await waiting


async def test_what_rang_before_is_heard_once() -> None:
    bell, clock = Bell(), ManualClock()
    bell.ring()
    bell.ring()
    assert bell.is_rung
    assert await bell.wait(clock, LONG_SEC)
    assert not bell.is_rung
    waiting = asyncio.ensure_future(bell.wait(clock, LONG_SEC))
    await until(lambda: clock.sleeping > 0, "somebody sleeps")
    await clock.advance(round(LONG_SEC * 1000))
    assert not await waiting
