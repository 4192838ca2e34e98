"""Bars of progress: for who watches, and nothing in the journal of a timer."""

import io

import pytest

from camserver.commands import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("error", "is_shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_bar_is_for_a_terminal(monkeypatch: pytest.MonkeyPatch, error: io.StringIO, is_shown: bool) -> None:
    monkeypatch.setattr("sys.stderr", error)
    with progress.bars() as shown:
        for done in range(4):
            shown.tell("Objects", done, 3)
    assert ("Objects" in error.getvalue()) is is_shown
    assert bool(error.getvalue()) is is_shown
