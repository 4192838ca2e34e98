"""Whose account it is that somebody comes in to, on each database."""

import asyncio

import pytest

from camserver.base.errors import Conflict
from camserver.domain.oidc import Claimed, EntryRules, Failure, OidcRefused
from camserver.domain.people import Principal, Role
from camserver.store import Scoped, Store, Tx, audit, grants, identities, oidc_entries, people
from camserver.store.identities import Identity
from tests.store.people_rows import NOW_MS, add_tenant, add_user, admin_of, prepare

pytestmark = pytest.mark.asyncio(loop_scope="module")

ISSUER = "https://id.example"
CREATE, LINK = EntryRules(create=True), EntryRules(link_by_login=True)


def person(subject: str = "subject", login: str = "guard", *groups: str) -> Claimed:
    return Claimed(ISSUER, subject, login, "Guard", frozenset(groups))


async def enter(store: Store, who: Claimed, rules: EntryRules) -> oidc_entries.Entered:
    return await store.write(oidc_entries.enter, who, rules, "en", "10.0.0.1", NOW_MS)


async def failure_of(store: Store, who: Claimed, rules: EntryRules) -> Failure:
    with pytest.raises(OidcRefused) as caught:
        await enter(store, who, rules)
    await store.write(oidc_entries.note_failed, caught.value.failure, who, "10.0.0.1", NOW_MS)
    return caught.value.failure


async def noted(store: Store, tenant_id: int) -> list[str]:
    async def read(tx: Tx) -> list[str]:
        rows = await tx.all(
            "SELECT action FROM audit_log WHERE tenant_id = :tenant_id ORDER BY entry_id LIMIT 100",
            tenant_id=tenant_id,
        )
        return [row["action"] for row in rows]

    return await store.read(read)


async def test_somebody_is_made_once_however_many_come_at_once(fresh_pair: tuple[Store, Store]) -> None:
    home = await prepare(fresh_pair[0])
    entered = await asyncio.gather(*(enter(fresh_pair[one % 2], person(), CREATE) for one in range(6)))
    assert len(set(entered)) == 1
    found = await fresh_pair[1].as_(admin_of(home.tenant_id)).read(people.get, "guard")
    assert (found.oidc_subject, found.role, found.has_password, found.granted) == (
        "subject",
        Role.VIEWER,
        False,
        None,
    )
    assert await noted(fresh_pair[0], home.tenant_id) == ["user_added"]


async def test_of_two_with_one_name_the_first_is_linked(fresh_pair: tuple[Store, Store]) -> None:
    home = await prepare(fresh_pair[0])
    user_id = await fresh_pair[0].write(add_user, home.tenant_id, "guard", "viewer", None, NOW_MS)
    tries = (enter(fresh_pair[one % 2], person(f"subject {one}"), LINK) for one in range(2))
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    [entered] = [one for one in outcomes if isinstance(one, oidc_entries.Entered)]
    [problem] = [one for one in outcomes if isinstance(one, OidcRefused)]
    assert (entered.user_id, problem.failure) == (user_id, Failure.LOGIN_TAKEN)


async def test_subjects_are_compared_letter_by_letter(fresh_store: Store) -> None:
    await prepare(fresh_store)
    await enter(fresh_store, person("abc"), CREATE)
    for other in ("ABC", "ab", "abcd", "\uff41bc"):
        assert await failure_of(fresh_store, person(other, "other"), EntryRules()) is Failure.UNKNOWN


async def reach(tx: Tx, user_id: int) -> Principal:
    """As a session has it."""
    [row] = await tx.all("SELECT tenant_id, role, granted_only FROM users WHERE user_id = :id", id=user_id)
    wide = Principal(row["tenant_id"], user_id, Role(row["role"]))
    [found] = await grants.narrowed(tx, [wide], {user_id} if row["granted_only"] else set())
    return found


@pytest.mark.parametrize("sites", [("main",), ()], ids=["a site", "nothing"])
async def test_a_role_that_groups_gave_for_a_while_leaves_the_grants_as_they_were(
    fresh_store: Store, sites: tuple[str, ...]
) -> None:
    home = await prepare(fresh_store)
    rules = EntryRules(create=True, roles=(("guards", Role.VIEWER), ("chiefs", Role.TENANT_ADMIN)))
    admin = fresh_store.as_(admin_of(home.tenant_id))
    await enter(fresh_store, person("s", "guard", "guards"), rules)
    narrow = people.PersonChange(granted_only=True, granted=grants.Granted(sites=sites))
    await admin.write(people.change, "guard", narrow, "", NOW_MS)
    user_id = (await admin.read(people.get, "guard")).user_id
    held = await fresh_store.read(reach, user_id)
    await enter(fresh_store, person("s", "guard", "chiefs"), rules)
    assert (await admin.read(people.get, "guard")).granted is None
    assert (await fresh_store.read(reach, user_id)).site_ids is None
    # What else is changed of an administrator says nothing of that.
    await admin.write(people.change, "guard", people.PersonChange(display_name="Guard"), "", NOW_MS)
    await enter(fresh_store, person("s", "guard", "guards"), rules)
    assert (await admin.read(people.get, "guard")).granted == grants.Granted(sites=sites)
    assert await fresh_store.read(reach, user_id) == held
    assert held.site_ids == frozenset({home.site_id} if sites else ())
    # An administrator who says that somebody reaches everything is heard.
    await admin.write(people.change, "guard", people.PersonChange(granted_only=False), "", NOW_MS)
    assert (await fresh_store.read(reach, user_id)).site_ids is None


