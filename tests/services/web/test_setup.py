import asyncio
import io
import re
import stat
from pathlib import Path

import pytest

from camserver.base.secrets import Secret
from camserver.services.web import setup_link
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, LoggedLines, RunningWeb, running_web
from tests.store.people_rows import HOUR_MS, audit_rows, count_rows

# All ten are past the check of the link while the first password is hashed.
PASSWORDS_IN_EARNEST = True


async def test_ten_simultaneous_posts_make_one_admin(web_on_each: RunningWeb) -> None:
    browser = web_on_each.browser()
    bodies = [web_on_each.set_up_body(login=f"owner{number}") for number in range(10)]
    replies = await asyncio.gather(*(browser.post("/api/setup", body) for body in bodies))

    assert sorted(reply.status for reply in replies) == [201, *[409] * 9]
    assert await web_on_each.store.read(count_rows, "users") == 1
    assert not web_on_each.link_file.exists()
    [winner] = [reply.body["login"] for reply in replies if reply.status == 201]
    assert (await browser.sign_in(winner)).status == 201
    assert [row[1] for row in await web_on_each.store.read(audit_rows)] == ["set_up", "sign_in"]


async def test_the_link_is_in_a_private_file_and_in_no_log(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, logged: LoggedLines
) -> None:
    async with running_web(sqlite_store, clock, tmp_path) as web:
        assert stat.S_IMODE(web.link_file.stat().st_mode) == 0o600
        assert re.fullmatch(rf"{web.url}/setup#token=[\w-]{{43}}\n", web.link_file.read_text())
        token = web.setup_token
        await web.owner()
    assert logged.lines
    assert not [line for line in logged.lines if token in line]


async def test_a_used_link_is_refused(web: RunningWeb) -> None:
    body = web.set_up_body()
    await web.owner()
    reply = await web.browser().post("/api/setup", {**body, "login": "second"})

    assert reply.status == 409
    assert reply.body["details"]["reason"] == "setup_admin_exists"
    assert await web.store.read(count_rows, "users") == 1


async def test_a_link_is_refused_after_its_hour_and_a_new_one_works(web: RunningWeb) -> None:
    browser = web.browser()
    old = web.set_up_body()
    await web.clock.advance(HOUR_MS)
    expired = await browser.post("/api/setup", old)
    assert (expired.status, expired.body["details"]["reason"]) == (403, "setup_expired")

    lost = (await browser.post("/api/setup/link", {}, web.local_admin)).body["url"].partition("#token=")[2]
    made = await browser.post("/api/setup/link", {}, web.local_admin)
    assert not web.link_file.exists()
    assert made.status == 201
    assert made.body["expires_at"] == web.clock.now_ms() + HOUR_MS
    token = made.body["url"].partition("#token=")[2]
    replaced = await browser.post("/api/setup", {**old, "token": lost})
    assert (replaced.status, replaced.body["details"]["reason"]) == (403, "setup_unknown")
    assert (await browser.post("/api/setup", {**old, "token": token})).status == 201
    again = await browser.post("/api/setup/link", None, web.local_admin)
    assert again.status == 409


async def test_a_made_up_link_is_refused(web: RunningWeb) -> None:
    reply = await web.browser().post("/api/setup", web.set_up_body(token="made-up"))
    assert (reply.status, reply.body["details"]["reason"]) == (403, "setup_unknown")


REFUSED_FORMS: list[tuple[dict[str, object], str]] = [
    ({"password": "short"}, "password_short"),
    ({"password": "x" * 300}, "password_long"),
    ({"password": "aaaaaaaaaaaa"}, "password_repeats"),
    ({"login": "a-long-login", "password": "A-long-login"}, "password_is_login"),
    ({"login": "two words"}, "login_form"),
    ({"password": "x" * 2000}, "bad_fields"),
    ({"surprise": 1}, "bad_fields"),
]


async def test_a_refused_form_leaves_the_link_usable(web: RunningWeb) -> None:
    browser = web.browser()
    for changes, reason in REFUSED_FORMS:
        reply = await browser.post("/api/setup", web.set_up_body(**changes))
        assert (reply.status, reply.body["details"]["reason"]) == (400, reason)
    assert (await browser.post("/api/setup", web.set_up_body())).status == 201


async def test_a_restart_offers_a_link_only_while_there_is_no_admin(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    async with running_web(sqlite_store, clock, tmp_path) as web:
        first = web.setup_token
    async with running_web(sqlite_store, clock, tmp_path) as web:
        assert web.setup_token != first
        # Whoever opened the first link already can still use it.
        body = web.set_up_body(token=first)
        assert (await web.browser().post("/api/setup", body)).status == 201
    setup_link.write_file(tmp_path, Secret("http://stale/setup#token=stale"))
    async with running_web(sqlite_store, clock, tmp_path) as web:
        assert not web.link_file.exists()
        assert (await web.browser().sign_in("owner", PASSWORD)).status == 201


async def test_on_a_terminal_the_link_is_printed_and_not_written(
    sqlite_store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(setup_link, "_terminal", lambda: screen)
    async with running_web(sqlite_store, clock, tmp_path) as web:
        assert f"{web.url}/setup#token=" in screen.getvalue()
        assert not web.link_file.exists()
