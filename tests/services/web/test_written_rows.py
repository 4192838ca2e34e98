"""Rows of answers that are written once and shown again."""

from typing import Any, NamedTuple

import orjson
import pytest

from camserver.services.web import labels
from camserver.services.web.labels import PlainTags
from tests.services.analyzer.rig import shipped


class Event(NamedTuple):
    number: int
    state: str


class Camera(NamedTuple):
    number: int
    state: str


def as_event(known: PlainTags, row: Event) -> dict[str, Any]:
    return {"event": row.state}


def as_camera(known: PlainTags, row: Camera) -> dict[str, Any]:
    return {"camera": row.state}


def text_of(parts: list[orjson.Fragment]) -> bytes:
    return orjson.dumps(parts)


def test_a_row_is_written_once() -> None:
    known = PlainTags(shipped())
    [first] = known.written([Event(1, "a")], as_event)
    assert known.written([Event(1, "a")], as_event)[0] is first
    assert text_of([first]) == b'[{"event":"a"}]'
    # Equal as tuples, and yet something else.
    assert text_of(known.written([Camera(1, "a")], as_camera)) == b'[{"camera":"a"}]'
    assert text_of(known.written([Event(2, "b"), Event(1, "a")], as_event)) == b'[{"event":"b"},{"event":"a"}]'


def test_a_row_that_changed_is_written_anew() -> None:
    known = PlainTags(shipped())
    assert text_of(known.written([Event(1, "open")], as_event)) == b'[{"event":"open"}]'
    assert text_of(known.written([Event(1, "closed")], as_event)) == b'[{"event":"closed"}]'


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "WRITTEN_MAX", 3)
    known = PlainTags(shipped())
    for number in range(10):
        assert text_of(known.written([Event(number, "a")], as_event)) == b'[{"event":"a"}]'
        assert len(known._written[as_event]) <= 3
