"""What was fetched from a provider is kept, and so is a failure. The rest is tested with the web service."""

import asyncio

import pytest

from camserver.clients.oidc import PAUSE_MS, Kept
from camserver.domain.oidc import Failure, OidcRefused, refused
from tests.rig.clock import ManualClock


async def test_who_waited_for_a_fetch_that_failed_does_not_wait_for_another(clock: ManualClock) -> None:
    asked = 0

    async def hang() -> str:
        nonlocal asked
        asked += 1
        await clock.sleep(PAUSE_MS / 1000)
        raise refused(Failure.AWAY, "no answer")

    kept = Kept(hang, clock)
    waiting = [asyncio.create_task(kept.get()) for _ in range(4)]
    await clock.until_sleeping()
    await clock.advance(PAUSE_MS)
    ends = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
    assert all(isinstance(end, OidcRefused) for end in ends)
    assert asked == 1
    # Whoever comes within the pause is told at once, and the next one has it tried again.
    await clock.advance(PAUSE_MS - 1)
    with pytest.raises(OidcRefused):
        await kept.get()
    await clock.advance(1)
    again = asyncio.create_task(kept.get())
    await clock.until_sleeping()
    assert asked == 2
    again.cancel()


async def test_what_is_known_is_there_while_it_is_fetched_anew(clock: ManualClock) -> None:
    slow = False

    async def fetch() -> str:
        if slow:
            await clock.sleep(PAUSE_MS / 1000)
        return "description"

    kept = Kept(fetch, clock)
    assert await kept.get() == "description"
    slow = True
    await clock.advance(PAUSE_MS)
    again = asyncio.create_task(kept.again())
    await clock.until_sleeping()
    assert kept.known == "description"
    again.cancel()
