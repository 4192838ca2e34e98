"""People, tokens, grants and sites in the store, on each database; who may do what is in the web's tests."""

import pytest

from camserver.base.errors import Conflict, Forbidden, NotFound, Unauthenticated
from camserver.domain.people import Permission, Principal, Role
from camserver.store import (
    Store,
    audit_pages,
    cameras,
    cases,
    event_pages,
    frame_pages,
    grants,
    password_links,
    people,
    sessions,
    sites,
    tokens,
)
from camserver.store.audit_pages import AuditFilter
from camserver.store.cameras import NewCamera, Stream
from camserver.store.grants import Granted
from camserver.store.identities import Identity
from camserver.store.overrides import Overrides
from camserver.store.people import NewPerson, PersonChange
from camserver.store.sessions import NewSession
from camserver.store.tokens import NewToken
from tests.store.people_rows import NOW_MS, FrameRow, add_event, add_frame, admin_of, prepare, told

HASH = "$argon2id$not-checked"


def camera_of(camera_id: str) -> NewCamera:
    return NewCamera(camera_id, camera_id, None, Stream("test", "test://moving"), None, None, Overrides())


def new(login: str, role: Role = Role.VIEWER, granted: Granted | None = None) -> NewPerson:
    return NewPerson(login, login, "en", role, granted, HASH)


async def test_people_come_change_and_go_with_what_is_theirs(store: Store) -> None:
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    north = await mine.write(sites.add, "north", "Asia/Tokyo", "", NOW_MS)
    added = await mine.write(people.add, new("guard", granted=Granted(("north",))), "", NOW_MS)
    assert added.granted == Granted(("north",))
    with pytest.raises(Conflict, match="somebody with the login"):
        await mine.write(people.add, new("guard"), "", NOW_MS)
    session = NewSession("hash", "csrf", 12, "10.0.0.1", "browser")
    await store.write(sessions.begin, added.user_id, tenant_id, session, NOW_MS)
    token = NewToken("guard", "t", frozenset({Permission.READ}), NOW_MS + 1_000, "token-hash")
    made = await mine.write(tokens.add, token, "", NOW_MS)
    await mine.write(password_links.add, "guard", "link-hash", "", NOW_MS)
    signed_in = await store.read(sessions.find, "hash", NOW_MS)
    known = await store.read(tokens.find, "token-hash", NOW_MS)
    assert signed_in is not None
    assert known is not None
    assert signed_in.principal.site_ids == known.principal.site_ids == frozenset({north.site_id})
    assert known.principal.scopes == frozenset({Permission.READ})
    await store.as_(known.principal).write(tokens.touch, "10.0.0.2", NOW_MS)
    (listed,) = await mine.read(tokens.page, None, "", 10, NOW_MS)
    assert (listed.token_uuid, listed.last_address) == (made.token_uuid, "10.0.0.2")
    again = await store.read(sessions.principals, (signed_in.principal.session_id or 0,), NOW_MS)
    assert [one.site_ids for one in again.values()] == [frozenset({north.site_id})]
    assert await store.read(tokens.find, "token-hash", NOW_MS + 1_000) is None, "its time is over"
    changed = await mine.write(
        people.change, "guard", PersonChange(role=Role.SITE_MANAGER, granted_only=False), "", 5
    )
    assert (changed.role, changed.granted) == (Role.SITE_MANAGER, None)
    await mine.write(people.remove, "guard", "", NOW_MS)
    for gone in (
        await store.read(sessions.find, "hash", NOW_MS),
        await store.read(tokens.find, "token-hash", NOW_MS),
        await store.read(password_links.find, "link-hash", NOW_MS),
    ):
        assert gone is None


async def test_the_log_says_what_rights_somebody_was_given(store: Store) -> None:
    mine = store.as_(admin_of((await prepare(store)).tenant_id))
    for number in range(100):
        await mine.write(sites.add, f"site-{number:04d}", "UTC", "", NOW_MS)
    await mine.write(people.add, new("guard", granted=Granted(("site-0001", "site-0000"))), "", NOW_MS)
    for change in (
        PersonChange(role=Role.SITE_MANAGER, granted_only=False),
        PersonChange(granted_only=True, granted=Granted(tuple(f"site-{number:04d}" for number in range(100)))),
        PersonChange(disabled=True, display_name="Guard"),
        PersonChange(disabled=False, identity=Identity("https://id.example", "subject-1")),
    ):
        await mine.write(people.change, "guard", change, "", NOW_MS)
    names = ", ".join(f"site-{number:04d}" for number in range(45))
    manager = {"login": "guard", "role": "site_manager"}
    assert await told(store, "user_added", "user_changed") == [
        {"login": "guard", "role": "viewer", "all_sites": 0, "sites": "site-0000, site-0001", "camera_ids": ""},
        {**manager, "changed": "role granted_only", "role_before": "viewer", "all_sites": 1},
        {
            **manager,
            "changed": "granted_only granted",
            "all_sites": 0,
            "sites": f"{names} (+55)",
            "camera_ids": "",
        },
        {**manager, "changed": "display_name disabled", "disabled": 1},
        {**manager, "changed": "disabled identity", "disabled": 0, "oidc_subject": "subject-1"},
    ]