async def test_a_role_follows_the_groups(fresh_store: Store) -> None:
    home = await prepare(fresh_store)
    rules = EntryRules(create=True, roles=(("guards", Role.VIEWER), ("chiefs", Role.TENANT_ADMIN)))
    admin = fresh_store.as_(admin_of(home.tenant_id))
    await enter(fresh_store, person("s", "guard", "guards"), rules)
    narrow = people.PersonChange(granted_only=True, granted=grants.Granted(sites=("main",)))
    await admin.write(people.change, "guard", narrow, "", NOW_MS)
    await enter(fresh_store, person("s", "guard", "guards"), rules)
    assert (await admin.read(people.get, "guard")).granted is not None
    await enter(fresh_store, person("s", "guard", "chiefs"), rules)
    found = await admin.read(people.get, "guard")
    assert (found.role, found.granted) == (Role.TENANT_ADMIN, None)
    assert await failure_of(fresh_store, person("s"), rules) is Failure.NO_GROUP
    wanted = ["user_added", "user_changed", "user_changed", "sign_in_failed"]
    assert await noted(fresh_store, home.tenant_id) == wanted


async def test_tenants_bound_who_comes_in_and_as_what(fresh_store: Store) -> None:
    store, home = fresh_store, await prepare(fresh_store)
    other = await store.write(add_tenant, "other", NOW_MS)
    far_id = await store.write(add_user, other.tenant_id, "far", "viewer", None, NOW_MS)
    far = store.as_(admin_of(other.tenant_id))
    await far.write(put, far_id, Identity(ISSUER, "subject"), NOW_MS)
    chiefs = EntryRules(create=True, roles=(("chiefs", Role.SYSTEM_ADMIN),))
    await enter(store, person("subject", "far", "chiefs"), chiefs)
    assert (await far.read(people.get, "far")).role is Role.VIEWER, "whoever runs the installation is of its home"
    await store.write(_set_tenant, other.tenant_id, "disabled", 1)
    assert await failure_of(store, person("subject", "far", "chiefs"), chiefs) is Failure.DISABLED
    await enter(store, person("near", "near", "chiefs"), chiefs)
    await store.write(_set_tenant, home.tenant_id, "people_max", 1)
    assert await failure_of(store, person("next", "next", "chiefs"), chiefs) is Failure.UNKNOWN


async def _set_tenant(tx: Tx, tenant_id: int, column: str, value: int) -> None:
    await tx.run(
        f"UPDATE tenants SET {column} = :value WHERE tenant_id = :tenant_id", tenant_id=tenant_id, value=value
    )


async def test_somebody_is_added_with_a_subject_under_a_login_of_their_own(fresh_store: Store) -> None:
    home = await prepare(fresh_store)
    other = await fresh_store.write(add_tenant, "other", NOW_MS)
    new = people.NewPerson("kato", "Kato", "ja", Role.VIEWER, None, identity=Identity(ISSUER, "subject"))
    added = await fresh_store.as_(admin_of(home.tenant_id)).write(people.add, new, "", NOW_MS)
    assert added.oidc_subject == "subject"
    assert (await enter(fresh_store, person(), EntryRules())).login == "kato"
    for tenant_id in (home.tenant_id, other.tenant_id):
        with pytest.raises(Conflict):
            await fresh_store.as_(admin_of(tenant_id)).write(people.add, new, "", NOW_MS)


async def put(tx: Scoped, user_id: int, identity: Identity, now_ms: int) -> None:
    """As a change of somebody does it, which is logged."""
    await identities.put(tx, user_id, identity, now_ms)
    await audit.add_own(tx, audit.Entry("user_changed", now_ms))


async def test_a_subject_is_one_persons_over_all_tenants_and_goes_with_them(fresh_store: Store) -> None:
    home = await prepare(fresh_store)
    other = await fresh_store.write(add_tenant, "other", NOW_MS)
    near, far = fresh_store.as_(admin_of(home.tenant_id)), fresh_store.as_(admin_of(other.tenant_id))
    user_id = await fresh_store.write(add_user, home.tenant_id, "near", "viewer", None, NOW_MS)
    far_id = await fresh_store.write(add_user, other.tenant_id, "far", "viewer", None, NOW_MS)
    await near.write(put, user_id, Identity(ISSUER, "subject"), NOW_MS)
    with pytest.raises(Conflict):
        await far.write(put, far_id, Identity(ISSUER, "subject"), NOW_MS)
    # Another tenant's link can't be taken away.
    await far.write(put, user_id, Identity(ISSUER, ""), NOW_MS)
    assert (await enter(fresh_store, person(), EntryRules())).login == "near"
    await near.write(people.remove, "near", "", NOW_MS)
    assert await failure_of(fresh_store, person(), EntryRules()) is Failure.UNKNOWN
    await far.write(put, far_id, Identity(ISSUER, "subject"), NOW_MS)
    assert (await enter(fresh_store, person(), EntryRules())).tenant_id == other.tenant_id
