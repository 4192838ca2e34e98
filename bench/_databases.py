"""The three databases as they are run in earnest, each on its own folder, and one after the other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench._cpu import CpuUsed, cpu_seconds
from tests.rig.databases import DatabaseServer, mariadb_server, postgres_server


@dataclass(frozen=True, slots=True)
class Database:
    name: str
    server: DatabaseServer | None
    folder: Path

    def url(self, database: str) -> str:
        """The address of a new, empty database."""
        if self.server is None:
            return f"sqlite:///{self.folder}/{database}.db"
        self.server.create(database)
        return self.server.url(database)

    def asked(self, sql: str, database: str) -> str:
        """What the server says to its administrator."""
        assert self.server is not None
        return self.server.admin(sql, database)

    def cpu(self) -> CpuUsed:
        """So far, of this process and its children, which a database server is one of."""
        server = 0.0 if self.server is None else cpu_seconds(self.server.process.pid)
        return CpuUsed(cpu_seconds(os.getpid()) - server, server)


@contextmanager
def database(name: str) -> Iterator[Database]:
    with TemporaryDirectory(prefix="camserver-bench-") as folder:
        if name == "SQLite":
            yield Database(name, None, Path(folder))
            return
        start = postgres_server if name == "PostgreSQL" else mariadb_server
        with start(durable=True) as server:
            yield Database(name, server, Path(folder))
