import asyncio
from http.cookies import Morsel, SimpleCookie
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from camserver.domain.people import SESSION_IDLE_MS
from camserver.services.web import passwords
from camserver.services.web.access import SESSION_COOKIE, token_hash
from camserver.services.web.passwords import Passwords
from camserver.services.web.routes.session import DEVICE_COOKIE
from camserver.services.web.throttle import FREE_TRIES, WAIT_MAX_MS
from camserver.store import Store, Tx
from tests.rig.clock import ManualClock
from tests.services.web.rig import LOGIN, PASSWORD, LoggedLines, Reply, RunningWeb, running_web
from tests.store.people_rows import HOUR_MS, add_user, audit_rows, disable_user

PASSWORDS_IN_EARNEST = True
TIMEOUT_SEC = 60


def cookie_of(reply: Reply, name: str) -> "Morsel[str]":
    jar: SimpleCookie = SimpleCookie()
    for header in reply.headers.getall("Set-Cookie", []):
        jar.load(header)
    return jar[name]


async def stored_tokens(tx: Tx) -> list[str]:
    return [row["token_hash"] for row in await tx.all("SELECT token_hash FROM sessions")]


async def test_signing_in_sets_a_strict_cookie_and_stores_a_hash(web: RunningWeb) -> None:
    await web.owner()
    reply = await web.browser().sign_in()
    cookie = cookie_of(reply, SESSION_COOKIE)

    assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["secure"]) == (True, "strict", "/", "")
    stored = await web.store.read(stored_tokens)
    assert token_hash(cookie.value) in stored
    assert cookie.value not in stored
    assert reply.body["role"] == "system_admin"
    assert PASSWORD not in reply.content.decode()


@pytest.mark.parametrize("by", ["public_url", "proxy"])
async def test_over_https_cookies_are_secure(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, by: str
) -> None:
    environ = {"CAMSERVER_SERVER_PUBLIC_URL": "https://cams.example"} if by == "public_url" else {}
    headers = {"Host": "cams.example"} if by == "public_url" else {"X-Forwarded-Proto": "https"}
    async with running_web(sqlite_store, clock, tmp_path, environ) as web:
        browser = web.browser()
        await browser.post("/api/setup", web.set_up_body())
        reply = await browser.post("/api/session", {"login": LOGIN, "password": PASSWORD}, headers)
        assert cookie_of(reply, SESSION_COOKIE)["secure"] is True
        assert cookie_of(reply, DEVICE_COOKIE)["secure"] is True


async def test_who_am_i_until_signing_out(web: RunningWeb) -> None:
    owner = await web.owner()
    me = await owner.get("/api/session")
    assert (me.status, me.body["login"], me.body["csrf_token"]) == (200, LOGIN, owner.csrf_token)
    assert "manage_cameras" in me.body["permissions"]

    stolen = {"Cookie": "; ".join(f"{cookie.key}={cookie.value}" for cookie in owner.http.cookie_jar)}
    assert (await web.browser().get("/api/session", stolen)).status == 200
    gone = await owner.ask("DELETE", "/api/session")
    assert (gone.status, gone.body) == (200, {"provider_url": None})
    assert cookie_of(gone, SESSION_COOKIE).value == ""
    assert (await owner.get("/api/session")).status == 401
    assert (await web.browser().get("/api/session", stolen)).status == 401
    assert [row[1] for row in await web.store.read(audit_rows)] == ["set_up", "sign_in", "sign_out"]


async def test_wrong_passwords_unknown_logins_and_disabled_people_look_the_same(web: RunningWeb) -> None:
    owner = await web.owner()
    tenant_id = (await web.store.read(audit_rows))[0][0]
    await web.store.write(add_user, tenant_id, "machine", "viewer", None, 1)
    browser = web.browser()
    tries = [
        await browser.sign_in(LOGIN, "a wrong password"),
        await browser.sign_in("nobody", PASSWORD),
        await browser.sign_in("machine", PASSWORD),
    ]
    await web.store.write(disable_user, LOGIN)
    tries.append(await browser.sign_in())

    assert [reply.status for reply in tries] == [401] * 4
    assert len({reply.content for reply in tries}) == 1
    assert (await owner.get("/api/session")).status == 401
    failed = [row for row in await web.store.read(audit_rows) if row[1] == "sign_in_failed"]
    unknown = {"reason": "unknown_login"}
    assert [row[4] for row in failed] == [{"login": LOGIN}, unknown, {"login": "machine"}, {"login": LOGIN}]


async def test_a_password_that_is_typed_as_a_login_is_written_nowhere(web: RunningWeb, logged: LoggedLines) -> None:
    await web.owner()
    assert (await web.browser().sign_in(PASSWORD, "x")).status == 401
    assert (await web.browser().sign_in(f" {PASSWORD.upper()}", PASSWORD)).status == 401
    written = [str(row).lower() for row in await web.store.read(audit_rows)]
    assert not any(PASSWORD.lower() in one for one in [*written, *(line.lower() for line in logged.lines)])


