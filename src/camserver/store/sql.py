"""SQL text for three dialects.

Text is written once with `:name` parameters and rendered per dialect on first use. What differs between dialects is
given by hand in a `Sql`. Rendering knows six portable spellings and nothing else:

- `:name`            a parameter
- `x IN (:ids...)`   a list parameter (`NOT IN` too); an empty list holds nothing: IN never matches, NOT IN always
- `IN_REACH(e)`      the row of `e`, which has a site_id and a camera_key, is within the principal's reach
- `IN_SITE_REACH(w)` the same for rows of a site as a whole: whoever reaches single cameras of it does not reach them
- `FOR UPDATE`, `FOR UPDATE SKIP LOCKED`, `FOR SHARE`   row locks; SQLite has one writer and needs none
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter


class Dialect(StrEnum):
    SQLITE = "sqlite"
    POSTGRES = "postgres"
    MARIADB = "mariadb"


@dataclass(frozen=True, slots=True)
class Sql:
    """A statement whose text differs between dialects; `text` serves those not given by name."""

    text: str = ""
    sqlite: str | None = None
    postgres: str | None = None
    mariadb: str | None = None

    def on(self, dialect: Dialect) -> str:
        special: str | None = getattr(self, dialect)
        return self.text if special is None else special


class EmptyList:
    """A list parameter without items, where a driver has no spelling of its own for one (see mariadb.py)."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text a driver understands and the names of its parameters in the order it wants them."""

    text: str
    names: tuple[str, ...]
    list_places: tuple[int, ...]  # where in that order lists stand
    pick: Callable[[Mapping[str, object]], tuple[object, ...]]  # the parameters' values in that order
    rules: bool = False  # it changes what `RULING` names

    def arguments(self, dialect: Dialect, params: Mapping[str, object]) -> tuple[object, ...]:
        values = self.pick(params)
        if not self.list_places:
            return values
        given = list(values)
        for place in self.list_places:
            given[place] = _list_argument(dialect, given[place])
        return tuple(given)


def _list_argument(dialect: Dialect, value: object) -> object:
    items = list(value)  # type: ignore[call-overload]  # a list parameter is iterable by contract
    match dialect:
        case Dialect.SQLITE:
            return json.dumps(items) if items else "[]"
        case Dialect.MARIADB:
            # The driver writes a tuple as (a,b); an empty one would be a syntax error.
            return tuple(items) or EmptyList()
        case Dialect.POSTGRES:
            return items


# What is asked for with every request: who somebody is, what they may do, and which vocabulary is active.
RULING = ("api_tokens", "grants", "schema_versions", "sessions", "tenants", "users")
_RULES = re.compile(rf"\b(INTO|UPDATE|FROM)\s+(IGNORE\s+)?({'|'.join(RULING)})\b", re.IGNORECASE)
_READS = re.compile(r"\s*SELECT\b", re.IGNORECASE)
# A colon that belongs to a PostgreSQL cast (::bigint) is no parameter.
_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)(\.\.\.)?")
_LIST = re.compile(r"(NOT\s+)?IN\s*\(\s*:([a-z_][a-z0-9_]*)\.\.\.\s*\)")
_LOCK = re.compile(r"\s+FOR\s+(UPDATE(\s+SKIP\s+LOCKED)?|SHARE)\b")


_REACH = re.compile(r"\bIN_(SITE_)?REACH\((\w*)\)")


def asks_for_reach(text: str) -> bool:
    """Whether it needs `all_sites`, `site_ids` and `camera_keys`, which `Scoped` binds."""
    return "IN_REACH(" in text or "IN_SITE_REACH(" in text


def _render_reach(match: re.Match[str]) -> str:
    of = f"{match.group(2)}." if match.group(2) else ""
    cameras = "" if match.group(1) else f" OR {of}camera_key IN (:camera_keys...)"
    return f"(:all_sites = 1 OR {of}site_id IN (:site_ids...){cameras})"


@lru_cache(maxsize=2048)
def render(statement: str | Sql, dialect: Dialect) -> Rendered:
    text = statement if isinstance(statement, str) else statement.on(dialect)
    text = _REACH.sub(_render_reach, text)
    lists = frozenset(match.group(2) for match in _LIST.finditer(text))
    if dialect is Dialect.SQLITE:
        text = _LOCK.sub("", text)
    elif dialect is Dialect.MARIADB:
        text = re.sub(r"\bFOR\s+SHARE\b", "LOCK IN SHARE MODE", text).replace("%", "%%")
    text = _LIST.sub(lambda match: _render_list(match, dialect), text)
    names: list[str] = []

    def place(match: re.Match[str]) -> str:
        name = match.group(1)
        if dialect is Dialect.POSTGRES:
            if name not in names:
                names.append(name)
            return f"${names.index(name) + 1}"
        names.append(name)
        return "?" if dialect is Dialect.SQLITE else "%s"

    rules = _READS.match(text) is None and _RULES.search(text) is not None
    text = _PARAMETER.sub(place, text)
    list_places = tuple(number for number, name in enumerate(names) if name in lists)
    return Rendered(text, tuple(names), list_places, _picker(names), rules)


def _picker(names: Sequence[str]) -> Callable[[Mapping[str, object]], tuple[object, ...]]:
    if len(names) > 1:
        return itemgetter(*names)
    return lambda params: tuple([params[name] for name in names])


def _render_list(match: re.Match[str], dialect: Dialect) -> str:
    negated, name = bool(match.group(1)), match.group(2)
    match dialect:
        case Dialect.SQLITE:
            return f"{'NOT ' if negated else ''}IN (SELECT value FROM json_each(:{name}))"
        case Dialect.MARIADB:
            return f"{'NOT ' if negated else ''}IN :{name}"
        case Dialect.POSTGRES:
            return f"<> ALL(:{name})" if negated else f"= ANY(:{name})"