async def test_grants_of_a_camera_end_with_it(store: Store) -> None:
    """Also of its evidence, which stays; and whoever has no grants left reaches nothing, never everything."""
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    for camera_id in ("cam_1", "cam_2"):
        await mine.write(cameras.add, camera_of(camera_id), "", NOW_MS)
    event_id = await store.write(add_event, tenant_id, "cam_1", "e1", NOW_MS)
    frame = FrameRow(tenant_id, "cam_1", NOW_MS, "f1", event_id=event_id)
    await store.write(add_frame, frame)
    guard = await mine.write(people.add, new("guard", granted=Granted((), ("cam_1",))), "", NOW_MS)
    both = await mine.write(people.add, new("both", granted=Granted((), ("cam_1", "cam_2"))), "", NOW_MS)
    wide = [Principal(tenant_id, one.user_id, Role.VIEWER) for one in (guard, both)]
    held = frozenset({guard.user_id, both.user_id})
    before = await store.read(grants.narrowed, tuple(wide), held)
    for one in before:
        assert (await store.as_(one).read(event_pages.get, "e1")).summary.camera_id == "cam_1"
    await mine.write(cameras.remove, "cam_1", "", NOW_MS)
    after = await store.read(grants.narrowed, tuple(wide), held)
    assert [one.reaches_nothing for one in after] == [True, False]
    for one in after:
        scoped = store.as_(one)
        with pytest.raises(NotFound):
            await scoped.read(event_pages.get, "e1")
        with pytest.raises(NotFound):
            await scoped.read(frame_pages.get, "f1")
    assert [one.camera_id for one in await store.as_(after[0]).read(cameras.page, "", 10)] == []
    assert [one.camera_id for one in await store.as_(after[1]).read(cameras.page, "", 10)] == ["cam_2"]
    # Another camera of that name is another one.
    await mine.write(cameras.add, camera_of("cam_1"), "", NOW_MS)
    assert (await store.read(grants.narrowed, tuple(wide), held)) == after
    assert (await mine.read(people.get, "guard")).granted == Granted()


async def test_a_link_works_once_and_ends_the_sign_ins(store: Store) -> None:
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    person = await mine.write(people.add, new("guard"), "", NOW_MS)
    await store.write(sessions.begin, person.user_id, tenant_id, NewSession("hash", "c", 12, "", ""), NOW_MS)
    await mine.write(password_links.add, "guard", "link", "", NOW_MS)
    chooser = await store.read(password_links.find, "link", NOW_MS)
    assert chooser is not None
    await store.as_(chooser.principal).write(password_links.use, "link", "new", "", NOW_MS)
    assert await store.read(password_links.find, "link", NOW_MS) is None
    assert await store.read(sessions.find, "hash", NOW_MS) is None
    assert await mine.read(people.password_hash_of, person.user_id) == "new"


async def test_a_former_password_signs_nobody_in(store: Store) -> None:
    """Comparing takes its time: what was right when it began may have been replaced when it ended."""
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    person = await mine.write(people.add, new("guard"), "", NOW_MS)
    former = NewSession("former", "c", 12, "", "", proved_by=HASH)
    await store.write(sessions.begin, person.user_id, tenant_id, former, NOW_MS)
    await mine.write(people.set_password, person.user_id, "new hash", None, "", NOW_MS)
    late = NewSession("late", "c", 12, "", "", proved_by=HASH)
    with pytest.raises(Unauthenticated):
        await store.write(sessions.begin, person.user_id, tenant_id, late, NOW_MS)
    assert await store.read(sessions.find, "late", NOW_MS) is None


