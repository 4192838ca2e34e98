"""The whole database as one file, made while it is in use, and the way back.

SQLite is copied through its own backup interface, under one read transaction, so writers go on and the copy is of one
moment. PostgreSQL and MariaDB are dumped in one transaction by their own tools, which also load what they dumped.
"""

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from camserver.base import folders
from camserver.base.child_guard import guarded
from camserver.base.errors import CheckFailed, DataUnusable, Fatal, StoreUnavailable
from camserver.base.secrets import scrub
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.sql import Dialect

# Pages of a SQLite file that are copied between two words about progress: 16 MB.
PAGES_AT_ONCE = 4_096
SAID_MAX_CHARS = 500
CHUNK_BYTES = 1_048_576

Told = Callable[[int, int], None]


def _untold(_done: int, _total: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Server:
    """Where a server's database is, as its tools want to be told."""

    dialect: Dialect
    host: str
    port: int
    user: str
    password: str
    name: str

    @classmethod
    def of(cls, url: str) -> "_Server":
        parts, dialect = urlsplit(url), dialect_of(url)
        return cls(
            dialect,
            parts.hostname or "127.0.0.1",
            parts.port or (5432 if dialect is Dialect.POSTGRES else 3306),
            unquote(parts.username or ""),
            unquote(parts.password or ""),
            unquote(parts.path.lstrip("/")),
        )

    def argv(self, tool: str) -> list[str]:
        program = shutil.which(tool)
        if program is None:
            raise Fatal(f"{tool} is not installed; install the client package of the database")
        user = f"--username={self.user}" if self.dialect is Dialect.POSTGRES else f"--user={self.user}"
        return [program, f"--host={self.host}", f"--port={self.port}", user]

    @property
    def environment(self) -> dict[str, str]:
        name = "PGPASSWORD" if self.dialect is Dialect.POSTGRES else "MYSQL_PWD"
        return {**os.environ, name: self.password}


def suffix_of(url: str) -> str:
    """How the name of a dump of this database ends."""
    return {Dialect.SQLITE: ".db", Dialect.POSTGRES: ".pgdump", Dialect.MARIADB: ".sql"}[dialect_of(url)]


def dump(url: str, output: Path, told: Told = _untold) -> None:
    """Writes the database to a file that is not there yet."""
    if dialect_of(url) is Dialect.SQLITE:
        copy_sqlite(sqlite_path(url), output, told)
    else:
        dump_server(url, output)
    output.chmod(0o600)


def copy_sqlite(source: Path, target: Path, told: Told = _untold) -> None:
    """A copy of one moment. The file may be in use; its writer is not kept waiting."""
    if not source.exists():
        raise DataUnusable(f"there is no database {source}; has a server run with this data folder?")
    # Made here, so that nobody else can read it at any moment.
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(source, isolation_level=None)) as old, closing(sqlite3.connect(target)) as new:
            # A transaction that has read holds its moment; without it a write in between would begin the copy anew.
            old.execute("BEGIN")
            old.execute("SELECT count(*) FROM sqlite_master").fetchone()
            old.backup(new, pages=PAGES_AT_ONCE, progress=lambda _, left, total: told(total - left, total))
            old.execute("ROLLBACK")
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise DataUnusable(f"{target.parent} has no room for a copy of {source}; free some") from error
        raise StoreUnavailable(f"the copy of {source} failed ({error}); check both disks") from error


