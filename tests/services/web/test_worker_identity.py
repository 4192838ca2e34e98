"""Tokens for workers at other sites and the end of certificates, over the API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from camserver.config import worker_ca
from camserver.services.web.messages import _JA_BY_REASON
from camserver.store import Store
from camserver.store.worker_identities import CertificateRow, enrol, known
from camserver.wire.enrolment import Token, secret_hash
from tests.rig.clock import ManualClock
from tests.services.web.rig import RunningWeb, running_web
from tests.services.web.test_delegation import add_site
from tests.store.people_rows import audit_rows

PATH = "/api/workers/enrolments"
CERTIFICATE = CertificateRow("1" * 40, "1" * 64, 4_000_000_000_000)


@pytest.fixture
async def tls_web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(sqlite_store, clock, tmp_path, {"CAMSERVER_CONTROL_TLS_PORT": "8443"}) as web:
        yield web


async def test_a_token_is_made_used_and_its_worker_revoked(tls_web: RunningWeb) -> None:
    web = tls_web
    owner = await web.owner()
    reply = await owner.post(PATH, {"worker_id": "shop-1", "ttl_sec": 600})
    assert reply.status == 200, reply.content
    token = Token.parse(reply.body["token"])
    assert token.ca_sha256 == reply.body["ca_sha256"] == worker_ca(web.settings).sha256
    assert (reply.body["site"], reply.body["worker_id"]) == ("main", "shop-1")
    assert reply.body["expires_at"] == web.clock.now_ms() + 600_000
    hashed = secret_hash(token.secret.reveal())
    await web.store.write(enrol, hashed, "shop-1", CERTIFICATE, "", web.clock.now_ms())
    revoked = await owner.post("/api/workers/shop-1/revoke", {})
    assert (revoked.status, revoked.body) == (200, {"worker_id": "shop-1", "certificates": 1})
    found = await web.store.read(known, CERTIFICATE.serial)
    assert found is not None
    assert found.revoked
    again = await owner.post("/api/workers/shop-1/revoke", {})
    assert (again.status, again.body["details"]["reason"]) == (404, "no_certificate")
    rows = await web.store.read(audit_rows)
    assert [row[1] for row in rows][-3:] == ["worker_token_made", "worker_enrolled", "worker_revoked"]
    assert token.secret.reveal() not in str(rows)


async def test_which_site_must_be_clear(tls_web: RunningWeb) -> None:
    owner = await tls_web.owner()
    await tls_web.store.write(add_site, "annex", tls_web.clock.now_ms())
    unclear = await owner.post(PATH, {})
    assert (unclear.status, unclear.body["details"]["reason"]) == (400, "which_site")
    assert (await owner.post(PATH, {"site": "nowhere"})).status == 404
    assert (await owner.post(PATH, {"site": "annex"})).body["site"] == "annex"
    for body in ({"ttl_sec": 1}, {"worker_id": "no good"}, {"sites": "annex"}):
        assert (await owner.post(PATH, body)).status == 400


async def test_without_the_port_there_are_no_tokens(web: RunningWeb) -> None:
    owner = await web.owner()
    refused = await owner.post(PATH, {})
    assert (refused.status, refused.body["details"]["reason"]) == (409, "tls_off")
    assert "tls_port" in refused.body["message"]


def test_refusals_have_their_japanese() -> None:
    assert {"tls_off", "tokens_full", "which_site", "no_certificate"} <= set(_JA_BY_REASON)