async def test_of_two_who_change_one_password_at_once_one_does(store: Store) -> None:
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    person = await mine.write(people.add, new("guard"), "", NOW_MS)
    for name in ("one", "two"):
        session = NewSession(name, "c", 12, "", "", proved_by=HASH)
        await store.write(sessions.begin, person.user_id, tenant_id, session, NOW_MS)
    found = [await store.read(sessions.find, name, NOW_MS) for name in ("one", "two")]
    first, second = [store.as_(one.principal) for one in found if one is not None]
    await first.write(people.change_own_password, HASH, "new hash", "", NOW_MS)
    with pytest.raises(Forbidden, match="at the same moment"):
        await second.write(people.change_own_password, HASH, "other hash", "", NOW_MS)
    # Nor may a sign-in that ended meanwhile, although it was right about the password.
    with pytest.raises(Forbidden, match="at the same moment"):
        await second.write(people.change_own_password, "new hash", "other hash", "", NOW_MS)
    await first.write(people.change_own_password, "new hash", "newest hash", "", NOW_MS)
    assert await mine.read(people.password_hash_of, person.user_id) == "newest hash"


async def test_whoever_comes_after_somebody_who_was_removed_is_somebody_else(store: Store) -> None:
    """By number, too: what somebody did is found by it, and logins of other processes' memory."""
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    gone = await mine.write(people.add, new("gone", Role.TENANT_ADMIN), "", NOW_MS)
    login = NewSession("gone-hash", "csrf", 12, "10.0.0.1", "browser")
    await store.write(sessions.begin, gone.user_id, tenant_id, login, NOW_MS)
    signed_in = await store.read(sessions.find, "gone-hash", NOW_MS)
    assert signed_in is not None
    theirs = store.as_(signed_in.principal)
    case = await theirs.write(cases.create, "theft", "", NOW_MS)
    await theirs.write(cases.add_note, case.case_uuid, "seen", "", NOW_MS)
    await mine.write(people.remove, "gone", "", NOW_MS)

    new_one = await mine.write(people.add, new("new", Role.TENANT_ADMIN), "", NOW_MS)
    assert new_one.user_id > gone.user_id
    login = NewSession("new-hash", "csrf", 12, "10.0.0.2", "browser")
    await store.write(sessions.begin, new_one.user_id, tenant_id, login, NOW_MS)
    after = await store.read(sessions.find, "new-hash", NOW_MS)
    assert after is not None
    assert (after.principal.session_id or 0) > (signed_in.principal.session_id or 0)
    assert await store.read(sessions.principals, (signed_in.principal.session_id or 0,), NOW_MS) == {}

    opened = await mine.read(audit_pages.page, AuditFilter(action="case_created"), None, 10)
    assert [line.who for line in opened] == ["gone"]
    assert {line.who for line in await mine.read(audit_pages.page, AuditFilter(who="gone"), None, 10)} == {"gone"}
    of_new = await mine.read(audit_pages.page, AuditFilter(who="new"), None, 10)
    assert [line.action for line in of_new] == ["sign_in"]
    found = await mine.read(cases.get, case.case_uuid)
    assert found.created_by == "gone"


async def test_a_site_is_removed_and_comes_back_as_itself(store: Store) -> None:
    tenant_id = (await prepare(store)).tenant_id
    mine = store.as_(admin_of(tenant_id))
    north = await mine.write(sites.add, "north", "UTC", "", NOW_MS)
    await mine.write(people.add, new("guard", granted=Granted(("north",))), "", NOW_MS)
    assert [one.name for one in await mine.read(sites.every)] == ["main", "north"]
    await mine.write(sites.remove, "north", "", NOW_MS)
    assert [one.name for one in await mine.read(sites.every)] == ["main"]
    assert (await mine.read(people.get, "guard")).granted == Granted(), "what was granted there is gone"
    again = await mine.write(sites.add, "north", "Asia/Tokyo", "", NOW_MS)
    assert (again.site_uuid, again.timezone) == (north.site_uuid, "Asia/Tokyo")
    assert (await mine.write(sites.change, "main", "home", None, "", NOW_MS)).name == "home"
    assert (await prepare(store)).site_id == (await mine.read(sites.get, "home")).site_id, "by whatever name"


async def test_whoever_is_held_to_grants_and_has_none_reaches_nothing(store: Store) -> None:
    tenant_id = (await prepare(store)).tenant_id
    wide = Principal(tenant_id, 5, Role.VIEWER)
    (narrow,) = await store.read(grants.narrowed, (wide,), frozenset({5}))
    assert (narrow.site_ids, narrow.camera_keys) == (frozenset(), frozenset())
    assert await store.as_(narrow).read(sites.every) == ()
