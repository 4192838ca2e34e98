"""Tokens that work once and certificates that end when people say so, on every database and under races."""

import asyncio

import pytest

from camserver.base.errors import BadInput, CamError, Conflict, Forbidden, NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, sites
from camserver.store.intents import pending
from camserver.store.leases import Want, take_all
from camserver.store.worker_identities import (
    TOKENS_OPEN_MAX,
    CertificateRow,
    Invitation,
    enrol,
    invitation,
    invite,
    known,
    renewed,
    revoke,
    revoked_since,
)
from camserver.store.workers import register, sign_in
from tests.store.people_rows import admin_of, audit_rows
from tests.store.stage import NOW_MS, TTL_MS, Stage, add_site, build, registration, session

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR_MS = 3_600_000
MONTH_MS = 30 * 24 * HOUR_MS


def certificate(number: int, expires_at: int = NOW_MS + MONTH_MS) -> CertificateRow:
    return CertificateRow(f"{number:040x}", f"{number:064x}", expires_at)


async def token(
    store: Store, stage: Stage, name: str = "hash", worker_id: str | None = None, site: str | None = "main"
) -> str:
    await store.as_(admin_of(stage.tenant_id)).write(invite, name, site, worker_id, HOUR_MS, "192.0.2.9", NOW_MS)
    return name


async def test_a_token_makes_a_worker_once(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage)
    done = await fresh_store.write(enrol, "hash", "new", certificate(1), "", NOW_MS + 1)
    assert (done.tenant_id, done.site_id, done.worker_id) == (stage.tenant_id, stage.site_id, None)
    found = await fresh_store.read(known, certificate(1).serial)
    assert found is not None
    assert (found.tenant_id, found.site_id, found.worker_id, found.revoked) == (
        stage.tenant_id,
        stage.site_id,
        "new",
        False,
    )
    with pytest.raises(Forbidden, match="used already"):
        await fresh_store.write(enrol, "hash", "newer", certificate(2), "", NOW_MS + 2)
    assert await fresh_store.read(known, certificate(2).serial) is None
    actions = [(row[1], row[3]) for row in await fresh_store.read(audit_rows)]
    assert actions[-2:] == [("worker_token_made", ""), ("worker_enrolled", "new")]


async def test_of_many_who_have_one_token_one_gets_in(fresh_pair: tuple[Store, Store]) -> None:
    stage = await build(fresh_pair[0])
    await token(fresh_pair[0], stage)

    async def attempt(number: int) -> Invitation | CamError:
        try:
            store = fresh_pair[number % 2]
            return await store.write(enrol, "hash", f"w-{number}", certificate(number), "", NOW_MS)
        except CamError as error:
            return error

    answers = await asyncio.gather(*(attempt(number) for number in range(8)))
    assert sum(isinstance(answer, Invitation) for answer in answers) == 1
    assert all(isinstance(answer, Invitation | Forbidden) for answer in answers)
    rows = [await fresh_pair[0].read(known, certificate(number).serial) for number in range(8)]
    assert sum(row is not None for row in rows) == 1


async def test_of_many_who_want_one_name_one_gets_it(fresh_pair: tuple[Store, Store]) -> None:
    stage = await build(fresh_pair[0])
    for number in range(6):
        await token(fresh_pair[0], stage, f"hash-{number}")

    async def attempt(number: int) -> bool:
        try:
            await fresh_pair[number % 2].write(enrol, f"hash-{number}", "same", certificate(number), "", NOW_MS)
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*(attempt(number) for number in range(6)))) == 1


async def test_tokens_end_and_are_for_whom_they_name(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage, "named", "worker-0")
    with pytest.raises(Forbidden, match="for the worker worker-0"):
        await fresh_store.write(enrol, "named", "other", certificate(1), "", NOW_MS)
    with pytest.raises(Forbidden, match="no such token"):
        await fresh_store.read(invitation, "unknown", NOW_MS)
    with pytest.raises(Forbidden, match="time is over"):
        await fresh_store.write(enrol, "named", "worker-0", certificate(1), "", NOW_MS + HOUR_MS)
    await fresh_store.write(enrol, "named", "worker-0", certificate(1), "", NOW_MS + HOUR_MS - 1)


