"""How a rule declares its settings.

A policy is a frozen dataclass beside its rule, and it *is* a section of the TOML file: config reads default,
doc and bounds of each field from here, so a default lives once. This module holds no rule and reads no file.
"""

from dataclasses import field
from typing import TypeVar

T = TypeVar("T")


def setting(default: T, doc: str, *, min: float | None = None, max: float | None = None) -> T:
    """A policy field with its doc and, where they help, the least and greatest value an operator may set."""
    metadata: dict[str, object] = {"doc": doc}
    if min is not None:
        metadata["min"] = min
    if max is not None:
        metadata["max"] = max
    return field(default=default, metadata=metadata)
