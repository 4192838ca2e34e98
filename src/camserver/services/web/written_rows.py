"""Rows of answers as JSON. Lists show the same rows again and again, so each is written once."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import orjson
from pydantic_core import to_jsonable_python

# A tuple that begins with its key.
R = TypeVar("R", bound=tuple[Any, ...])

KEPT_MAX = 4_096


class WrittenRows(Generic[R]):
    """`plain` says what stands in an answer for a row; it depends on nothing but the row."""

    def __init__(self, plain: Callable[[R], dict[str, Any]]) -> None:
        self._plain = plain
        self._kept: dict[object, tuple[R, orjson.Fragment]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, rows: Iterable[R]) -> list[orjson.Fragment]:
        kept, found = self._kept, []
        for row in rows:
            # Compared with the one that was written last: to hash a whole row takes twice as long.
            known = kept.get(row[0])
            if known is None or known[0] != row:
                if len(kept) >= KEPT_MAX:
                    kept.clear()
                text = orjson.dumps(self._plain(row), default=to_jsonable_python)
                known = kept[row[0]] = row, orjson.Fragment(text)
            found.append(known[1])
        return found
