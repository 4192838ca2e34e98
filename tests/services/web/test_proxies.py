"""Callers behind reverse proxies: web.trusted_proxies says whose word about them counts."""

import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from camserver.services.web.access import SESSION_COOKIE
from camserver.services.web.throttle import FREE_TRIES
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.rig.processes import REPOSITORY
from tests.services.web.rig import LOGIN, PASSWORD, Browser, Reply, RunningWeb, running_web

PROXY = "127.0.0.2"
# An address of this machine as good as any other, which nobody has named.
STRANGER = "127.0.0.3"
TRUSTED = {"CAMSERVER_WEB_TRUSTED_PROXIES": f"{PROXY},10.9.0.0/24"}


@pytest.fixture
async def proxied(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(sqlite_store, clock, tmp_path, TRUSTED) as running:
        yield running


async def try_to_sign_in(browser: Browser, forwarded: str, password: str = "a wrong guess") -> Reply:
    headers = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}
    return await browser.post("/api/session", {"login": LOGIN, "password": password}, headers)


async def addresses_of_sign_ins(web: RunningWeb) -> list[str]:
    page = await (await web.owner()).get("/api/audit?action=sign_in")
    # The owner's own, which came last, is the first.
    return [entry["address"] for entry in page.body["entries"][1:]]


def is_secure(reply: Reply) -> bool:
    jar: SimpleCookie = SimpleCookie()
    for header in reply.headers.getall("Set-Cookie", []):
        jar.load(header)
    return bool(jar[SESSION_COOKIE]["secure"])


async def test_people_behind_one_proxy_are_told_apart(proxied: RunningWeb) -> None:
    await proxied.owner()
    proxy = proxied.browser(PROXY)
    for _ in range(FREE_TRIES):
        assert (await try_to_sign_in(proxy, "203.0.113.7")).status == 401
    assert (await try_to_sign_in(proxy, "203.0.113.7", PASSWORD)).status == 429
    # Not by writing another address before the one that the proxy adds, either.
    assert (await try_to_sign_in(proxy, "198.51.100.9, 203.0.113.7", PASSWORD)).status == 429
    through_two = "203.0.113.8, 10.9.0.1"
    assert (await try_to_sign_in(proxy, through_two, PASSWORD)).status == 201
    assert (await addresses_of_sign_ins(proxied))[:1] == ["203.0.113.8"]


async def test_whoever_is_no_trusted_proxy_can_not_pretend_to_be_another(proxied: RunningWeb) -> None:
    await proxied.owner()
    stranger = proxied.browser(STRANGER)
    for number in range(FREE_TRIES):
        assert (await try_to_sign_in(stranger, f"203.0.113.{number}")).status == 401
    assert (await try_to_sign_in(stranger, "203.0.113.99", PASSWORD)).status == 429
    assert (await try_to_sign_in(proxied.browser("127.0.0.4"), PROXY, PASSWORD)).status == 201
    assert (await addresses_of_sign_ins(proxied))[:1] == ["127.0.0.4"]


async def test_https_is_taken_from_a_trusted_proxy_only(proxied: RunningWeb) -> None:
    await proxied.owner()
    assert is_secure(await try_to_sign_in(proxied.browser(PROXY), "203.0.113.7", PASSWORD))
    assert not is_secure(await try_to_sign_in(proxied.browser(STRANGER), "203.0.113.7", PASSWORD))


async def test_a_proxy_of_this_machine_is_trusted_unless_another_is_named(web: RunningWeb) -> None:
    await web.owner()
    assert (await try_to_sign_in(web.browser(), "203.0.113.7", PASSWORD)).status == 201
    assert (await addresses_of_sign_ins(web))[:1] == ["203.0.113.7"]


async def test_a_proxys_word_makes_nobody_local(proxied: RunningWeb) -> None:
    """The local admin token works on the server's own machine; what came through a proxy did not come from there."""
    for forwarded in ("127.0.0.1", "::1", "10.9.0.1"):
        headers = {**proxied.local_admin, "X-Forwarded-For": forwarded}
        assert (await proxied.browser(PROXY).get("/api/cameras", headers)).status == 401


@contextmanager
def nginx(folder: Path, site: str) -> Iterator[None]:
    """One process of nginx that serves the site."""
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        say = pytest.fail if os.environ.get("CI", "").lower() in ("1", "true", "yes") else pytest.skip
        say("nginx-light is missing; see tools/system_packages.py")
    folders = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{folders}{site}\n}}\n"
    )
    with subprocess.Popen([program, "-p", str(folder), "-c", str(folder / "nginx.conf")]) as running:
        try:
            yield
        finally:
            running.terminate()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


async def test_the_proxy_of_the_fleet_tells_whom_it_saw(web: RunningWeb, tmp_path: Path) -> None:
    """deploy/compose/proxy.conf as it is, but for the places of the services."""
    await web.owner()
    port = free_port()
    site = (REPOSITORY / "deploy" / "compose" / "proxy.conf").read_text()
    site = site.replace("listen 80;", f"listen 127.0.0.1:{port};").replace(
        "web:8080", web.url.removeprefix("http://")
    )
    assert re.search(r"set \$web 127\.0\.0\.1:\d+;", site)
    with nginx(tmp_path, site):
        await until(lambda: answers(port), "nginx")
        web.url = f"http://127.0.0.1:{port}"
        # Somebody who writes an address of their own, and the proxy with TLS before this one, which is trusted.
        stranger = await try_to_sign_in(web.browser(STRANGER), "203.0.113.7", PASSWORD)
        with_tls = await try_to_sign_in(web.browser(), "198.51.100.9, 203.0.113.7", PASSWORD)
        assert (stranger.status, with_tls.status) == (201, 201)
        assert is_secure(with_tls)
        assert (await addresses_of_sign_ins(web))[:2] == ["203.0.113.7", STRANGER]
