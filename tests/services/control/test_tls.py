"""Workers at other sites: enrolled, let in by their certificates and by nothing else, renewed, revoked. Real TLS."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from camserver.base import tls
from camserver.base.errors import BadInput, Forbidden, Unauthenticated
from camserver.base.secrets import Secret
from camserver.base.tls_port import TlsPort
from camserver.config import worker_ca
from camserver.domain.certificates import DAY_MS, WorkerName
from camserver.domain.workers import WorkerState
from camserver.services.control.admission import require_worker_token
from camserver.services.control.connections import CLOSE_REFUSED
from camserver.services.control.enrolment import TRIES_MAX
from camserver.services.worker import enrolling
from camserver.services.worker.identity_file import Enrolled
from camserver.store import Store, Tx
from camserver.store.worker_identities import invite, revoke
from camserver.store.workers import Registered as Row
from camserver.wire.enrolment import ENROLL_PATH, ERROR_HEADER, RENEW_PATH, Token, secret_hash
from camserver.wire.looks import CONTENT_TYPE, LOOKS_PATH, WORKER_HEADER, Recorded, pack, parse_answer
from camserver.wire.worker import SOCKET_PATH, Heartbeat, Refused, Registered, Start
from tests.rig.clock import ManualClock
from tests.rig.identities import new_authority, new_identity
from tests.services.control.rig import (
    PICTURE,
    SLEEPERS,
    RunningControl,
    ScriptedWorker,
    look_header,
    register,
    running_control,
)
from tests.store.people_rows import add_tenant, admin_of
from tests.store.stage import add_camera, add_site

HOUR_MS = 3_600_000
# Besides the usual ones: the port's certificate and the look for revocations.
TLS_SLEEPERS = SLEEPERS + 2


@pytest.fixture
async def control(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningControl]:
    async with running_control(sqlite_store, clock, tmp_path, tls=True) as running:
        yield running


def url(control: RunningControl, path: str = "") -> str:
    return f"https://127.0.0.1:{control.tls_port}{path}"


async def new_token(
    control: RunningControl, worker_id: str | None = None, tenant_id: int | None = None, site: str = "main"
) -> Token:
    made = Token.make(worker_ca(control.settings).sha256)
    people = control.store.as_(admin_of(tenant_id or control.tenant_id))
    hashed = secret_hash(made.secret.reveal())
    await people.write(invite, hashed, site, worker_id, HOUR_MS, "", control.clock.now_ms())
    return made


async def enrolled(control: RunningControl, worker_id: str = "shop-1") -> Enrolled:
    identity, site = await enrolling.enroll(url(control), await new_token(control), worker_id)
    assert site == "main"
    return identity


@dataclass(slots=True)
class Far:
    """A worker elsewhere, with whatever it shows."""

    control: RunningControl
    context: ssl.SSLContext

    async def open(self, worker_id: str = "shop-1", **headers: str) -> ScriptedWorker:
        socket = await self.control.http.ws_connect(
            url(self.control, SOCKET_PATH), ssl=self.context, headers=headers, max_msg_size=10_000_000
        )
        worker = ScriptedWorker(worker_id, self.control, socket)
        self.control.workers.append(worker)
        return worker

    async def connect(self, worker_id: str = "shop-1", **changes: object) -> ScriptedWorker:
        worker = await self.open(worker_id)
        await worker.say(register(worker_id, self.control.clock, **changes))
        worker.registered = await worker.hear(Registered)
        return worker

    async def post(self, path: str, body: bytes, **headers: str) -> tuple[int, str, bytes]:
        async with self.control.http.post(
            url(self.control, path), data=body, headers={"Content-Type": CONTENT_TYPE, **headers}, ssl=self.context
        ) as response:
            return response.status, response.headers.get(ERROR_HEADER, ""), await response.read()

    async def upload(self, generation: int = 1, seq: int = 1, **headers: str) -> tuple[int, str, bytes]:
        header = look_header(self.control.clock, "cam_1", generation, seq)
        return await self.post(LOOKS_PATH, pack(header, PICTURE), **headers)

    async def refused(self) -> tuple[int, str]:
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await self.open()
        return caught.value.status, caught.value.headers[ERROR_HEADER] if caught.value.headers else ""


def far(control: RunningControl, identity: Enrolled) -> Far:
    return Far(control, tls.client_context(worker_ca(control.settings).pem, identity.chain_pem))


def nobody(control: RunningControl) -> Far:
    return Far(control, tls.client_context(worker_ca(control.settings).pem))


async def renewed(control: RunningControl, identity: Enrolled) -> Enrolled:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls.client_context(identity.ca_pem, identity.chain_pem))
    ) as http:
        return await enrolling.renew(http, url(control), identity)


# In ------------------------------------------------------------------------------------------------------------


async def test_from_a_token_to_an_acknowledged_look(control: RunningControl) -> None:
    identity = await enrolled(control)
    assert identity.validity.not_after_ms == control.clock.now_ms() + 30 * DAY_MS
    await control.hang_camera()
    shop = far(control, identity)
    worker = await shop.connect(site=identity.name.site)
    order = await worker.start()
    await worker.beat(("cam_1", order.generation))
    status, _, body = await shop.upload()
    assert status == 200, body
    assert isinstance(parse_answer(body), Recorded)
    # The name may be said as well, if it is the right one.
    assert (await shop.upload(seq=2, **{WORKER_HEADER: "shop-1"}))[0] == 200


async def test_a_token_works_once_and_only_at_its_server(control: RunningControl) -> None:
    token = await new_token(control)
    await enrolling.enroll(url(control), token, "shop-1")
    with pytest.raises(Forbidden, match="used already"):
        await enrolling.enroll(url(control), token, "shop-2")
    with pytest.raises(Forbidden, match="another fingerprint"):
        await enrolling.enroll(url(control), Token.make(new_authority().sha256), "shop-3")
    with pytest.raises(BadInput, match="can't be called"):
        await enrolling.enroll(url(control), await new_token(control), "工場")
    with pytest.raises(BadInput, match="https"):
        await enrolling.enroll(control.url(""), await new_token(control), "shop-3")
    with pytest.raises(Forbidden, match="there is a worker shop-1 already"):
        await enrolling.enroll(url(control), await new_token(control), "shop-1")


async def test_wrong_tokens_are_answered_only_so_often(control: RunningControl) -> None:
    authority = worker_ca(control.settings)
    for _ in range(TRIES_MAX):
        with pytest.raises(Forbidden, match="no such token"):
            await enrolling.enroll(url(control), Token.make(authority.sha256), "shop-1")
    right = await new_token(control)
    status, code, _ = await nobody(control).post(ENROLL_PATH, b"{}")
    assert (status, code) == (429, "too_many_tries")
    # TLS ends here, so no proxy wrote that.
    status, code, _ = await nobody(control).post(ENROLL_PATH, b"{}", **{"X-Forwarded-For": "203.0.113.7"})
    assert (status, code) == (429, "too_many_tries")
    await control.clock.advance(60_000)
    await enrolling.enroll(url(control), right, "shop-1")


async def test_the_certificate_says_whose_tenant_it_is(control: RunningControl) -> None:
    """Not the first one, and not what anybody claims."""
    now_ms = control.clock.now_ms()
    home = await control.store.write(add_tenant, "other", now_ms)
    await control.store.write(add_camera, home.tenant_id, home.site_id, "cam_1", now_ms)
    token = await new_token(control, tenant_id=home.tenant_id)
    identity, _ = await enrolling.enroll(url(control), token, "shop-1")
    shop = far(control, identity)
    worker = await shop.connect()
    order = await worker.start()
    await worker.beat(("cam_1", order.generation))
    status, _, body = await shop.upload()
    assert status == 200
    assert isinstance(parse_answer(body), Recorded)
    row = await control.store.read(_worker_row, "shop-1")
    assert (row.tenant_id, row.site_id) == (home.tenant_id, home.site_id)


async def _worker_row(tx: Tx, worker_id: str) -> Row:
    row = await tx.one("SELECT worker_key, tenant_id, site_id FROM workers WHERE worker_id = :w", w=worker_id)
    assert row is not None
    return Row(row["worker_key"], row["tenant_id"], row["site_id"])


# Not in --------------------------------------------------------------------------------------------------------


async def test_without_a_certificate_there_is_nothing_but_enrolment(control: RunningControl) -> None:
    stranger = nobody(control)
    token = {"Authorization": f"Bearer {control.token.reveal()}", WORKER_HEADER: "worker-1"}
    assert (await stranger.upload(**token))[:2] == (401, "unauthenticated")
    assert (await stranger.post(RENEW_PATH, b"{}"))[:2] == (401, "unauthenticated")
    async with control.http.get(url(control, "/readyz"), ssl=stranger.context) as response:
        assert response.status == 404, "what does not work here is not for strangers"
    assert await stranger.refused() == (401, "unauthenticated")


async def test_a_plain_token_stays_on_this_machine(control: RunningControl) -> None:
    headers = {"authorization": f"Bearer {control.token.reveal()}"}
    require_worker_token(headers, "127.0.0.1", control.token)
    for host in ("192.0.2.7", "2001:db8::7", "", "not an address"):
        with pytest.raises(Forbidden, match="can't sign in with a plain token over the network"):
            require_worker_token(headers, host, control.token)
    with pytest.raises(Unauthenticated):
        require_worker_token(headers, "127.0.0.1", Secret("another token"))
    async with control.http.post(control.url(ENROLL_PATH), data=b"{}") as response:
        assert response.status == 404, "no secret is asked for where nothing is encrypted"


async def test_certificates_of_another_ca_do_not_get_through_the_handshake(control: RunningControl) -> None:
    own = await enrolled(control)
    foreign = new_identity(own.name, new_authority())
    with pytest.raises((aiohttp.ClientError, ssl.SSLError, ConnectionError)):
        await far(control, foreign).upload()
    # Nor do those our own CA never gave anybody.
    forged = new_identity(own.name, worker_ca(control.settings), control.clock.now_ms())
    assert (await far(control, forged).upload())[:2] == (403, "certificate_revoked")


async def test_another_name_or_site_than_the_certificates_is_refused(control: RunningControl) -> None:
    await control.store.write(add_site, control.tenant_id, "annex", control.clock.now_ms())
    shop = far(control, await enrolled(control))
    for name, site, said in (
        ("shop-2", "main", "certificate is of worker shop-1"),
        ("shop-1", "annex", "certificate of worker shop-1 is for another site"),
    ):
        worker = await shop.open()
        await worker.say(register(name, control.clock, site=site))
        refusal = await worker.hear(Refused)
        assert refusal.error_code == "forbidden"
        assert said in refusal.message
        assert await worker.closed() == CLOSE_REFUSED
    assert (await shop.upload(**{WORKER_HEADER: "shop-2"}))[:2] == (403, "forbidden")
    worker = await shop.connect()
    await worker.say(Heartbeat(worker_id="shop-2", heartbeat_seq=1, boot_ms=1, state=WorkerState.RUNNING))
    assert "not shop-2's" in (await worker.hear(Refused)).message


# Time ----------------------------------------------------------------------------------------------------------


async def test_an_expired_certificate_can_be_renewed_and_nothing_else(control: RunningControl) -> None:
    identity = await enrolled(control)
    shop = far(control, identity)
    worker = await shop.connect()
    control.clock.jump_wall(30 * DAY_MS)
    await worker.say(Heartbeat(worker_id="shop-1", heartbeat_seq=1, boot_ms=1, state=WorkerState.RUNNING))
    assert (await worker.hear(Refused)).error_code == "certificate_expired", "also on a socket that is open"
    assert await worker.closed() == CLOSE_REFUSED
    assert (await shop.upload())[:2] == (403, "certificate_expired")
    assert await shop.refused() == (403, "certificate_expired")
    fresh = await renewed(control, identity)
    assert fresh.name == identity.name
    assert fresh.chain_pem.split("-----BEGIN")[1] != identity.chain_pem.split("-----BEGIN")[1], "with a new key"
    await far(control, fresh).connect()


async def test_long_after_its_end_a_certificate_is_worth_nothing(control: RunningControl) -> None:
    identity = await enrolled(control)
    control.clock.jump_wall(120 * DAY_MS)
    with pytest.raises(Forbidden, match="enroll this worker again"):
        await renewed(control, identity)
    assert await far(control, identity).refused() == (403, "forbidden")


async def test_a_request_for_renewal_that_makes_no_sense_is_refused(control: RunningControl) -> None:
    shop = far(control, await enrolled(control))
    for body in (b"", b"{}", b"x" * 100, json.dumps({"csr": "no pem"}).encode()):
        assert (await shop.post(RENEW_PATH, body))[:2] == (400, "bad_input")
    assert (await shop.post(RENEW_PATH, b"x" * 10_000))[:2] == (413, "too_large")


async def test_the_port_gets_a_new_certificate_in_time(control: RunningControl) -> None:
    clock = ManualClock()
    port = TlsPort(worker_ca(control.settings), ("cams.example.com",), "control.tls_names", clock)
    before = port._made_ms
    keeping = asyncio.ensure_future(port.keep())
    await clock.until_sleeping()
    clock.jump_wall(29 * DAY_MS)
    await clock.advance(HOUR_MS)
    assert port._made_ms == before
    clock.jump_wall(2 * DAY_MS)
    await clock.advance(HOUR_MS)
    assert port._made_ms > before
    keeping.cancel()


# Out -----------------------------------------------------------------------------------------------------------


async def test_a_revoked_worker_is_out_at_once(control: RunningControl) -> None:
    identity = await enrolled(control)
    shop = far(control, identity)
    worker = await shop.connect()
    assert (await shop.upload())[0] == 200
    people = control.store.as_(admin_of(control.tenant_id))
    await people.write(revoke, "shop-1", "", control.clock.now_ms())
    await control.clock.until_sleeping(TLS_SLEEPERS)
    await control.clock.advance(1000)
    assert (await worker.hear(Refused)).error_code == "certificate_revoked"
    assert await worker.closed() == CLOSE_REFUSED
    assert (await shop.upload(seq=2))[:2] == (403, "certificate_revoked")
    assert await shop.refused() == (403, "certificate_revoked")
    with pytest.raises(Forbidden, match="revoked"):
        await renewed(control, identity)


async def test_who_is_revoked_gets_no_camera_and_is_not_heard(control: RunningControl) -> None:
    """Also when it does not close its side."""
    shop = far(control, await enrolled(control))
    worker = await shop.connect()
    people = control.store.as_(admin_of(control.tenant_id))
    await people.write(revoke, "shop-1", "", control.clock.now_ms())
    await control.hang_camera()
    await control.clock.until_sleeping(TLS_SLEEPERS)
    await control.clock.advance(1000)
    assert await worker.closed() == CLOSE_REFUSED
    assert not any(isinstance(message, Start) for message in worker.heard)


async def test_whoever_enrolls_anew_by_name_replaces_the_machine_before(control: RunningControl) -> None:
    before = await enrolled(control)
    worker = await far(control, before).connect()
    after, _ = await enrolling.enroll(url(control), await new_token(control, "shop-1"), "shop-1")
    await control.clock.until_sleeping(TLS_SLEEPERS)
    await control.clock.advance(1000)
    assert await worker.closed() == CLOSE_REFUSED
    assert await far(control, before).refused() == (403, "certificate_revoked")
    await far(control, after).connect()
    assert after.name == WorkerName(before.name.tenant, before.name.site, "shop-1")
