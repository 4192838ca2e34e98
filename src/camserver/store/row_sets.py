"""One statement for many rows, made of the statement for one.

PostgreSQL gets a column of values as one array, and joins them (`unnest`); MariaDB gets INSERT … VALUES with many
rows, and an UPDATE of the table joined with rows of values. Text in, text out; the drivers' modules run it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter

from camserver.base.errors import Bug

_PARAMETER = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
_VALUES = re.compile(r"\bVALUES\s*", re.IGNORECASE)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_INSERT = re.compile(r"\s*INSERT\b", re.IGNORECASE)
_UPDATE = re.compile(r"\s*UPDATE\b", re.IGNORECASE)
_SET = re.compile(r"\bSET\b", re.IGNORECASE)
_LIST = re.compile(r":[a-z_][a-z0-9_]*\.\.\.")
# No column of ours begins so: what is joined can't be mistaken for the table's own.
_ROWS = "given_"


def unnested(text: str, types: Mapping[str, str]) -> str:
    """An UPDATE … WHERE or INSERT … VALUES of one row as one of many: each parameter becomes an array named so with
    an `s` behind. `types` are PostgreSQL's of the parameters."""
    source = "unnest({}) AS {}({})".format(
        ", ".join(f":{name}s::{type_name}[]" for name, type_name in types.items()),
        _ROWS,
        ", ".join(f"{_ROWS}{name}" for name in types),
    )
    if _UPDATE.match(text):
        where = next((one.start() for one in _WHERE.finditer(text) if _is_outermost(text, one.start())), None)
        if where is None:
            raise Bug(f"an UPDATE of many rows says by WHERE which: {text.strip()[:80]}")
        return f"{_joined(text[:where])}FROM {source} {_joined(text[where:])}"
    parts = parted_values(text)
    if parts is None:
        raise Bug(f"neither UPDATE … WHERE nor INSERT … VALUES: {text.strip()[:80]}")
    head, values, tail = parts
    before = _VALUES.sub("", head)
    return f"{before} SELECT {_joined(values[1:-1])} FROM {source} {tail}"


def _is_outermost(text: str, place: int) -> bool:
    return text.count("(", 0, place) == text.count(")", 0, place)


def _joined(text: str) -> str:
    return _PARAMETER.sub(rf"{_ROWS}.{_ROWS}\1", text)


def columns(names: Sequence[str], rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """The arrays that `unnested` wants."""
    return {f"{name}s": list(map(itemgetter(name), rows)) for name in names}


@dataclass(frozen=True, slots=True)
class Joined:
    """MariaDB's UPDATE of many rows in parts: `head`, the `first` row, each `other` one, `tail`. Rows have a %s for
    each of `names`."""

    names: tuple[str, ...]
    head: str
    first: str
    other: str
    tail: str


@lru_cache(maxsize=512)
def joined(text: str) -> Joined:
    """An UPDATE … SET … WHERE of one row as one of many.

    The given rows come first, and the table's are looked up for each of them by its primary key. Left to itself the
    server reads a small table from end to end, and waits for rows that others have locked.
    """
    begin, assigns = _UPDATE.match(text), _SET.search(text)
    if begin is None or assigns is None or _WHERE.search(text) is None or _LIST.search(text) is not None:
        raise Bug(f"no UPDATE … SET … WHERE of one row: {text.strip()[:80]}")
    names = tuple(dict.fromkeys(_PARAMETER.findall(text)))
    first = ", ".join(f"%s AS {_ROWS}{name}" for name in names)
    other = ", ".join(["%s"] * len(names))
    table, rest = text[begin.end() : assigns.start()], _joined(text[assigns.start() :])
    tail = f") AS {_ROWS} STRAIGHT_JOIN{table}FORCE INDEX (PRIMARY) {rest}"
    return Joined(names, "UPDATE (", f"SELECT {first}", f"({other})", tail)


@lru_cache(maxsize=512)
def parted_values(text: str) -> tuple[str, str, str] | None:
    """An INSERT up to VALUES, the values in their parentheses, and what follows; None for anything else."""
    found = _VALUES.search(text) if _INSERT.match(text) else None
    if found is None or not text.startswith("(", found.end()):
        return None
    depth = 0
    for place in range(found.end(), len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[: found.end()], text[found.end() : place + 1], text[place + 1 :]
    return None
