"""Fixtures that every test may ask for; what they are made of is in tests/rig and tests/fakes.

`db_url`, `store` and `two_stores` run a test once on each database (`-k sqlite` chooses one). A database server that
is not installed skips its tests and names the package; where CI=true it fails them.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

import hypothesis
import pytest

from camserver.base import secrets
from tests.fakes.analyzer import FakeAnalyzer
from tests.rig.buckets import BucketServer, bucket_server
from tests.rig.clock import ManualClock
from tests.rig.databases import MariadbServer, MissingServer, PostgresServer, mariadb_server, postgres_server
from tests.rig.dealt import dealt
from tests.rig.effort import THOROUGH, times
from tests.rig.longest_first import longest_first
from tests.rig.memory import quick_folder
from tests.rig.processes import REPOSITORY, Launcher
from tests.rig.templates import MariadbTemplate, PostgresTemplate, SqliteTemplate, Template
from tests.rig.writers import Nursery, install

if TYPE_CHECKING:
    # At run time only where it is used: tests of pure rules shall start without the database drivers.
    from camserver.store import Store

Server = TypeVar("Server")

# The SQLite store runs write operations in a process of its own, by name: those in tests must be found there too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))

# Where `tmp_path` is; of what tests write there, that of failed ones is kept (pyproject.toml).
os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(quick_folder()))

# Under nohup or in a shell's background, SIGHUP and SIGINT are ignored by everything started from here, and a shell
# can't even trap them. Tests of signals start from the ordinary state.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

# How fast a machine is says nothing about whether a rule holds.
hypothesis.settings.register_profile(
    "camserver",
    max_examples=times(50, 500),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("camserver")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Alone, tests run as they were asked for: quick ones first in `make test`.
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items if THOROUGH else dealt(items))


@pytest.fixture(autouse=True)
def _forget_secrets() -> Iterator[None]:
    """A secret of one test must not be masked in what another one reads: some are ordinary words."""
    known = secrets._known.copy()
    yield
    secrets._known = known


@pytest.fixture(scope="session")
def writer_nursery() -> Iterator[Nursery]:
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="module", autouse=True)
def _forked_writers(request: pytest.FixtureRequest, writer_nursery: Nursery) -> Iterator[None]:
    """Stores on SQLite get their writers forked, except where a module says that it wants them in earnest."""
    uses_stores = "camserver.store.sqlite" in sys.modules
    if not uses_stores or getattr(request.module, "WRITERS_IN_EARNEST", False):
        yield
        return
    put_back = install(writer_nursery, request.module.__name__)
    yield
    put_back()


def _missing(error: MissingServer) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{error} (skipped where CI is not set)", pytrace=False)
    pytest.skip(str(error))


@contextmanager
def _installed(server: AbstractContextManager[Server]) -> Iterator[Server]:
    try:
        running = server.__enter__()
    except MissingServer as error:
        _missing(error)
    try:
        yield running
    finally:
        server.__exit__(None, None, None)


def _migrate(url: str) -> None:
    from camserver.store.migrate import upgrade

    # In a thread of its own, so that it may run an event loop beside the tests'.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(upgrade, url).result()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A private PostgreSQL, quick rather than safe against power cuts."""
    with _installed(postgres_server()) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A private MariaDB, quick rather than safe against power cuts."""
    with _installed(mariadb_server()) as server:
        yield server


@pytest.fixture(scope="session")
def durable_postgres() -> Iterator[PostgresServer]:
    """A private PostgreSQL that syncs as in earnest."""
    with _installed(postgres_server(durable=True)) as server:
        yield server


@pytest.fixture(scope="session")
def durable_mariadb() -> Iterator[MariadbServer]:
    """A private MariaDB that syncs as in earnest."""
    with _installed(mariadb_server(durable=True)) as server:
        yield server


@pytest.fixture(scope="session")
def buckets() -> Iterator[BucketServer]:
    """A private S3-compatible store."""
    with _installed(bucket_server()) as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> SqliteTemplate:
    return SqliteTemplate(tmp_path_factory.mktemp("sqlite"), _migrate)


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> PostgresTemplate:
    return PostgresTemplate(postgres, _migrate)


@pytest.fixture(scope="session")
def mariadb_template(mariadb: MariadbServer) -> MariadbTemplate:
    return MariadbTemplate(mariadb, _migrate)


@pytest.fixture(scope="session")
def durable_sqlite_template(sqlite_template: SqliteTemplate) -> SqliteTemplate:
    return sqlite_template  # SQLite's durability is set by the store, for every connection


@pytest.fixture(scope="session")
def durable_postgres_template(durable_postgres: PostgresServer) -> PostgresTemplate:
    return PostgresTemplate(durable_postgres, _migrate)


@pytest.fixture(scope="session")
def durable_mariadb_template(durable_mariadb: MariadbServer) -> MariadbTemplate:
    return MariadbTemplate(durable_mariadb, _migrate)


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def db_kind(request: pytest.FixtureRequest) -> str:
    """Which database this run of the test is on."""
    kind: str = request.param
    return kind


@pytest.fixture
def db_template(db_kind: str, request: pytest.FixtureRequest) -> Template:
    """For tests that want several databases, or one at a time of their own choosing."""
    template: Template = request.getfixturevalue(f"{db_kind}_template")
    return template


@pytest.fixture
def db_url(db_template: Template) -> Iterator[str]:
    """A fresh, migrated database."""
    url = db_template.fresh()
    yield url
    db_template.discard(url)


@pytest.fixture
def durable_db_url(db_kind: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh, migrated database on a server that syncs as in earnest: for crash tests."""
    template: Template = request.getfixturevalue(f"durable_{db_kind}_template")
    url = template.fresh()
    yield url
    template.discard(url)


@pytest.fixture
async def store(db_url: str) -> AsyncIterator["Store"]:
    from camserver.store import open_store

    opened = await open_store(db_url)
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(sqlite_template: SqliteTemplate) -> AsyncIterator["Store"]:
    """For tests to which the database does not matter."""
    from camserver.store import open_store

    url = sqlite_template.fresh()
    opened = await open_store(url)
    yield opened
    await opened.close()
    sqlite_template.discard(url)


@pytest.fixture
async def two_stores(db_url: str, db_kind: str) -> AsyncIterator[tuple["Store", "Store"]]:
    """Two users of one database, to race. One process owns a SQLite file, so there both are the same store."""
    from camserver.store import open_store

    first = await open_store(db_url)
    second = first if db_kind == "sqlite" else await open_store(db_url)
    yield first, second
    await first.close()
    if second is not first:
        await second.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def analyzer(tmp_path: Path) -> AsyncIterator[FakeAnalyzer]:
    """A conforming analyzer without a vocabulary, until a test puts one or adds faults."""
    async with FakeAnalyzer(tmp_path / "analyzer-vocabulary.json") as fake:
        yield fake


@pytest.fixture
async def launcher(tmp_path: Path) -> AsyncIterator[Launcher]:
    """Starts real processes in the test's folder; fails the test when any is left behind."""
    started = Launcher(tmp_path)
    yield started
    await started.close()
