"""Tells a SQLite file that is at the newest schema, without the libraries that migrate.

Those take half a second of CPU and 25 MB, and nearly every start finds nothing to migrate. Whatever is not plainly up
to date is theirs to judge.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

MIGRATIONS = Path(__file__).parent / "migrations"


def newest_revision() -> str:
    """Of the migrations that come with this program; a file's name begins with its number."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*_*.py"))


def is_newest(path: Path) -> bool:
    """False also for a file that is not there or can't be read."""
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(path)) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.Error:
        return False
    return found == [(newest_revision(),)]
