"""Seals the audit log, once a minute, one dispatcher at a time; the rules are in domain/audit.py.

What is sealed is remembered on this machine as well (store/audit_anchors.py). A dispatcher that dies between entries
and seal leaves entries without a batch, which the next one seals.
"""

import asyncio
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from camserver.base.clock import Clock
from camserver.base.errors import Conflict, Retry
from camserver.base.log import get_logger
from camserver.domain.audit import BATCH_MAX, SealKey, seal
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, audit_anchors, audit_seals, duties
from camserver.store.audit_anchors import Anchor

log = get_logger(__name__)

DUTY = "audit_sealing"
EVERY_MS = 60_000
# Of one tenant in one turn, so that one with a backlog keeps no other waiting.
BATCHES_MAX = 20


@dataclass(slots=True)
class Sealer:
    store: Store
    clock: Clock
    key: SealKey
    data_dir: Path
    owner: str
    _token: str = field(default_factory=lambda: str(uuid.uuid4()))

    async def run(self) -> None:
        """Until cancelled; then the duty is given back."""
        try:
            await take_turns(self.clock, EVERY_MS, "audit_sealing", self.turn)
        finally:
            try:
                await self.store.write(duties.release, DUTY, self._token)
            except Retry as error:
                log.warning("audit_sealing_duty_not_given_back", why=error.message)

    async def turn(self) -> None:
        if not await self._take():
            # A hold that ran out is not taken up again under its old token.
            self._token = str(uuid.uuid4())
            if not await self._take():
                return
        made: dict[int, Anchor] = {}
        try:
            for tenant_id in await self.store.read(audit_seals.tenants):
                await self._seal(tenant_id, made)
        finally:
            if made:
                await asyncio.to_thread(self._remember, made)

    async def _take(self) -> bool:
        return await self.store.write(duties.take, DUTY, self.owner, self._token, self.clock.now_ms()) is not None

    async def _seal(self, tenant_id: int, made: dict[int, Anchor]) -> None:
        for _ in range(BATCHES_MAX):
            found = await self.store.read(audit_seals.unsealed, tenant_id)
            if not found.entries:
                return
            following = seal(found.last, tenant_id, found.entries, self.key, self.clock.now_ms())
            try:
                await self.store.write(audit_seals.put, following, [entry.entry_id for entry in found.entries])
            except Conflict as error:
                log.warning("audit_sealed_by_another", tenant_id=tenant_id, why=error.message)
                return
            made[tenant_id] = Anchor(following.batch_no, following.hash)
            if len(found.entries) < BATCH_MAX:
                return

    def _remember(self, made: dict[int, Anchor]) -> None:
        try:
            audit_anchors.write(self.data_dir, audit_anchors.read(self.data_dir) | made)
        except OSError as error:
            # The seals stand; only that they were there is not remembered outside the database.
            log.error("audit_anchors_not_written", why=str(error))
