"""Pickles what crosses to the SQLite writer, with a short cut for dataclasses and named tuples.

The standard way to pickle a frozen, slotted dataclass walks its fields in Python on both sides, and a named tuple is
taken apart and put together by Python code. Here both become their class and the tuple of their values, which is
several times faster.
"""

import dataclasses
import enum
import io
import pickle
from collections.abc import Callable
from operator import attrgetter
from types import BuiltinFunctionType
from typing import Any

loads = pickle.loads
# How an object is made: by a call, or found by a name.
Reduced = tuple[Any, ...] | str
# Always the same object, so that it is in a message once.
_TUPLE: Any = tuple.__new__


class _Reducers(dict[type, Callable[[Any], Reduced]]):
    """How to take an object of a type apart; found once for each type, KeyError for the standard way."""

    def __missing__(self, kind: type) -> Callable[[Any], Reduced]:
        reducer = _reducer(kind)
        if reducer is None:
            raise KeyError(kind)
        self[kind] = reducer
        return reducer


def _reducer(kind: type) -> Callable[[Any], Reduced] | None:
    if issubclass(kind, enum.Enum):
        # As what it is called in its module: looking a member up by value runs Python code.
        return lambda member: f"{kind.__qualname__}.{member._name_}"
    if kind is BuiltinFunctionType:
        # The standard way, without finding out each time that there is no other.
        return lambda function: function.__reduce__()
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return lambda held: (_TUPLE, (kind, tuple(held)))
    if not dataclasses.is_dataclass(kind):
        return None
    fields = dataclasses.fields(kind)
    if not all(field.init for field in fields):
        return None
    names = [field.name for field in fields]
    if len(names) == 1:
        return lambda held: (kind, (getattr(held, names[0]),))
    values = attrgetter(*names)
    return lambda held: (kind, values(held))


_REDUCERS = _Reducers()


def dumps(held: object) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(held)
    return buffer.getvalue()
