"""Rows of answers that are written once and shown again."""

from typing import Any, NamedTuple

import orjson
import pytest

from camserver.services.web import labels
from camserver.services.web.labels import PlainTags
from tests.services.analyzer.rig import shipped


class Event(NamedTuple):
    number: int


class Camera(NamedTuple):
    number: int


def as_event(known: PlainTags, row: Event) -> dict[str, Any]:
    return {"event": row.number}


def as_camera(known: PlainTags, row: Camera) -> dict[str, Any]:
    return {"camera": row.number}


def text_of(part: orjson.Fragment) -> bytes:
    return orjson.dumps([part])


def test_a_row_is_written_once() -> None:
    known = PlainTags(shipped())
    first = known.written(Event(1), as_event)
    assert known.written(Event(1), as_event) is first
    assert text_of(first) == b'[{"event":1}]'
    # Equal as tuples, and yet something else.
    assert text_of(known.written(Camera(1), as_camera)) == b'[{"camera":1}]'
    assert text_of(known.written(Event(2), as_event)) == b'[{"event":2}]'


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "WRITTEN_MAX", 3)
    known = PlainTags(shipped())
    for number in range(10):
        assert text_of(known.written(Event(number), as_event)) == b'[{"event":%d}]' % number
        assert len(known._written) <= 3
