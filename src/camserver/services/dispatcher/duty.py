"""Work that only one of several dispatchers does at a time, held for one turn."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uuid_utils

from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger
from camserver.domain.duties import HOLD_MS
from camserver.store import Store, duties

log = get_logger(__name__)


@asynccontextmanager
async def on_duty(store: Store, clock: Clock, name: str, owner: str, hold_ms: int = HOLD_MS) -> AsyncIterator[bool]:
    """Whether the duty is ours for the block. Given back at its end; one that can't be runs out by itself."""
    token = str(uuid_utils.uuid7())
    if await store.write(duties.take, name, owner, token, clock.now_ms(), hold_ms) is None:
        yield False
        return
    try:
        yield True
    finally:
        try:
            await store.write(duties.release, name, token)
        except Retry as error:
            log.warning("duty_not_given_back", duty=name, why=error.message)