def check_sqlite(copy: Path) -> None:
    """A damaged file is copied as it is. Whoever needs a backup some day has to learn of that today."""
    try:
        # Nobody writes to it, and nothing is written beside it: there may be no room for that.
        with closing(sqlite3.connect(f"{copy.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        said = str(error)
    if said != "ok":
        raise CheckFailed(
            f"the database is damaged ({said}), and so would be the backup: restore an older one with "
            "camserver restore --force, which keeps the file beside"
        )


def dump_server(url: str, output: Path) -> None:
    """The same of PostgreSQL (in its own packed format) or MariaDB (SQL)."""
    server = _Server.of(url)
    # `--` ends the options, so that a name that starts with a dash stays a name.
    if server.dialect is Dialect.POSTGRES:
        # Where rows are held to tenants, the owner of the tables must see them all, or the dump must fail.
        argv = [*server.argv("pg_dump"), "--no-password", "--format=custom", "--", server.name]
    else:
        argv = [
            *server.argv("mariadb-dump"),
            *("--single-transaction", "--hex-blob", "--triggers", "--", server.name),
        ]
    try:
        with os.fdopen(os.open(output, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            _run(argv, server, "the dump of the database failed", taking=file)
    except BaseException:
        output.unlink(missing_ok=True)
        raise


def load(url: str, dumped: Path) -> None:
    """Fills an empty database from a dump. A SQLite file replaces the one there, whole or not at all."""
    if dialect_of(url) is Dialect.SQLITE:
        _put_sqlite(sqlite_path(url), dumped)
        return
    server = _Server.of(url)
    if server.dialect is Dialect.POSTGRES:
        argv = [
            *server.argv("pg_restore"),
            *("--no-password", "--no-owner", "--exit-on-error", "--single-transaction"),
            f"--dbname={server.name}",
        ]
    else:
        argv = [*server.argv("mariadb"), "--default-character-set=utf8mb4", "--", server.name]
    with dumped.open("rb") as file:
        _run(argv, server, "the dump can't be loaded", giving=file)


def _run(
    argv: list[str], server: _Server, problem: str, *, giving: BinaryIO | None = None, taking: BinaryIO | None = None
) -> None:
    """It is killed when this process is, also where it has read all that it needs: one that went on loading would
    spoil what is loaded next."""
    stdin = subprocess.DEVNULL if giving is None else subprocess.PIPE
    stdout = subprocess.DEVNULL if taking is None else subprocess.PIPE
    with tempfile.TemporaryFile() as said:
        command, env = guarded(argv), server.environment
        with subprocess.Popen(command, env=env, stdin=stdin, stdout=stdout, stderr=said) as tool:
            try:
                if giving is not None and tool.stdin is not None:
                    with suppress(BrokenPipeError), tool.stdin:  # it has ended, and says why
                        shutil.copyfileobj(giving, tool.stdin, CHUNK_BYTES)
                if taking is not None and tool.stdout is not None:
                    shutil.copyfileobj(tool.stdout, taking, CHUNK_BYTES)
            except BaseException:
                tool.kill()
                raise
        if tool.returncode != 0:
            said.seek(0)
            words = said.read().decode(errors="replace").strip()[-SAID_MAX_CHARS:]
            raise StoreUnavailable(f"{problem} ({scrub(words)})")


def _put_sqlite(path: Path, dumped: Path) -> None:
    """The file before is kept beside, named after the moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(path.name + ".restoring")
    draft.unlink(missing_ok=True)
    try:
        shutil.copyfile(dumped, draft)
        with closing(sqlite3.connect(draft)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if said != "ok":
            raise DataUnusable(f"{dumped} is damaged ({said}); use another backup")
        # A log would be left out of what gets the name.
        fold_log_in(draft)
    except sqlite3.Error as error:
        raise DataUnusable(f"{dumped} is no SQLite database ({error}); use another backup") from error
    except OSError:
        draft.unlink(missing_ok=True)  # of a disk that is full
        raise
    for suffix in ("-wal", "-shm"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    if path.exists():
        fold_log_in(path)
        _keep_beside(path)
    draft.replace(path)
    folders.sync(path.parent)


def _keep_beside(path: Path) -> None:
    """Under a second name, so that at no moment there is none under the first: a server would begin with nothing."""
    before = path.with_name(f"{path.name}.before-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
    before.unlink(missing_ok=True)
    try:
        os.link(path, before)
    except OSError:
        shutil.copyfile(path, before)  # a file system without second names
        before.chmod(0o600)


def fold_log_in(path: Path) -> None:
    """Writes the old file's write-ahead log into it and removes the log: it must not be replayed into the new file,
    and until that is in place the old one must be whole."""
    with closing(sqlite3.connect(path)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
    if mode != "delete":
        raise sqlite3.OperationalError(f"{path} is open in another program")
