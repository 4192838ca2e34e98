"""Whether a database holds an installation, and taking all of it out again before a backup is put back."""

from sqlalchemy.engine import Connection

from camserver.store import marks, migrate, our_tables
from camserver.store.address import dialect_of, sqlite_path
from camserver.store.marks import Mark
from camserver.store.sql import Dialect


def is_empty(url: str) -> bool:
    """Whether there is no table of ours."""
    if dialect_of(url) is Dialect.SQLITE:
        return not sqlite_path(url).exists()
    return migrate.on_database(url, lambda connection: not our_tables.there(connection))


def empty(url: str) -> None:
    """Drops our tables on a server; those of other programs stay. A SQLite file is replaced as a whole instead.

    A mark says that what follows is not whole, so that no server starts on it until `finish`.
    """
    if dialect_of(url) is not Dialect.SQLITE:
        migrate.on_database(url, _drop)


def is_unfinished(url: str) -> bool:
    """Whether a restore or a copy was begun and not finished, so that no server runs on it."""
    if dialect_of(url) is Dialect.SQLITE:
        return False
    return migrate.on_database(url, lambda found: any(marks.is_there(found, mark) for mark in marks.REFUSED))


def finish(url: str) -> None:
    """What is in the database is whole."""
    migrate.on_database(url, lambda connection: marks.remove(connection, Mark.RESTORING))


def _drop(connection: Connection) -> None:
    marks.put(connection, Mark.RESTORING)
    our_tables.drop(connection, keeping=(Mark.RESTORING,))