async def test_a_token_without_a_name_takes_nobodys_place(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage)
    with pytest.raises(Conflict, match="worker-0 already"):
        await fresh_store.write(enrol, "hash", "worker-0", certificate(1), "", NOW_MS)
    await fresh_store.write(enrol, "hash", "new", certificate(1), "", NOW_MS)
    await token(fresh_store, stage, "again")
    with pytest.raises(Conflict, match="new already"):
        await fresh_store.write(enrol, "again", "new", certificate(2), "", NOW_MS)
    # Named by somebody who may: the machine before is out.
    await token(fresh_store, stage, "named", "new")
    await fresh_store.write(enrol, "named", "new", certificate(3), "", NOW_MS + 5)
    before, after = [await fresh_store.read(known, certificate(number).serial) for number in (1, 3)]
    assert before is not None
    assert before.revoked
    assert after is not None
    assert not after.revoked


async def test_only_so_many_tokens_wait(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    for number in range(TOKENS_OPEN_MAX):
        await token(fresh_store, stage, f"hash-{number}")
    with pytest.raises(Conflict, match="wait to be used"):
        await token(fresh_store, stage, "one more")
    admin = fresh_store.as_(admin_of(stage.tenant_id))
    await admin.write(invite, "later", "main", None, HOUR_MS, "", NOW_MS + 2 * HOUR_MS)


async def test_a_certificate_is_renewed_until_it_is_revoked(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage)
    await fresh_store.write(enrol, "hash", "new", certificate(1), "", NOW_MS)
    old = certificate(1).expires_at
    after = await fresh_store.write(renewed, certificate(1).serial, certificate(2, old + MONTH_MS), 0, NOW_MS + 1)
    assert after is not None
    assert after.worker_id == "new"
    assert await fresh_store.write(renewed, "f" * 40, certificate(3), 0, NOW_MS) is None
    assert await fresh_store.read(revoked_since, 0) == ()
    admin = fresh_store.as_(admin_of(stage.tenant_id))
    assert await admin.write(revoke, "new", "192.0.2.9", NOW_MS + 10) == 2
    assert set(await fresh_store.read(revoked_since, NOW_MS + 10)) == {certificate(1).serial, certificate(2).serial}
    assert await fresh_store.read(revoked_since, NOW_MS + 11) == ()
    assert await fresh_store.write(renewed, certificate(2).serial, certificate(3), 0, NOW_MS + 11) is None
    with pytest.raises(NotFound, match="no certificate to revoke"):
        await admin.write(revoke, "new", "", NOW_MS + 12)
    assert [(row[1], row[3]) for row in await fresh_store.read(audit_rows)][-1] == ("worker_revoked", "new")


async def test_old_certificates_are_forgotten_with_a_renewal(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage)
    await fresh_store.write(enrol, "hash", "new", certificate(1), "", NOW_MS)
    later = certificate(1).expires_at + 1
    await fresh_store.write(renewed, certificate(1).serial, certificate(2, later + MONTH_MS), later, later)
    assert await fresh_store.read(known, certificate(1).serial) is None
    assert await fresh_store.read(known, certificate(2).serial) is not None


async def test_no_renewal_escapes_a_revocation(fresh_pair: tuple[Store, Store]) -> None:
    first, second = fresh_pair
    stage = await build(first)
    admin = first.as_(admin_of(stage.tenant_id))
    for turn in range(10):
        name, start = f"w-{turn}", 100 * turn + 1
        await token(first, stage, name, name)
        await first.write(enrol, name, name, certificate(start), "", NOW_MS)

        async def renew_on(begin: int) -> None:
            for number in range(begin, begin + 5):
                if (
                    await second.write(renewed, certificate(number).serial, certificate(number + 1), 0, NOW_MS)
                    is None
                ):
                    return

        await asyncio.gather(renew_on(start), admin.write(revoke, name, "", NOW_MS + 1))
        rows = [await first.read(known, certificate(number).serial) for number in range(start, start + 6)]
        assert all(row.revoked for row in rows if row is not None)


async def test_a_revoked_workers_open_token_is_void(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await token(fresh_store, stage, "first", "new")
    await fresh_store.write(enrol, "first", "new", certificate(1), "", NOW_MS)
    await token(fresh_store, stage, "second", "new")
    await fresh_store.as_(admin_of(stage.tenant_id)).write(revoke, "new", "", NOW_MS)
    with pytest.raises(Forbidden, match="no such token"):
        await fresh_store.read(invitation, "second", NOW_MS)


async def test_other_tenants_and_sites_are_not_there(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    other = await build(fresh_store, workers=0, cameras=0, name="other")
    annex_id = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    await token(fresh_store, stage)
    await fresh_store.write(enrol, "hash", "new", certificate(1), "", NOW_MS)
    annex_only = Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset({annex_id}))
    for stranger in (annex_only, admin_of(other.tenant_id)):
        with pytest.raises(NotFound):
            await fresh_store.as_(stranger).write(revoke, "new", "", NOW_MS)
    with pytest.raises(NotFound, match="no site"):
        await fresh_store.as_(annex_only).write(invite, "h", "main", None, HOUR_MS, "", NOW_MS)
    with pytest.raises(BadInput, match="for which site"):
        await fresh_store.as_(admin_of(stage.tenant_id)).write(invite, "h", None, None, HOUR_MS, "", NOW_MS)
    own = await fresh_store.as_(annex_only).write(invite, "h", None, None, HOUR_MS, "", NOW_MS)
    assert own.site == "annex"


async def test_a_removed_site_lets_no_worker_in(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    await token(fresh_store, stage, "early", "new", "annex")
    admin = fresh_store.as_(admin_of(stage.tenant_id))
    await admin.write(sites.remove, "annex", "", NOW_MS)
    with pytest.raises(Forbidden, match="no such token"):
        await fresh_store.write(enrol, "early", "new", certificate(1), "", NOW_MS)
    own = await admin.write(invite, "h", None, None, HOUR_MS, "", NOW_MS)
    assert own.site == "main", "the only one there is"


async def test_a_name_belongs_to_its_site(fresh_store: Store) -> None:
    stage = await build(fresh_store, workers=1)
    annex_id = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    await token(fresh_store, stage, "early", "lodge", "annex")
    await token(fresh_store, stage, "own", "lodge", "main")
    annex_only = Principal(stage.tenant_id, None, Role.SITE_MANAGER, frozenset({annex_id}))
    # A worker without a certificate, and one whose certificate is its only trace.
    await fresh_store.write(enrol, "own", "lodge", certificate(1), "", NOW_MS)
    for name in ("worker-0", "lodge"):
        with pytest.raises(Conflict, match="another site"):
            await fresh_store.as_(annex_only).write(invite, "late", "annex", name, HOUR_MS, "", NOW_MS)
    # Nor by a token that was made before there was such a worker.
    with pytest.raises(Conflict, match="another site"):
        await fresh_store.write(enrol, "early", "lodge", certificate(2), "", NOW_MS)
    kept = await fresh_store.read(known, certificate(1).serial)
    assert kept is not None
    assert not kept.revoked
    assert await fresh_store.read(known, certificate(2).serial) is None


async def test_a_worker_that_comes_from_another_site_holds_nothing_of_the_one_before(fresh_store: Store) -> None:
    stage = await build(fresh_store, workers=1, cameras=2)
    await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    wants = tuple(Want(camera.key, stage.workers[0].worker_key, 0) for camera in stage.cameras)
    assert len(await fresh_store.write(take_all, wants, TTL_MS, NOW_MS)) == 2
    held = ((stage.cameras[0].id, 1),)
    back = await fresh_store.write(sign_in, stage.tenant_id, registration("worker-0"), held, TTL_MS, NOW_MS)
    assert (back.renewal.renewed, back.restarted) == (held, (stage.cameras[1].id,))
    moved = registration("worker-0", "annex")
    gone = await fresh_store.write(sign_in, stage.tenant_id, moved, held, TTL_MS, NOW_MS)
    assert (gone.renewal.renewed, gone.restarted) == ((), ())
    assert await fresh_store.read(pending, (stage.workers[0].worker_key,)) == ()
    for camera in stage.cameras:
        assert (await session(fresh_store, camera.key))["worker_key"] is None


async def test_a_proven_site_is_the_only_one(fresh_store: Store) -> None:
    stage = await build(fresh_store)
    annex_id = await fresh_store.write(add_site, stage.tenant_id, "annex", NOW_MS)
    silent = registration("new", "", proven_site_id=annex_id)
    assert (await fresh_store.write(register, stage.tenant_id, silent, NOW_MS)).site_id == annex_id
    said = registration("new", "annex", proven_site_id=annex_id)
    assert (await fresh_store.write(register, stage.tenant_id, said, NOW_MS)).site_id == annex_id
    with pytest.raises(Forbidden, match="another site"):
        await fresh_store.write(
            register, stage.tenant_id, registration("new", "main", proven_site_id=annex_id), NOW_MS
        )
