"""The address of the database, as a type that never prints its password.

Understands `sqlite:///path` (three slashes: relative to the current folder, four: absolute),
`postgresql://` or `postgres://`, and `mysql://` or `mariadb://`. It parses and masks; it connects to
nothing. No error raised here holds any part of the address, because a mistyped address may show its
password in an unexpected place.
"""

import re
from pathlib import Path
from typing import Final, Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from camserver.base.errors import BadInput
from camserver.base.secrets import MASK, Secret

Dialect = Literal["sqlite", "postgresql", "mysql"]

SCHEMES: Final[dict[str, Dialect]] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mysql": "mysql",
    "mariadb": "mysql",
}
_NOT_PRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_ENCODE_HINT = "write / ? # @ : and % in a user name or password percent-encoded (%2F %3F %23 %40 %3A %25)"


class DatabaseUrl(Secret):
    """A checked address. `str()` masks the password, `reveal()` is for the driver only."""

    __slots__ = ("dialect", "masked", "path")

    def __init__(self, dialect: Dialect, text: str, masked: str, path: Path | None = None) -> None:
        self.dialect: Final = dialect
        self.masked: Final = masked
        self.path: Final = path  # SQLite only: the file, absolute
        self._value = text
        if self.holds_password:
            # Makes the scrubber know the text; without a password it may be read in a log.
            super().__init__(text)

    @classmethod
    def parse(cls, text: str) -> "DatabaseUrl":
        scheme, separator, rest = text.partition("://")
        dialect = SCHEMES.get(scheme.lower())
        if not separator or dialect is None:
            plain = scheme.lower().partition("+")[0]
            if separator and plain in SCHEMES:
                raise BadInput(f"it names a driver; write {plain}:// without the part after the +")
            raise BadInput("it begins with none of sqlite:///, postgresql:// and mysql://")
        if dialect == "sqlite":
            return cls.for_file(_sqlite_path(rest))
        return _parse_network(dialect, rest)

    @classmethod
    def for_file(cls, path: Path) -> "DatabaseUrl":
        path = path.expanduser().absolute()
        text = f"sqlite:///{quote(str(path))}"
        return cls("sqlite", text, text, path)

    @property
    def holds_password(self) -> bool:
        return MASK in self.masked

    def __repr__(self) -> str:
        return f"DatabaseUrl({self.masked!r})"

    def __str__(self) -> str:
        return self.masked

    def __format__(self, spec: str) -> str:
        return format(self.masked, spec)


def _sqlite_path(rest: str) -> Path:
    name = rest.removeprefix("/")
    if not rest.startswith("/") or name in ("", ":memory:") or name.endswith("/") or "\0" in name:
        raise BadInput("it names no file; write sqlite:///folder/file.db (four slashes for an absolute path)")
    return Path(unquote(name))


def _parse_network(dialect: Dialect, rest: str) -> DatabaseUrl:
    if _NOT_PRINTABLE.search(rest):
        raise BadInput(f"it holds a space or a control character; {_ENCODE_HINT}")
    parts = _split(dialect, rest)
    # A / ? or # that was not encoded cuts the password in two; what follows still has the @.
    if parts is None or parts.fragment or "@" in parts.path + parts.query or "@" in _userinfo(parts):
        raise BadInput(f"it can't be split into user, password, host, port and database; {_ENCODE_HINT}")
    database = parts.path.removeprefix("/")
    if not database or "/" in database:
        raise BadInput("it names no database; write it after the host, as in postgresql://user@host/database")
    options = parse_qsl(parts.query, keep_blank_values=True)
    if not parts.hostname and not options:
        raise BadInput("it names no host")
    _remember_secrets(parts, options)
    return DatabaseUrl(dialect, f"{dialect}://{rest}", _masked(dialect, parts, options))


def _split(dialect: Dialect, rest: str) -> SplitResult | None:
    """The parts, or None. The errors of urlsplit quote what they were given, so they end here."""
    try:
        parts = urlsplit(f"{dialect}://{rest}")
        _ = parts.port  # reading it checks it
    except ValueError:
        return None
    return parts


def _userinfo(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[0]


def _remember_secrets(parts: SplitResult, options: list[tuple[str, str]]) -> None:
    """Makes the scrubber of base.secrets know the password in both its spellings."""
    hidden = [parts.password or "", *(value for name, value in options if "pass" in name.lower())]
    for value in hidden:
        Secret(value)
        Secret(unquote(value))


def _masked(dialect: Dialect, parts: SplitResult, options: list[tuple[str, str]]) -> str:
    """Built from the parts that may be seen, rather than cut from the text."""
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    if parts.port is not None:
        shown += f":{parts.port}"
    if parts.username is not None:
        password = "" if parts.password is None else f":{MASK}"
        shown = f"{parts.username}{password}@{shown}"
    # Options can carry passwords and key files under many names: their names are enough to see.
    query = "&".join(f"{name}={MASK}" for name, _ in options)
    return f"{dialect}://{shown}{parts.path}" + (f"?{query}" if query else "")
