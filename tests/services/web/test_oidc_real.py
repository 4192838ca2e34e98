"""Signing in with a real provider program: the npm package oidc-provider, a devDependency of the UI."""

import re
import time
from pathlib import Path
from urllib.parse import urljoin

from camserver.clients.oidc import PAUSE_MS
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.rig.oidc_program import SECRET, node, provider
from tests.rig.ports import free_port
from tests.services.web.rig import Browser, running_web

REDIRECTS_MAX = 20


async def follow(browser: Browser, address: str) -> tuple[str, str]:
    """Goes where a browser would go until there is a page: its address and its text."""
    for _ in range(REDIRECTS_MAX):
        async with browser.http.get(address, allow_redirects=False) as answer:
            if answer.status not in (302, 303):
                return address, await answer.text()
            address = urljoin(address, answer.headers["Location"])
    raise AssertionError(f"it goes round in circles at {address}")


async def submit(browser: Browser, page: str, **values: str) -> tuple[str, str]:
    """Sends the form of a page."""
    [action] = re.findall(r'<form[^>]* action="([^"]+)"', page)
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    async with browser.http.post(action, data={**hidden, **values}, allow_redirects=False) as answer:
        assert answer.status in (302, 303), await answer.text()
        return await follow(browser, urljoin(action, answer.headers["Location"]))


async def test_somebody_signs_in_at_a_real_provider(sqlite_store: Store, tmp_path: Path) -> None:
    program, port = node(), free_port()
    # The provider goes by the time of day.
    clock = ManualClock(now_ms=time.time_ns() // 1_000_000)
    settings = {"ISSUER": f"http://127.0.0.1:{port}", "CLIENT_SECRET": SECRET, "ALLOW_LOOPBACK": "1", "CREATE": "1"}
    environ = {f"CAMSERVER_OIDC_{name}": value for name, value in settings.items()}
    async with (
        running_web(sqlite_store, clock, tmp_path, environ) as web,
        provider(program, port, f"{web.url}/api/oidc/callback"),
    ):
        # It was asked when web started, before it was there, and is asked again a while later.
        await clock.advance(PAUSE_MS + 1)
        for login in ("kato", "kato", "sato"):
            browser = web.browser()
            _, page = await follow(browser, f"{web.url}/api/oidc/start?next=/events")
            _, page = await submit(browser, page, login=login, password="any")
            address, _ = await submit(browser, page)
            assert address == f"{web.url}/events"
            session = (await browser.get("/api/session")).body
            assert (session["login"], session["display_name"], session["role"]) == (
                login,
                f"Person {login}",
                "viewer",
            )
            # Signing out here leads there; whoever agrees comes back here and is asked to sign in again there.
            browser.csrf_token = session["csrf_token"]
            there = (await browser.ask("DELETE", "/api/session")).body["provider_url"]
            _, page = await follow(browser, there)
            address, _ = await submit(browser, page, logout="yes")
            assert address == f"{web.url}/sign-in"
            assert (await browser.get("/api/session")).status == 401
            _, page = await follow(browser, f"{web.url}/api/oidc/start")
            assert 'name="password"' in page
        owner = await web.owner()
        assert [one["login"] for one in (await owner.get("/api/users")).body["users"]] == ["kato", "owner", "sato"]
        # Somebody who says no there comes back to the sign-in page.
        browser = web.browser()
        _, page = await follow(browser, f"{web.url}/api/oidc/start")
        [cancel] = re.findall(r'<a href="([^"]+/abort)"', page)
        address, _ = await follow(browser, urljoin(f"http://127.0.0.1:{port}/", cancel))
        assert address == f"{web.url}/sign-in?problem=denied"
