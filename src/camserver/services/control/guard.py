"""Who speaks, proven: by a certificate on the TLS port, by the installation's token on this machine.

A certificate's worker, tenant and site are those of its row; nothing that a message or header says can change them.
Its time is judged by the store's clock for each message and upload. Its row is read when a worker connects and then
remembered for a short while; a revocation is seen by a look at the rows every second, which forgets what was
remembered and ends open connections.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from camserver.base.asgi import PEER_CERTIFICATE
from camserver.base.certificates import Seen, read_der
from camserver.base.clock import Clock
from camserver.base.errors import Conflict, Forbidden, Retry, Unauthenticated
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.domain.certificates import CertificatePolicy, Use, Validity, WorkerName, use_of
from camserver.services.control.admission import require_worker_token
from camserver.services.control.connections import CLOSE_REFUSED, Connections
from camserver.store import Store
from camserver.store.worker_identities import Known, known, revoked_since
from camserver.store.workers import first_tenant
from camserver.wire.enrolment import EXPIRED_CODE, REVOKED_CODE
from camserver.wire.looks import WORKER_HEADER

log = get_logger(__name__)

WATCH_EVERY_SEC = 1.0
# Rows are read back this far: transactions do not commit in the order of their times.
WATCH_OVERLAP_MS = 60_000
REMEMBERED_MS = 60_000
REMEMBERED_MAX = 20_000


class CertificateExpired(Forbidden):
    code = EXPIRED_CODE


class CertificateRevoked(Forbidden):
    code = REVOKED_CODE


@dataclass(frozen=True, slots=True)
class Caller:
    """Who speaks. Without a certificate, the worker says its name and site itself."""

    tenant_id: int
    worker_id: str | None = None
    site_id: int | None = None
    serial: str | None = None
    expires_at: int | None = None

    def named(self, claimed: str) -> str:
        """The worker's name; Forbidden when it claims another than its certificate's."""
        if self.worker_id is None:
            return claimed
        if claimed and claimed != self.worker_id:
            raise Forbidden(f"the certificate is of worker {self.worker_id}, not of {claimed[:64]}")
        return self.worker_id


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose upload or request it is."""

    tenant_id: int
    worker_id: str
    site_id: int | None = None  # that its certificate names


@dataclass(frozen=True, slots=True)
class Proven:
    """A certificate with its row."""

    seen: Seen
    row: Known


class Guard:
    def __init__(
        self, store: Store, clock: Clock, token: Secret, policy: CertificatePolicy, connections: Connections
    ) -> None:
        self._store = store
        self._clock = clock
        self._token = token
        self._policy = policy
        self._connections = connections
        self._tenant_id: int | None = None
        self._remembered: OrderedDict[str, tuple[Known, int]] = OrderedDict()  # by serial; until boot-time ms

    async def admit(self, connection: HTTPConnection) -> Caller:
        """Lets a worker in for everything that workers do, or refuses it."""
        if not is_tls(connection):
            return await self._admit_by_token(connection.headers, peer_host(connection))
        seen = _shown(connection)
        self._require_use(seen, Use.WORK)
        row = await self._row(seen)
        return Caller(row.tenant_id, row.worker_id, row.site_id, seen.serial, seen.not_after_ms)

    async def sender(self, connection: HTTPConnection) -> Sender:
        """Who sends an upload or a request."""
        caller = await self.admit(connection)
        worker_id = caller.named(connection.headers.get(WORKER_HEADER, "")[:64])
        return Sender(caller.tenant_id, worker_id, caller.site_id)

    async def renewing(self, connection: HTTPConnection) -> Proven:
        """Whoever may get the next certificate. What is remembered does not count for that."""
        seen = _shown(connection)
        self._require_use(seen, Use.RENEW)
        self._remembered.pop(seen.serial, None)
        return Proven(seen, await self._row(seen))

    def check(self, caller: Caller) -> None:
        """For each message: raises when the certificate's time is over."""
        if caller.expires_at is not None and self._clock.now_ms() >= caller.expires_at:
            raise CertificateExpired("the certificate has expired; renew it and connect again")

    async def watch(self) -> None:
        """Looks for revocations until cancelled."""
        since = self._clock.now_ms() - WATCH_OVERLAP_MS
        while True:
            looked_at = self._clock.now_ms()
            try:
                self._end(await self._store.read(revoked_since, since))
                since = looked_at - WATCH_OVERLAP_MS
            except (Retry, Conflict) as error:
                log.warning("revocations can't be read now", code=error.code, cause=error.message)
            await self._clock.sleep(WATCH_EVERY_SEC)

    def _end(self, serials: tuple[str, ...]) -> None:
        revoked = frozenset(serials)
        for serial in revoked:
            self._remembered.pop(serial, None)
        for connection in self._connections:
            if connection.serial in revoked and not connection.is_over:
                connection.cut(CLOSE_REFUSED, REVOKED_CODE, "this worker's certificate was revoked")

    async def _admit_by_token(self, headers: Mapping[str, str], host: str) -> Caller:
        require_worker_token(headers, host, self._token)
        if self._tenant_id is None:
            self._tenant_id = await self._store.read(first_tenant)
        return Caller(self._tenant_id)

    def _require_use(self, seen: Seen, wanted: Use) -> None:
        use = use_of(Validity(seen.not_before_ms, seen.not_after_ms), False, self._clock.now_ms(), self._policy)
        if use is Use.WORK or use is wanted:
            return
        if use is Use.RENEW:
            raise CertificateExpired("the certificate has expired; it can be renewed and does nothing else")
        raise Forbidden("the certificate is not valid now, nor can it be renewed; enroll this worker again")

    async def _row(self, seen: Seen) -> Known:
        memory = self._remembered.get(seen.serial)
        if memory is not None and self._clock.boot_ms() < memory[1]:
            return memory[0]
        row = await self._store.read(known, seen.serial)
        if row is None or row.revoked:
            raise CertificateRevoked("the certificate was revoked or is not known here; enroll this worker again")
        if WorkerName(row.tenant_uuid, row.site_uuid, row.worker_id).uri != seen.uri:
            raise Forbidden("the certificate names another worker than the server gave it to; enroll it again")
        self._remembered[seen.serial] = (row, self._clock.boot_ms() + REMEMBERED_MS)
        self._remembered.move_to_end(seen.serial)
        if len(self._remembered) > REMEMBERED_MAX:
            self._remembered.popitem(last=False)
        return row


def is_tls(connection: HTTPConnection) -> bool:
    return PEER_CERTIFICATE in connection.scope.get("state", {})


def peer_host(connection: HTTPConnection) -> str:
    return connection.client.host if connection.client is not None else ""


def _shown(connection: HTTPConnection) -> Seen:
    """The certificate that the peer came with; that our CA signed it was proven by the handshake."""
    der: bytes | None = connection.scope.get("state", {}).get(PEER_CERTIFICATE)
    if der is None:
        raise Unauthenticated(
            "this port wants a certificate; get one with `camserver worker enroll`, with a token of `camserver "
            "worker token`"
        )
    return read_der(der)
