"""A web service to talk to. `web` runs on SQLite, `web_on_each` once on each database."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from camserver.services.web import app, passwords, plain_answers, setup_link
from camserver.services.web.routing import Routes, add_routes
from camserver.store import Store, open_store
from tests.rig.clock import ManualClock
from tests.rig.templates import SqliteTemplate
from tests.services.web.rig import LoggedLines, RunningWeb, running_web


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up link goes to its file, also when the tests are run on a terminal."""
    monkeypatch.setattr(setup_link, "_terminal", lambda: None)


@pytest.fixture(autouse=True)
def _answers_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is answered without a model is held against it."""
    monkeypatch.setattr(plain_answers, "CHECKED", True)


@pytest.fixture(autouse=True)
def _built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Building all routes costs more than most tests ask of them; they hold nothing of an application."""
    monkeypatch.setattr(app, "add_routes", _add_again)


_built: dict[int, tuple[Routes, list[BaseRoute]]] = {}


def _add_again(api: FastAPI, routes: Routes) -> None:
    if id(routes) not in _built:
        before = len(api.router.routes)
        add_routes(api, routes)
        _built[id(routes)] = (routes, api.router.routes[before:])
    else:
        api.router.routes.extend(_built[id(routes)][1])


@pytest.fixture(autouse=True)
def _cheap_passwords(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashed by the same function; what it costs in earnest is left to the tests of signing in."""
    if not getattr(request.module, "PASSWORDS_IN_EARNEST", False):
        monkeypatch.setattr(passwords, "MEMORY_KIB", 64)
        monkeypatch.setattr(passwords, "PASSES", 1)


@pytest.fixture
async def sqlite_store(sqlite_template: SqliteTemplate) -> AsyncIterator[Store]:
    url = sqlite_template.fresh()
    opened = await open_store(url)
    yield opened
    await opened.close()
    sqlite_template.discard(url)


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(sqlite_store, clock, tmp_path) as running:
        yield running


@pytest.fixture
async def web_on_each(store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(store, clock, tmp_path) as running:
        yield running


@pytest.fixture
def logged() -> Iterator[LoggedLines]:
    handler = LoggedLines()
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)
