import asyncio
from dataclasses import replace

from camserver.domain.people import SESSION_IDLE_MS, Role
from camserver.store import Store, Tx, sessions, users
from camserver.store.sessions import SESSIONS_PER_USER_MAX, NewSession
from tests.store.people_rows import (
    HOUR_MS,
    NOW_MS,
    add_user,
    audit_rows,
    count_rows,
    disable_user,
    execute,
    prepare,
)

SESSION_HOURS = 12


def new_session(token_hash: str) -> NewSession:
    return NewSession(token_hash, "csrf", SESSION_HOURS, "1.2.3.4", "a browser")


async def sign_in(store: Store, token_hash: str = "hash") -> int:
    home = await prepare(store)
    user_id = await store.write(add_user, home.tenant_id, "owner", Role.VIEWER.value, "hashed", NOW_MS)
    await store.write(sessions.begin, user_id, home.tenant_id, new_session(token_hash), NOW_MS)
    return user_id


async def test_a_sign_in_is_found_by_its_hash_until_it_is_idle_too_long(store: Store) -> None:
    user_id = await sign_in(store)

    found = await store.read(sessions.find, "hash", NOW_MS + SESSION_IDLE_MS - 1)
    assert found is not None
    assert (found.login, found.principal.user_id, found.principal.role) == ("owner", user_id, Role.VIEWER)
    assert found.csrf_token == "csrf"
    assert await store.read(sessions.find, "hash", NOW_MS + SESSION_IDLE_MS) is None
    assert await store.read(sessions.find, "other", NOW_MS) is None


async def test_use_keeps_a_sign_in_but_not_past_its_hours(store: Store) -> None:
    await sign_in(store)
    end_ms = NOW_MS + SESSION_HOURS * HOUR_MS

    for used_ms in range(NOW_MS, end_ms, HOUR_MS):
        found = await store.read(sessions.find, "hash", used_ms)
        assert found is not None
        await store.as_(found.principal).write(sessions.touch, SESSION_HOURS, used_ms)

    assert await store.read(sessions.find, "hash", end_ms - 1) is not None
    assert await store.read(sessions.find, "hash", end_ms) is None


async def test_an_older_touch_does_not_undo_a_newer_one(store: Store) -> None:
    await sign_in(store)
    found = await store.read(sessions.find, "hash", NOW_MS)
    assert found is not None
    mine = store.as_(found.principal)
    await mine.write(sessions.touch, SESSION_HOURS, NOW_MS + HOUR_MS)
    await mine.write(sessions.touch, SESSION_HOURS, NOW_MS + 1)

    assert await store.read(sessions.find, "hash", NOW_MS + HOUR_MS + SESSION_IDLE_MS - 1) is not None


async def test_signing_out_ends_it_and_is_noted(store: Store) -> None:
    user_id = await sign_in(store)
    found = await store.read(sessions.find, "hash", NOW_MS)
    assert found is not None
    await store.as_(found.principal).write(sessions.end, "1.2.3.4", NOW_MS)

    assert await store.read(sessions.find, "hash", NOW_MS) is None
    assert [row[1:3] for row in await store.read(audit_rows)] == [
        ("sign_in", str(user_id)),
        ("sign_out", str(user_id)),
    ]


async def test_a_disabled_person_is_signed_out_at_once(store: Store) -> None:
    await sign_in(store)
    await store.write(disable_user, "owner")

    assert await store.read(sessions.find, "hash", NOW_MS) is None


async def test_a_persons_sign_ins_are_bounded_and_the_oldest_go(store: Store) -> None:
    user_id = await sign_in(store, "oldest")
    home = await prepare(store)
    for number in range(SESSIONS_PER_USER_MAX):
        session = new_session(f"hash{number}")
        await store.write(sessions.begin, user_id, home.tenant_id, session, NOW_MS)

    assert await store.read(count_rows, "sessions") == SESSIONS_PER_USER_MAX
    assert await store.read(sessions.find, "oldest", NOW_MS) is None
    assert await store.read(sessions.find, "hash0", NOW_MS) is not None


async def test_the_sweep_removes_what_is_over_and_nothing_else(store: Store) -> None:
    user_id = await sign_in(store)
    home = await prepare(store)
    later_ms = NOW_MS + SESSION_IDLE_MS
    await store.write(sessions.begin, user_id, home.tenant_id, new_session("new"), later_ms)

    assert await store.write(sessions.sweep, later_ms) == 1
    assert await store.write(sessions.sweep, later_ms) == 0
    assert await store.read(sessions.find, "new", later_ms) is not None


async def test_failed_tries_are_counted_and_a_sign_in_forgets_them(two_stores: tuple[Store, Store]) -> None:
    store = two_stores[0]
    user_id = await sign_in(store)
    home = await prepare(store)
    tries = [racing.write(users.note_failed_sign_in, "owner", "9.9.9.9", NOW_MS) for racing in two_stores * 3]
    await asyncio.gather(*tries)
    await store.write(users.note_failed_sign_in, "nobody", "9.9.9.9", NOW_MS)

    assert await store.read(failed_logins, "owner") == 6
    failures = [row for row in await store.read(audit_rows) if row[1] == "sign_in_failed"]
    assert [(row[0], row[4]) for row in failures] == [
        *[(home.tenant_id, {"login": "owner"})] * 6,
        (0, {"reason": "unknown_login"}),
    ]
    await store.write(sessions.begin, user_id, home.tenant_id, new_session("again"), NOW_MS)
    assert await store.read(failed_logins, "owner") == 0


async def failed_logins(tx: Tx, login: str) -> int:
    row = await tx.one("SELECT failed_logins FROM users WHERE login = :login", login=login)
    assert row is not None
    return int(row["failed_logins"])


async def test_sign_ins_are_asked_for_together_with_their_present_grants(store: Store) -> None:
    await sign_in(store)
    found = await store.read(sessions.find, "hash", NOW_MS)
    assert found is not None
    session_id = found.principal.session_id
    assert session_id is not None

    async def now(at_ms: int = NOW_MS) -> object:
        return await store.read(sessions.principals, (session_id, 999), at_ms)

    assert await now() == {session_id: found.principal}
    assert await now(NOW_MS + SESSION_IDLE_MS) == {}
    await store.write(execute, "UPDATE users SET role = :role", {"role": Role.TENANT_ADMIN.value})
    assert await now() == {session_id: replace(found.principal, role=Role.TENANT_ADMIN)}
    await store.write(disable_user, "owner")
    assert await now() == {}
    assert await store.read(sessions.principals, (), NOW_MS) == {}
