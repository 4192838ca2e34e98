"""Spans of time as people type them."""

from datetime import datetime

import click
import pytest

from camserver.base.errors import BadInput
from camserver.commands.spans import HOUR_MS, Moment, span_query

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("typed", "at_ms"),
    [
        ("2026-01-01T00:00:00Z", 1_767_225_600_000),
        ("2026-01-01T09:00+09:00", 1_767_225_600_000),
        ("2026-01-01", round(datetime(2026, 1, 1).astimezone().timestamp() * 1000)),
        (" 2026-01-01 14:30 ", round(datetime(2026, 1, 1, 14, 30).astimezone().timestamp() * 1000)),
    ],
)
def test_a_moment_is_local_unless_it_says_otherwise(typed: str, at_ms: int) -> None:
    assert Moment().convert(typed, None, None) == at_ms


@pytest.mark.parametrize(
    "typed", ["", "yesterday", "2026-13-01", "12:00", "1969-01-01", "0001-01-01", "9999999999999"]
)
def test_what_is_no_moment_is_refused_by_name(typed: str) -> None:
    with pytest.raises(click.BadParameter, match=r"no moment; write it like 2026|before 1970"):
        Moment().convert(typed, None, None)


def test_a_span_is_told_by_moments_or_by_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW_MS / 1000)
    assert span_query(None, None, None) == []
    assert span_query(1, None, None) == [("from", "1")]
    assert span_query(1, 2, None) == [("from", "1"), ("to", "2")]
    assert span_query(None, None, 1.5) == [("from", str(NOW_MS - 3 * HOUR_MS // 2))]


@pytest.mark.parametrize(
    ("since", "until", "hours", "why"),
    [(1, None, 2.0, "--hours"), (None, 1, 2.0, "--hours"), (5, 5, None, "exchange"), (6, 5, None, "exchange")],
)
def test_a_span_that_is_none_is_refused(since: int | None, until: int | None, hours: float | None, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        span_query(since, until, hours)
