"""Fresh, migrated databases in a fraction of the time that migrating takes: migrate one, then copy it.

A template migrates once, when it is made. `fresh()` gives the URL of a database of its own, `discard(url)`
throws it away.
"""

import shutil
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Protocol

from tests.rig.databases import MariadbServer, PostgresServer

Migrate = Callable[[str], object]  # gets the URL of an empty database

TEMPLATE = "template_migrated"


class Template(Protocol):
    """Where fresh databases of one kind come from."""

    def fresh(self) -> str:
        """The URL of a new database, equal to the migrated one and nobody else's."""

    def discard(self, url: str) -> None:
        """Removes a database that `fresh` made; who is still connected is cut off."""


class SqliteTemplate:
    """A migrated file that is copied."""

    def __init__(self, folder: Path, migrate: Migrate) -> None:
        self._folder = folder
        self._file = folder / f"{TEMPLATE}.db"
        migrated = folder / "migrated.db"
        migrate(f"sqlite:///{migrated}")
        # Through SQLite and not as a file: the newest pages may still be in the write-ahead log.
        with closing(sqlite3.connect(migrated)) as source, closing(sqlite3.connect(self._file)) as copy:
            source.backup(copy)

    def fresh(self) -> str:
        folder = self._folder / _name()
        folder.mkdir()
        shutil.copyfile(self._file, folder / "camserver.db")
        return f"sqlite:///{folder / 'camserver.db'}"

    def discard(self, url: str) -> None:
        shutil.rmtree(Path(url.removeprefix("sqlite://")).parent)


class PostgresTemplate:
    """PostgreSQL copies a template database by itself."""

    def __init__(self, server: PostgresServer, migrate: Migrate, name: str = TEMPLATE) -> None:
        self._server = server
        self._name = name
        server.create(name)
        migrate(server.url(name))

    def fresh(self) -> str:
        name = _name()
        self._server.create(name, template=self._name)
        return self._server.url(name)

    def discard(self, url: str) -> None:
        self._server.drop(url.rpartition("/")[2])


class MariadbTemplate:
    """MariaDB has no templates: the migrated database's dump is replayed in one go."""

    def __init__(self, server: MariadbServer, migrate: Migrate, name: str = TEMPLATE) -> None:
        self._server = server
        server.create(name)
        migrate(server.url(name))
        self._script = server.dump(name)

    def fresh(self) -> str:
        name = _name()
        # The tables come in alphabetical order, so a foreign key may point at one that is not there yet.
        self._server.admin(f"CREATE DATABASE `{name}`; USE `{name}`; SET foreign_key_checks = 0;\n{self._script}")
        return self._server.url(name)

    def discard(self, url: str) -> None:
        self._server.drop(url.rpartition("/")[2])


def _name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"
