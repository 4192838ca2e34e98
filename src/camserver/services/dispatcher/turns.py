"""What a dispatcher does now and then beside its jobs, for ever."""

from collections.abc import Awaitable, Callable

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import Retry
from camserver.base.log import get_logger

log = get_logger(__name__)

# A clock that jumps ahead is noticed this soon.
STEP_SEC = 1.0


async def take_turns(clock: Clock, every_ms: int, name: str, turn: Callable[[], Awaitable[None]]) -> None:
    """Calls `turn` until cancelled, at most once in `every_ms`. A store that is away is waited for."""
    due_boot_ms = 0
    while True:
        started_boot_ms = clock.boot_ms()
        if started_boot_ms >= due_boot_ms:
            due_boot_ms = started_boot_ms + every_ms
            try:
                await turn()
            except Retry as error:
                log.warning(f"{name}_put_off", why=error.message)
            except Exception:
                # What is broken here must not keep the analysis from going on.
                log.exception(f"{name}_broke")
            go_on_unless_cancelled()
        await clock.sleep(STEP_SEC)
