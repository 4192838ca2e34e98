"""Dataclasses that are made by the thousand, and dataclasses as what they are made of."""

from dataclasses import dataclass, field
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
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
