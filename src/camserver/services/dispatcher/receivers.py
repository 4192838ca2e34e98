"""The receivers as a dispatcher knows them: read now and then, their secrets opened, and how they did noted down.

A change that people make is known here within seconds, and before anything goes out that was claimed after it: a
claim says how new its receiver is. So whoever saves a receiver and tries it sees what they saved.
"""

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from camserver.base.clock import Clock
from camserver.base.credentials import Keys, open_sealed
from camserver.base.errors import DataUnusable
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.domain.deliveries import (
    ARCHIVES,
    ERROR_MAX_CHARS,
    TELLING,
    Claimed,
    DeliveryError,
    Receiver,
    ReceiverKind,
    Trouble,
)
from camserver.domain.notices import DeliveryPolicy
from camserver.services.dispatcher.turns import take_turns
from camserver.store import Store, receivers
from camserver.store.receivers import Report, StoredReceiver, secrets_of

log = get_logger(__name__)

REFRESH_EVERY_MS = 2_000
# How a receiver did is written this often at most.
REPORT_EVERY_MS = 5_000


@dataclass(slots=True)
class ReceiverBook:
    store: Store
    clock: Clock
    credential_key: Keys
    llm_is_configured: bool = False
    # Called whenever receivers changed, e.g. to learn which deliveries are worth a row now.
    on_change: Callable[[], None] | None = None
    _version: tuple[int, int, int] | None = None
    _known: dict[int, Receiver] = field(default_factory=dict)
    _problems: dict[int, str] = field(default_factory=dict)
    _reports: dict[int, Report] = field(default_factory=dict)
    # One reads at a time: what was read earlier must not replace what was read later.
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def follow(self) -> None:
        """Keeps the book until cancelled."""
        await take_turns(self.clock, REFRESH_EVERY_MS, "receivers", self.refresh)

    async def follow_reports(self) -> None:
        await take_turns(self.clock, REPORT_EVERY_MS, "receiver_reports", self.write_reports)

    async def refresh(self) -> None:
        async with self._reading:
            await self._read()

    async def _read(self) -> None:
        version = await self.store.read(receivers.version)
        if version == self._version:
            return
        found = await self.store.read(receivers.everywhere)
        self._problems = {}
        opened = ((one.receiver_id, self._usable(one)) for one in found)
        self._known = {receiver_id: receiver for receiver_id, receiver in opened if receiver is not None}
        self._version = version
        if self.on_change is not None:
            self.on_change()

    async def receiver_of(self, claimed: Claimed) -> Receiver | None:
        """Whom a delivery goes to, at least as new as when it was claimed. None when there is no such receiver any
        more, or another one under its number. One whose secrets can't be read is an error."""
        if claimed.receiver_id is None or claimed.receiver_uuid is None:
            return None
        if self._is_behind(claimed):
            async with self._reading:
                # Whoever had its turn before may have read what is needed here, too.
                if self._is_behind(claimed):
                    await self._read()
        known = self._known.get(claimed.receiver_id)
        if known is not None and not _is_meant(known, claimed):
            return None
        problem = self._problems.get(claimed.receiver_id)
        if problem is not None:
            raise DeliveryError(Trouble.FAILED, problem)
        return known

    def _is_behind(self, claimed: Claimed) -> bool:
        assert claimed.receiver_id is not None
        known = self._known.get(claimed.receiver_id)
        return known is None or not _is_meant(known, claimed) or known.updated_at < claimed.receiver_updated_at

    def kind_of(self, receiver_id: int) -> ReceiverKind | None:
        """None while it was not read yet, and when there is no such receiver."""
        known = self._known.get(receiver_id)
        return None if known is None else known.kind

    def of(self, tenant_id: int, kinds: Collection[ReceiverKind]) -> tuple[Receiver, ...]:
        """A tenant's enabled receivers of some kinds."""
        return tuple(
            one for one in self._known.values() if one.tenant_id == tenant_id and one.enabled and one.kind in kinds
        )

    @property
    def everywhere(self) -> tuple[Receiver, ...]:
        """Those of all tenants, enabled or not."""
        return tuple(self._known.values())

    @property
    def sinks(self) -> DeliveryPolicy:
        """Which deliveries are worth a row."""
        kinds = {one.kind for one in self._known.values() if one.enabled}
        return DeliveryPolicy(
            archive=bool(kinds & ARCHIVES), notify=bool(kinds & TELLING), llm_review=self.llm_is_configured
        )

    # How they do

    def note_ok(self, receiver_id: int) -> None:
        before = self._reports.get(receiver_id, Report(receiver_id, None, None, None))
        self._reports[receiver_id] = Report(receiver_id, self.clock.now_ms(), before.error, before.error_at)

    def note_error(self, receiver_id: int, error: str) -> None:
        before = self._reports.get(receiver_id, Report(receiver_id, None, None, None))
        self._reports[receiver_id] = Report(receiver_id, before.ok_at, error, self.clock.now_ms())

    def note(self, receiver_id: int, error: str | None) -> None:
        """`note_error`, or `note_ok` where there is none."""
        if error is None:
            self.note_ok(receiver_id)
        else:
            self.note_error(receiver_id, error)

    async def write_reports(self) -> None:
        reports, self._reports = self._reports, {}
        if not reports:
            return
        try:
            await self.store.write(receivers.report, tuple(reports.values()))
        except BaseException:
            self._reports = {**reports, **self._reports}
            raise

    def _usable(self, stored: StoredReceiver) -> Receiver | None:
        """None for a row that makes no sense here, such as a kind that a newer version knows: the others go on."""
        try:
            return self._opened(stored)
        except (ValueError, TypeError, AttributeError) as error:
            problem = f"the receiver {stored.name} can't be used by this version: {error}"
            log.error("receiver_unusable", receiver=stored.receiver_uuid, why=problem)
            self._problems[stored.receiver_id] = problem
            self.note_error(stored.receiver_id, problem[:ERROR_MAX_CHARS])
            return None

    def _opened(self, stored: StoredReceiver) -> Receiver:
        secrets: dict[str, Secret] = {}
        if stored.sealed is not None:
            try:
                plain = open_sealed(
                    self.credential_key, stored.tenant_id, secrets_of(stored.receiver_uuid), stored.sealed
                )
                secrets = {name: Secret(str(value)) for name, value in json.loads(plain).items()}
            except DataUnusable as error:
                log.error("receiver_unusable", receiver=stored.receiver_uuid, why=error.message)
                self._problems[stored.receiver_id] = error.message
        return Receiver(
            receiver_id=stored.receiver_id,
            receiver_uuid=stored.receiver_uuid,
            tenant_id=stored.tenant_id,
            name=stored.name,
            kind=ReceiverKind(stored.kind),
            config=json.loads(stored.config),
            language=stored.language,
            hourly_cap=stored.hourly_cap,
            enabled=stored.enabled,
            secrets=secrets,
            updated_at=stored.updated_at,
        )


def _is_meant(known: Receiver, claimed: Claimed) -> bool:
    """Whether it is the tenant's own, and the one that was there when the delivery was claimed."""
    return (known.tenant_id, known.receiver_uuid) == (claimed.tenant_id, claimed.receiver_uuid)