async def test_an_unknown_login_is_checked_against_a_hash_like_a_known_one(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    await web.owner()
    checked: list[str] = []
    verify = passwords.Passwords._verify

    def noting(self: passwords.Passwords, password: str, stored_hash: str) -> bool:
        checked.append(stored_hash)
        return verify(self, password, stored_hash)

    monkeypatch.setattr(passwords.Passwords, "_verify", noting)
    browser = web.browser()
    await browser.sign_in(LOGIN, "a wrong password")
    await browser.sign_in("nobody", "a wrong password")

    assert len(checked) == 2
    assert {text.rpartition("$")[0].rpartition("$")[0] for text in checked} == {"$argon2id$v=19$m=19456,t=2,p=1"}


async def test_a_sign_in_slides_with_use_and_ends_at_its_limit(web: RunningWeb) -> None:
    owner = await web.owner()
    for _ in range(11):
        await web.clock.advance(HOUR_MS)
        assert (await owner.get("/api/session")).status == 200
    await web.clock.advance(HOUR_MS)
    assert (await owner.get("/api/session")).status == 401


async def test_an_unused_sign_in_ends(web: RunningWeb) -> None:
    owner = await web.owner()
    await web.clock.advance(SESSION_IDLE_MS - 1)
    assert (await owner.get("/api/session")).status == 200
    await web.clock.advance(SESSION_IDLE_MS)
    assert (await owner.get("/api/session")).status == 401


async def test_signing_in_again_ends_the_session_before(web: RunningWeb) -> None:
    owner = await web.owner()
    [before] = await web.store.read(stored_tokens)
    assert (await owner.sign_in()).status == 201

    [after] = await web.store.read(stored_tokens)
    assert after != before


async def test_guessing_is_slowed_down_but_the_owner_gets_in(web: RunningWeb) -> None:
    owner = await web.owner()
    attacker = web.browser()
    for _ in range(FREE_TRIES):
        assert (await attacker.sign_in(LOGIN, "a wrong guess")).status == 401
    slowed = await attacker.sign_in()
    assert slowed.status == 429
    assert slowed.headers["Retry-After"] == "1"
    # The same address, but a browser that has signed in before.
    assert (await owner.sign_in()).status == 201
    # And after the wait a right password works from anywhere.
    await web.clock.advance(WAIT_MAX_MS)
    assert (await attacker.sign_in()).status == 201
    assert (await web.browser().sign_in()).status == 201


async def test_guesses_made_at_once_do_not_slip_through(web: RunningWeb) -> None:
    await web.owner()
    browser = web.browser()
    replies = await asyncio.gather(*(browser.sign_in(LOGIN, f"wrong guess {number}") for number in range(20)))

    assert sorted(reply.status for reply in replies) == [*[401] * FREE_TRIES, *[429] * (20 - FREE_TRIES)]


async def test_a_flood_of_checks_is_refused_and_not_queued(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    await web.owner()
    monkeypatch.setattr(passwords, "WAITING_MAX", 0)
    browser = web.browser()
    for _ in range(FREE_TRIES + 1):
        # The server's own fault is not counted as a wrong guess.
        busy = await browser.sign_in()
        assert (busy.status, busy.headers["Retry-After"]) == (503, "5")
        assert busy.body["details"]["reason"] == "sign_in_busy"


async def test_a_guess_that_the_server_is_too_busy_for_makes_up_for_no_other(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    await web.owner()
    browser = web.browser()
    for _ in range(FREE_TRIES - 1):
        assert (await browser.sign_in(LOGIN, "a wrong guess")).status == 401
    with monkeypatch.context() as busy:
        busy.setattr(passwords, "WAITING_MAX", 0)
        assert (await browser.sign_in(LOGIN, "a wrong guess")).status == 503
    assert (await browser.sign_in(LOGIN, "a wrong guess")).status == 401
    assert (await browser.sign_in(LOGIN, "a wrong guess")).status == 429


async def test_an_outdated_hash_is_renewed_by_signing_in(web: RunningWeb) -> None:
    await web.owner()
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    await web.store.write(set_hash, LOGIN, weak)

    assert (await web.browser().sign_in()).status == 201
    assert (await web.store.read(get_hash, LOGIN)).startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert (await web.browser().sign_in()).status == 201


async def test_whoever_signs_in_twice_at_once_with_an_outdated_hash_comes_in_twice(
    web: RunningWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    await web.owner()
    weak = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    await web.store.write(set_hash, LOGIN, weak)
    both = asyncio.Barrier(2)
    renew = Passwords.hash

    async def together(self: Passwords, password: str) -> str:
        async with asyncio.timeout(TIMEOUT_SEC):
            await both.wait()
        return await renew(self, password)

    monkeypatch.setattr(Passwords, "hash", together)
    replies = await asyncio.gather(web.browser().sign_in(), web.browser().sign_in())
    assert [one.status for one in replies] == [201, 201]


async def set_hash(tx: Tx, login: str, password_hash: str) -> None:
    await tx.run(
        "UPDATE users SET password_hash = :password_hash WHERE login = :login",
        login=login,
        password_hash=password_hash,
    )


async def get_hash(tx: Tx, login: str) -> str:
    row = await tx.one("SELECT password_hash FROM users WHERE login = :login", login=login)
    assert row is not None
    return str(row["password_hash"])
