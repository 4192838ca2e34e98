"""Rows of answers that are written once and shown again."""

from typing import Any, NamedTuple

import orjson
import pytest

from camserver.services.web import written_rows
from camserver.services.web.written_rows import WrittenRows


class Event(NamedTuple):
    number: int
    state: str


def plain(row: Event) -> dict[str, Any]:
    return {"event": row.number, "state": row.state}


def text_of(parts: list[orjson.Fragment]) -> bytes:
    return orjson.dumps(parts)


def test_a_row_is_written_once() -> None:
    written = WrittenRows(plain)
    [first] = written.of([Event(1, "open")])
    assert written.of([Event(1, "open")])[0] is first
    assert text_of(written.of([Event(2, "open"), Event(1, "open")])) == (
        b'[{"event":2,"state":"open"},{"event":1,"state":"open"}]'
    )


def test_a_row_that_changed_is_written_anew() -> None:
    written = WrittenRows(plain)
    assert text_of(written.of([Event(1, "open")])) == b'[{"event":1,"state":"open"}]'
    assert text_of(written.of([Event(1, "closed")])) == b'[{"event":1,"state":"closed"}]'
    assert len(written) == 1


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_rows, "KEPT_MAX", 3)
    written = WrittenRows(plain)
    for number in range(10):
        assert text_of(written.of([Event(number, "open")])) == b'[{"event":%d,"state":"open"}]' % number
        assert len(written) <= 3
