"""A SQLite file that is up to date is known as such, and nothing else is, without the libraries that migrate."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from camserver.store import migrate
from camserver.store.sqlite_schema import is_newest, newest_revision


@pytest.fixture
def current(tmp_path: Path) -> Path:
    path = tmp_path / "camserver.db"
    migrate.upgrade(f"sqlite:///{path}")
    return path


def test_the_newest_is_what_the_migrations_say(current: Path) -> None:
    assert newest_revision() == migrate.status(f"sqlite:///{current}").head
    assert is_newest(current)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE alembic_version SET version_num = '0000'",
        "UPDATE alembic_version SET version_num = '9999'",
        "DELETE FROM alembic_version",
        "DROP TABLE alembic_version",
    ],
)
def test_an_older_newer_or_unknown_one_is_not(current: Path, change: str) -> None:
    with closing(sqlite3.connect(current)) as connection:
        connection.execute(change)
        connection.commit()
    assert not is_newest(current)


def test_what_is_no_database_is_not_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "camserver.db"
    assert not is_newest(path)
    assert not path.exists()
    path.write_bytes(b"something else" * 100)
    assert not is_newest(path)
    assert path.read_bytes() == b"something else" * 100


def test_a_start_with_nothing_to_migrate_loads_no_library_for_it(current: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from camserver.store import open_store\n"
        "async def start():\n"
        "    await (await open_store(sys.argv[1])).close()\n"
        "asyncio.run(start())\n"
        "assert not {'alembic', 'sqlalchemy'} & sys.modules.keys(), 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", program, f"sqlite:///{current}"], check=True, timeout=120)
