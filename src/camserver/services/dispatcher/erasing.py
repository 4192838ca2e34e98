"""Does the erasures of tenants that were asked for, some pages a turn. Part of the duty of retention."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from camserver.base.clock import Clock
from camserver.base.log import get_logger
from camserver.store import Store, erasure
from camserver.store.erasure import Erased

log = get_logger(__name__)

# Transactions a turn, so that retention and the free space have their turns beside the erasure of a large tenant.
PAGES_MAX = 200


@dataclass(slots=True)
class Eraser:
    store: Store
    clock: Clock
    pause: Callable[[], Awaitable[None]]  # between two transactions
    _left: int = PAGES_MAX

    async def turn(self) -> None:
        self._left = PAGES_MAX
        tenant_id = await self.store.read(erasure.next_up)
        if tenant_id is None:
            return
        if await self.store.read(erasure.is_held, tenant_id, self.clock.now_ms()):
            log.info("erasure_waits", tenant_id=tenant_id, why="workers still hold cameras of it")
            return
        if not await self._cameras(tenant_id) or not await self._tables(tenant_id):
            return
        # What is in the bin is unlinked by the sweep; until then this answers False.
        if await self.store.write(erasure.finish, tenant_id, self.clock.now_ms()):
            log.info("tenant_erased", tenant_id=tenant_id)

    async def _cameras(self, tenant_id: int) -> bool:
        """False: the turn is over before the work is."""
        after = 0
        while page := await self.store.read(erasure.cameras, tenant_id, after):
            for camera_key in page:
                while self._went(
                    await self.store.write(erasure.erase_of_camera, tenant_id, camera_key, self.clock.now_ms())
                ):
                    if self._left == 0:
                        return False
                    await self.pause()
            after = page[-1]
        return True

    async def _tables(self, tenant_id: int) -> bool:
        for table in erasure.TABLES:
            while self._went(await self.store.write(erasure.erase_of_table, tenant_id, table, self.clock.now_ms())):
                if self._left == 0:
                    return False
                await self.pause()
        return True

    def _went(self, erased: Erased) -> bool:
        self._left -= bool(erased.rows)
        return erased.rows > 0
