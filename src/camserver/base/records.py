"""Dataclasses that are made by the thousand, and dataclasses as what they are made of."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(kind: type[T]) -> type[T]:
    """A frozen dataclass with slots for whoever reads and checks the code. What a page of a list is made of.

    Python sets each field of a really frozen one by a call, so making one takes four times as long.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are: `asdict` copies all that is in them, which takes many times as
    long."""
    kind: Any = type(record)
    names, values = _reader(kind)
    return dict(zip(names, values(record), strict=True))


@cache
def _reader(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(kind))
    if len(names) < 2:
        return names, lambda record: tuple([getattr(record, name) for name in names])
    return names, attrgetter(*names)
