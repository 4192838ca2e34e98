"""What every database keeps as JSON, and what only some do.

JSON as Python writes it may hold NaN, halves of characters, NUL and any depth; PostgreSQL and MariaDB refuse one or
another of these. Whatever strangers had a hand in is looked at here before it is stored.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

TEXT_MAX_CHARS: Final = 200_000
# MariaDB goes 32 deep.
DEPTH_MAX: Final = 16
INTEGER_MAX: Final = 2**63 - 1


def plain_json(held: Mapping[str, Any]) -> str | None:
    """The object as text; None when not every database would take it, or it is longer than anybody needs."""
    if not _is_plain(held, DEPTH_MAX):
        return None
    text = json.dumps(dict(held), ensure_ascii=False)
    return text if len(text) <= TEXT_MAX_CHARS else None


def _is_plain(value: object, depth: int) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, int):
        return abs(value) <= INTEGER_MAX
    if isinstance(value, float):
        return math.isfinite(value)
    if depth == 0:
        return False
    if isinstance(value, Mapping):
        return all(
            isinstance(name, str) and _is_plain(name, 0) and _is_plain(inner, depth - 1)
            for name, inner in value.items()
        )
    return isinstance(value, list | tuple) and all(_is_plain(inner, depth - 1) for inner in value)
