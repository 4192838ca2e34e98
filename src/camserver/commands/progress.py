"""A progress bar on standard error for work that says how far it is, with a bar for each kind of work.

Nothing of it where standard error is no terminal: a timer's journal or a mail of cron tells what was done, not how.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


def is_watched() -> bool:
    return sys.stderr.isatty()


class Bars:
    """Shows the bar of what is told of last."""

    def __init__(self) -> None:
        self._what = ""
        self._bar: Any = None

    def tell(self, label: str, done: int, total: int) -> None:
        if label != self._what:
            self.close()
            self._what = label
            self._bar = click.progressbar(length=max(total, 1), label=label, file=sys.stderr, hidden=not is_watched())
            self._bar.__enter__()
        self._bar.length = max(total, 1)
        self._bar.update(done - self._bar.pos)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


@contextmanager
def bars() -> Iterator[Bars]:
    shown = Bars()
    try:
        yield shown
    finally:
        shown.close()
