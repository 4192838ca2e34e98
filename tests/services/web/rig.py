"""A really running web service on a free port, and browsers that talk to it."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy
from starlette.routing import BaseRoute

from camserver.base.bells import Bells
from camserver.base.ready import Ready
from camserver.config import Settings, load
from camserver.objects.local import LocalObjects
from camserver.services.web import service
from camserver.services.web.app import build_api
from camserver.services.web.setup_link import FILE_NAME
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.ports import listening_socket, port_of

LOGIN = "owner"
PASSWORD = "correct horse battery"


@cache
def api_routes() -> tuple[BaseRoute, ...]:
    """Of the API, built once: the parameters of many tests are made of them whenever tests are collected."""
    return tuple(build_api().routes)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: CIMultiDictProxy[str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)


class Browser:
    """Keeps cookies like a browser, and the CSRF token of its session once it has signed in."""

    def __init__(self, url: str, own_address: str | None = None) -> None:
        self.url = url
        self.csrf_token: str | None = None
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(local_addr=None if own_address is None else (own_address, 0)),
            cookie_jar=aiohttp.CookieJar(unsafe=True),
        )

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Reply:
        sent = {"X-CSRF-Token": self.csrf_token} if self.csrf_token else {}
        sent.update(headers or {})
        options: dict[str, Any] = {"data": data} if data is not None else {"json": body} if body is not None else {}
        async with self.http.request(
            method, self.url + path, headers=sent, allow_redirects=False, **options
        ) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.ask("GET", path, headers=headers)

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.ask("POST", path, body, headers)

    async def sign_in(self, login: str = LOGIN, password: str = PASSWORD) -> Reply:
        reply = await self.post("/api/session", {"login": login, "password": password})
        if reply.status == 201:
            self.csrf_token = reply.body["csrf_token"]
        return reply


@dataclass(slots=True)
class RunningWeb:
    store: Store
    objects: LocalObjects
    clock: ManualClock
    settings: Settings
    ready: Ready
    url: str
    bells: Bells
    browsers: list[Browser] = field(default_factory=list)

    @property
    def link_file(self) -> Path:
        return self.settings.server.data_dir / FILE_NAME

    @property
    def setup_token(self) -> str:
        return self.link_file.read_text().strip().partition("#token=")[2]

    @property
    def local_admin(self) -> dict[str, str]:
        token = (self.settings.server.secrets_dir / "local_admin_token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def browser(self, own_address: str | None = None) -> Browser:
        """`own_address` is one of the loopback network that it connects from."""
        made = Browser(self.url, own_address)
        self.browsers.append(made)
        return made

    def set_up_body(self, **changes: object) -> dict[str, object]:
        return {"token": self.setup_token, "login": LOGIN, "password": PASSWORD, "display_name": "Owner", **changes}

    async def owner(self) -> Browser:
        """A browser in which the admin is signed in; makes the admin first if need be."""
        browser = self.browser()
        if self.link_file.exists():
            reply = await browser.post("/api/setup", self.set_up_body(language="en"))
            assert reply.status == 201, reply.content
        reply = await browser.sign_in()
        assert reply.status == 201, reply.content
        return browser


@asynccontextmanager
async def running_web(
    store: Store, clock: ManualClock, data_dir: Path, environ: Mapping[str, str] | None = None
) -> AsyncIterator[RunningWeb]:
    settings = load(None, {"CAMSERVER_WEB_PORT": "0", **(environ or {})}, data_dir)
    objects = LocalObjects(settings.objects.dir)
    ready = Ready()
    ready.expect("web")
    sock = listening_socket()
    bells = Bells()
    task = asyncio.create_task(service.run(store, objects, clock, settings, ready, sock, bells))
    web = RunningWeb(store, objects, clock, settings, ready, f"http://127.0.0.1:{port_of(sock)}", bells)
    try:
        await until(lambda: ready.is_ready or task.done(), "start of the web service")
        if task.done():
            task.result()
        yield web
    finally:
        for browser in web.browsers:
            await browser.http.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        sock.close()


class LoggedLines(logging.Handler):
    """Everything that is logged, before the scrubber gets at it."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.msg} {record.args} {record.exc_info}")
