"""Certificates for workers: the first one for a one-time token, the next ones for the one before.

Routes hand over what came; who asks for a renewal was proven by the guard. Nothing of a request but its key gets into
a certificate.
"""

import asyncio
from collections import OrderedDict
from typing import TypeVar

from pydantic import ValidationError

from camserver.base.certificates import Authority, Issued
from camserver.base.clock import Clock
from camserver.base.errors import BadInput, Forbidden, TooManyTries
from camserver.base.log import get_logger
from camserver.domain.certificates import CertificatePolicy, WorkerName
from camserver.services.control.guard import CertificateRevoked, Proven
from camserver.store import Store
from camserver.store.worker_identities import CertificateRow, enrol, invitation, renewed
from camserver.wire.enrolment import Certified, Enroll, Renew, secret_hash
from camserver.wire.message import Message, problems

log = get_logger(__name__)

M = TypeVar("M", bound=Message)

# A secret of 32 random bytes can't be guessed: this bounds the work that strangers can make.
TRIES_MAX = 10
TRIES_WINDOW_MS = 60_000
ADDRESSES_MAX = 10_000
# Certificates begin a little before they are made: clocks of control processes may differ by a blink.
BACKDATED_MS = 60_000


class Tries:
    """Failed tries by address, forgotten after a while. Times are of the boot-time clock."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, list[int]] = OrderedDict()

    def require_rest(self, address: str, boot_ms: int) -> None:
        recent = [at for at in self._failed.get(address, ()) if at > boot_ms - TRIES_WINDOW_MS]
        if len(recent) >= TRIES_MAX:
            raise TooManyTries("too many tokens from this address were wrong; wait a minute and try again")

    def failed(self, address: str, boot_ms: int) -> None:
        recent = [at for at in self._failed.pop(address, ()) if at > boot_ms - TRIES_WINDOW_MS]
        self._failed[address] = [*recent, boot_ms]
        if len(self._failed) > ADDRESSES_MAX:
            self._failed.popitem(last=False)


class Enrolment:
    def __init__(self, store: Store, clock: Clock, authority: Authority, policy: CertificatePolicy) -> None:
        self._store = store
        self._clock = clock
        self._authority = authority
        self._policy = policy
        self._tries = Tries()

    @property
    def ca_pem(self) -> str:
        return self._authority.pem

    async def enroll(self, body: bytes | bytearray, address: str) -> Certified:
        """A worker's first certificate, for a token that works once."""
        self._tries.require_rest(address, self._clock.boot_ms())
        asked = _parsed(Enroll, body)
        now_ms = self._clock.now_ms()
        token_hash = secret_hash(asked.secret)
        try:
            invited = await self._store.read(invitation, token_hash, now_ms)
            name = WorkerName(invited.tenant_uuid, invited.site_uuid, asked.worker_id)
            issued = await self._issue(asked.csr, name, now_ms)
            invited = await self._store.write(
                enrol, token_hash, asked.worker_id, _row(issued), address, self._clock.now_ms()
            )
        except Forbidden:
            self._tries.failed(address, self._clock.boot_ms())
            raise
        log.info(
            "worker_enrolled",
            tenant_id=invited.tenant_id,
            site_id=invited.site_id,
            worker_id=asked.worker_id,
            serial=issued.serial,
        )
        return self._certified(issued, asked.worker_id, invited.site)

    async def renew(self, proven: Proven, body: bytes | bytearray) -> Certified:
        """The next certificate of a worker, for whichever key it has now."""
        asked = _parsed(Renew, body)
        row = proven.row
        now_ms = self._clock.now_ms()
        issued = await self._issue(asked.csr, WorkerName(row.tenant_uuid, row.site_uuid, row.worker_id), now_ms)
        forgotten_before = now_ms - self._policy.renew_grace_ms
        found = await self._store.write(renewed, proven.seen.serial, _row(issued), forgotten_before, now_ms)
        if found is None:
            raise CertificateRevoked("the certificate was revoked; enroll this worker again")
        log.info(
            "certificate_renewed",
            tenant_id=row.tenant_id,
            site_id=row.site_id,
            worker_id=row.worker_id,
            serial=issued.serial,
        )
        return self._certified(issued, row.worker_id, row.site)

    async def _issue(self, csr: str, name: WorkerName, now_ms: int) -> Issued:
        not_after_ms = now_ms + self._policy.lifetime_ms
        return await asyncio.to_thread(self._authority.for_worker, csr, name.uri, now_ms - BACKDATED_MS, not_after_ms)

    def _certified(self, issued: Issued, worker_id: str, site: str) -> Certified:
        return Certified(certificate=issued.pem, worker_id=worker_id, site=site, server_time=self._clock.now_ms())


def _row(issued: Issued) -> CertificateRow:
    return CertificateRow(issued.serial, issued.sha256, issued.not_after_ms)


def _parsed(model: type[M], body: bytes | bytearray) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        # Its messages name fields and kinds, not the values: a token must not come back in an answer.
        raise BadInput(f"the request is not understood: {problems(error)}") from None
