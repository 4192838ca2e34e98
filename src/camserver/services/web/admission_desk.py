"""Requests for live views of one process, decided together: what comes while one transaction runs shares the next.

So however many ask at once, they take one connection to the database and wait for one lock between them.
"""

from collections.abc import Sequence

from camserver.base.batches import Batcher
from camserver.domain.admission import AdmissionPolicy
from camserver.store import Store, admissions
from camserver.store.admissions import Admitted, NotAdmitted, Request

TOGETHER_MAX = 32
WAITING_MAX = 1_000


class AdmissionDesk:
    def __init__(self, store: Store, policy: AdmissionPolicy) -> None:
        self.store = store
        self._policy = policy
        self._batcher = Batcher(self._decide, size_max=TOGETHER_MAX, waiting_max=WAITING_MAX)

    async def ask(self, request: Request) -> Admitted | NotAdmitted:
        return await self._batcher.submit(request)

    async def close(self) -> None:
        await self._batcher.close()

    async def _decide(self, requests: tuple[Request, ...]) -> Sequence[Admitted | NotAdmitted]:
        return await self.store.write(admissions.admit_all, requests, self._policy)
