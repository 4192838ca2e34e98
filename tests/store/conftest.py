"""Stores that the tests of one module share, emptied before each test: opening a database costs more than most tests.

`fresh_store` and `fresh_pair` serve async tests of a module that runs on one loop
(`pytestmark = pytest.mark.asyncio(loop_scope="module")`); `driven` serves sync ones, such as state machines.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import pytest_asyncio

from camserver.store import Store, Tx, open_store
from camserver.store.tables import metadata
from tests.rig.templates import Template
from tests.rig.unguarded import empty_audit_log

R = TypeVar("R")
KINDS = ["sqlite", "postgres", "mariadb"]


async def wipe(tx: Tx) -> None:
    """Empties every table. Keys are not given again where the database remembers them."""
    await empty_audit_log(tx)
    for table in reversed(metadata.sorted_tables):
        await tx.run(f"DELETE FROM {table.name}")


def _template(request: pytest.FixtureRequest) -> Template:
    template: Template = request.getfixturevalue(f"{request.param}_template")
    return template


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=KINDS)
async def shared_pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Store, Store]]:
    template = _template(request)
    url = template.fresh()
    first = await open_store(url)
    # One process owns a SQLite file, so there both are the same store.
    second = first if request.param == "sqlite" else await open_store(url)
    yield first, second
    await first.close()
    await second.close()
    template.discard(url)


@pytest_asyncio.fixture(loop_scope="module")
async def fresh_pair(shared_pair: tuple[Store, Store]) -> tuple[Store, Store]:
    await shared_pair[0].write(wipe)
    return shared_pair


@pytest_asyncio.fixture(loop_scope="module")
async def fresh_store(shared_pair: tuple[Store, Store]) -> Store:
    await shared_pair[0].write(wipe)
    return shared_pair[0]


@dataclass(frozen=True, slots=True)
class Driven:
    """A store and the loop it lives on, for code that can't await."""

    store: Store
    runner: asyncio.Runner

    def do(self, work: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(work)

    def wipe(self) -> None:
        self.do(self.store.write(wipe))


@pytest.fixture(scope="module", params=KINDS)
def driven(request: pytest.FixtureRequest) -> Iterator[Driven]:
    template = _template(request)
    url = template.fresh()
    with asyncio.Runner() as runner:
        store = runner.run(open_store(url))
        yield Driven(store, runner)
        runner.run(store.close())
    template.discard(url)
