"""What a store's URL says: which database it is, and where a SQLite file lies. Connects to nothing."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from camserver.base.errors import Fatal
from camserver.store.sql import Dialect


def dialect_of(url: str) -> Dialect:
    match urlsplit(url).scheme.partition("+")[0]:
        case "sqlite":
            return Dialect.SQLITE
        case "postgresql" | "postgres":
            return Dialect.POSTGRES
        case "mysql" | "mariadb":
            return Dialect.MARIADB
        case scheme:
            raise Fatal(
                f"[store] url has the scheme {scheme!r}; use sqlite:///path, postgresql://… or mysql://… (MariaDB)"
            )


def sqlite_path(url: str) -> Path:
    path = unquote(urlsplit(url).path)
    # With four slashes, two of them begin the path; messages that name it should not.
    return Path(path.removeprefix("/") if path.startswith("//") else path)
