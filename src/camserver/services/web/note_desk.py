"""Entries of the audit log that requests wait for, written together: what comes while one transaction runs shares
the next.

For what is given out many times a second, such as links. An entry is durable before what it is about leaves. One that
comes alone is written at once; where several came together, as many are waited for a moment, since a transaction
costs many times what an entry does.
"""

from collections.abc import Sequence

from camserver.base.batches import Batcher
from camserver.domain.people import Principal
from camserver.store import Store, audit
from camserver.store.audit import Entry

TOGETHER_MAX = 64
WAITING_MAX = 1_000
LINGER_SEC = 0.003

Note = tuple[Principal, Entry]


class NoteDesk:
    def __init__(self, store: Store) -> None:
        self._store = store
        # A transaction is one tenant's.
        self._tenants: dict[int, _OfTenant] = {}

    async def write(self, principal: Principal, entry: Entry) -> None:
        """Notes it in the principal's name; durable on return."""
        desk = self._tenants.get(principal.tenant_id)
        if desk is None:
            desk = self._tenants[principal.tenant_id] = _OfTenant(self._store)
        await desk.batcher.submit((principal, entry))

    async def close(self) -> None:
        for desk in self._tenants.values():
            await desk.batcher.close()


class _OfTenant:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.batcher: Batcher[Note, None] = Batcher(
            self._write, size_max=TOGETHER_MAX, waiting_max=WAITING_MAX, linger_sec=lambda: LINGER_SEC, gathers=True
        )

    async def _write(self, notes: tuple[Note, ...]) -> Sequence[None]:
        rows = [audit.own_row(principal, entry) for principal, entry in notes]
        await self.store.as_(notes[0][0]).write(audit.add_rows, rows)
        return [None] * len(notes)
