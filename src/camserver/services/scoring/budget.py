"""The run's hard budget: what a question may cost at most is drawn before it is asked, and what it did not cost is
used for the next ones."""

import asyncio

from camserver.domain.scoring import PauseReason
from camserver.services.scoring.tasks import Interrupted
from camserver.store import Store, scoring_runs

# Drawn at once, in questions: each drawing is a transaction.
DRAWN_AT_ONCE = 16


class Budget:
    def __init__(self, store: Store, run_id: int, is_kept: bool) -> None:
        """`is_kept` False: there is none to keep."""
        self._store = store
        self._run_id = run_id
        self.is_kept = is_kept
        self._left_micro = 0
        self._asking = 0
        self._drawing = asyncio.Lock()
        self._settled = asyncio.Event()

    async def reserve(self, worst_micro: int) -> None:
        """Interrupted when not even this one more question fits, and none is in flight whose rest could."""
        if not self.is_kept:
            return
        async with self._drawing:
            while self._left_micro < worst_micro:
                self._settled.clear()
                is_alone = not self._asking
                if await self._draw(worst_micro):
                    break
                if is_alone:
                    raise Interrupted(PauseReason.BUDGET, "the budget is used up; raise it by --budget to go on")
                # One that was in flight may have been settled meanwhile: then its rest is looked at right away.
                await self._settled.wait()
            self._left_micro -= worst_micro
            self._asking += 1

    async def _draw(self, worst_micro: int) -> bool:
        for amount in (DRAWN_AT_ONCE * worst_micro, worst_micro - self._left_micro):
            if await self._store.write(scoring_runs.draw, self._run_id, amount):
                self._left_micro += amount
                return True
        return False

    def settle(self, worst_micro: int, cost_micro: int) -> None:
        if self.is_kept:
            self._asking -= 1
            self._left_micro += worst_micro - cost_micro
            self._settled.set()

    async def close(self) -> None:
        if self._left_micro > 0:
            await self._store.write(scoring_runs.give_back, self._run_id, self._left_micro)
            self._left_micro = 0
