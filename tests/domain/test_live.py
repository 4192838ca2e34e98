"""When live view is let go for the looks' sake."""

import pytest

from camserver.domain.live import SHED_MS, Line, is_short, shed_until


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (Line(50, 0, 0), False),
        (Line(2_000, 0, 0), False),
        (Line(2_001, 0, 0), True),
        (Line(50, 19, 0), False),
        (Line(50, 20, 10), True),
        (Line(50, 500, 495), False),
        (Line(50, 500, 600), False),
    ],
)
def test_a_line_is_short(line: Line, short: bool) -> None:
    assert is_short(line) == short


def test_it_stays_so_for_a_while() -> None:
    until_ms = shed_until(Line(3_000, 0, 0), 0, 1_000)
    assert until_ms == 1_000 + SHED_MS
    assert shed_until(Line(10, 0, 0), until_ms, 2_000) == until_ms
