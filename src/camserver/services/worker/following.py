"""Follows what the server asks for beside the control socket, so that a camera that hangs delays nothing else.

What concerns one camera is followed in the order it came; DRAIN comes after all before it and before all after it.
"""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp

from camserver.base.errors import CamError
from camserver.base.log import get_logger
from camserver.services.worker.intents import Intent, Intents
from camserver.services.worker.waiting import end
from camserver.wire.worker import Ack, LiveStart, LiveStop, Start, Stop

log = get_logger(__name__)

# More at once wait for their turn, and with them the socket.
FOLLOWED_MAX = 256


class Following:
    """Of one connection: `take` each intent, `close` it when the connection is over."""

    def __init__(self, intents: Intents, answer: Callable[[Ack], Awaitable[None]]) -> None:
        self._intents = intents
        self._answer = answer
        self._running: set[asyncio.Task[None]] = set()
        self._last: dict[str, asyncio.Task[None]] = {}  # of a camera
        self._barrier: asyncio.Task[None] | None = None

    async def take(self, intent: Intent) -> None:
        """Returns at once, unless very many are on their way."""
        while len(self._running) >= FOLLOWED_MAX:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        camera_id = intent.camera_id if isinstance(intent, Start | Stop | LiveStart | LiveStop) else None
        earlier = set(self._running)
        if camera_id is not None:
            earlier &= {self._last.get(camera_id), self._barrier}
        task = asyncio.ensure_future(self._follow(intent, earlier))
        self._running.add(task)
        if camera_id is None:
            self._barrier = task
        else:
            self._last[camera_id] = task
        task.add_done_callback(lambda done: self._forget(done, camera_id))

    async def close(self) -> None:
        await end(*self._running)

    async def _follow(self, intent: Intent, earlier: "set[asyncio.Task[None]]") -> None:
        if earlier:
            await asyncio.wait(earlier)
        await self._answer(await self._intents.follow(intent))

    def _forget(self, task: "asyncio.Task[None]", camera_id: str | None) -> None:
        self._running.discard(task)
        if camera_id is not None and self._last.get(camera_id) is task:
            del self._last[camera_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            # The connection that is gone is noticed by whoever reads from it; the server asks again.
            is_ours = not isinstance(error, aiohttp.ClientError | OSError | CamError)
            log.warning("an intent was not answered", cause=str(error), exc_info=error if is_ours else None)
