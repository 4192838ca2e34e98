"""Seals the audit log, once a minute, one dispatcher at a time; the rules are in domain/audit.py.

The end of each chain is remembered on this machine as well (store/audit_anchors.py), and moves on only while the
chain still has what was remembered before. Dispatchers on other machines remember in files of their own, so an anchor
may be older than the chain's end. A dispatcher that dies between entries and seal leaves entries without a batch,
which the next one seals.
"""

import asyncio
import uuid
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from camserver.base.clock import Clock
from camserver.base.errors import Conflict, DataUnusable, Retry
from camserver.base.log import get_logger
from camserver.domain.audit import BATCH_MAX, Seal, SealKey, seal
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, audit_anchors, audit_seals, duties, erasures_asked
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
    # What was told to be wrong: each once, not every minute.
    _told: set[tuple[int, Anchor] | str] = field(default_factory=set)

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
        known = await self._remembered()
        anchors = dict(known or {})
        try:
            tenant_ids = await self.store.read(audit_seals.tenants)
            for tenant_id in tenant_ids:
                try:
                    await self._seal(tenant_id, anchors)
                except Retry:
                    raise
                except Exception:
                    # What is broken in one tenant's log must not leave the others' open.
                    log.exception("audit_sealing_of_tenant_broke", tenant_id=tenant_id)
            await self._let_go(tenant_ids, anchors)
        finally:
            if known is not None and anchors != known:
                await asyncio.to_thread(self._remember, anchors)

    async def _remembered(self) -> dict[int, Anchor] | None:
        """None: it can't be read. Then the file stays as it is, for whoever looks into it, and nothing is added."""
        try:
            return await asyncio.to_thread(audit_anchors.read, self.data_dir)
        except DataUnusable as error:
            if error.message not in self._told:
                self._told.add(error.message)
                log.error("audit_anchors_unreadable", why=error.message)
            return None

    async def _let_go(self, tenant_ids: Collection[int], anchors: dict[int, Anchor]) -> None:
        """Forgets chains of tenants that were erased, and only these: a tenant may also have been made to vanish."""
        missing = anchors.keys() - set(tenant_ids)
        if missing:
            for tenant_id in await self.store.read(erasures_asked.asked, sorted(missing), True):
                del anchors[tenant_id]

    async def _take(self) -> bool:
        return await self.store.write(duties.take, DUTY, self.owner, self._token, self.clock.now_ms()) is not None

    async def _seal(self, tenant_id: int, anchors: dict[int, Anchor]) -> None:
        """Seals what waits, and moves the tenant's anchor to the end of its chain.

        The anchor of a chain that was cut stays, so that a check goes on telling; what is left is sealed all the
        same.
        """
        found = await self.store.read(audit_seals.unsealed, tenant_id)
        is_whole = await self._is_whole(tenant_id, anchors.get(tenant_id), found.last)
        newest = found.last
        try:
            for _ in range(BATCHES_MAX):
                if not found.entries:
                    return
                following = seal(found.last, tenant_id, found.entries, self.key, self.clock.now_ms())
                await self.store.write(audit_seals.put, following, [entry.entry_id for entry in found.entries])
                newest = following
                if len(found.entries) < BATCH_MAX:
                    return
                found = await self.store.read(audit_seals.unsealed, tenant_id)
        except Conflict as error:
            log.warning("audit_sealed_by_another", tenant_id=tenant_id, why=error.message)
        finally:
            # Also where nothing waited: what a dispatcher sealed that died before it remembered is remembered now.
            if is_whole and newest is not None:
                anchors[tenant_id] = Anchor(newest.batch_no, newest.hash)

    async def _is_whole(self, tenant_id: int, anchor: Anchor | None, last: Seal | None) -> bool:
        """Whether the chain still has the seal that is remembered of it. One that is not is told once."""
        if anchor is None or anchor.is_held_by(last):
            return True
        if last is not None and anchor.is_held_by(
            await self.store.read(audit_seals.seal_of, tenant_id, anchor.batch_no)
        ):
            return True
        if (tenant_id, anchor) not in self._told:
            self._told.add((tenant_id, anchor))
            log.error(
                "audit_chain_cut",
                tenant_id=tenant_id,
                batch_no=anchor.batch_no,
                left=0 if last is None else last.batch_no,
                next="run: camserver audit verify",
            )
        return False

    def _remember(self, anchors: dict[int, Anchor]) -> None:
        try:
            audit_anchors.write(self.data_dir, anchors)
        except OSError as error:
            # The seals stand; only that they were there is not remembered outside the database.
            log.error("audit_anchors_not_written", why=str(error))
