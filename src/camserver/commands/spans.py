"""Spans of time as commands are given them: since and until a moment, or the last hours."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from camserver.base.errors import BadInput
from camserver.commands.shown import moment

HOUR_MS = 3_600_000
HOURS_MAX = 366 * 24
_EXAMPLE = "2026-11-16, 2026-11-16 14:30 or 2026-11-16T14:30:00+09:00"

C = TypeVar("C", bound=Callable[..., Any])


class Moment(click.ParamType[int]):
    """A moment as people write it, in UTC epoch milliseconds. Without an offset it is this machine's local time."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            at_ms = round(datetime.fromisoformat(str(value).strip()).astimezone().timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            self.fail(f"{value!r} is no moment; write it like {_EXAMPLE}", param, ctx)
        if at_ms < 0:
            self.fail(f"{value!r} is before 1970; write a later moment", param, ctx)
        return at_ms


def span_options(usual: str) -> Callable[[C], C]:
    """--since, --until and --hours; `usual` is what is shown without them."""

    def added(command: C) -> C:
        for option in (
            click.option(
                "--hours",
                type=click.FloatRange(0, HOURS_MAX, min_open=True),
                help="Only the last so many hours.",
                show_default=usual,
            ),
            click.option("--until", type=Moment(), help="Only what began before this moment.", show_default="now"),
            click.option(
                "--since",
                type=Moment(),
                help="Only what began since this moment, such as 2026-11-16 or '2026-11-16 14:30', in local time.",
                show_default=usual,
            ),
        ):
            command = option(command)
        return command

    return added


def span_query(since: int | None, until: int | None, hours: float | None) -> list[tuple[str, str]]:
    """`from` and `to` as the API takes them; what was not given is left out."""
    if hours is not None:
        if since is not None or until is not None:
            raise BadInput("--hours counts back from now: give it, or --since and --until")
        since = max(0, int(time.time() * 1000 - hours * HOUR_MS))
    if since is not None and until is not None and since >= until:
        raise BadInput(f"--since ({moment(since)}) is not before --until ({moment(until)}); exchange them")
    given = (("from", since), ("to", until))
    return [(name, str(at_ms)) for name, at_ms in given if at_ms is not None]
