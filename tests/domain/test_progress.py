import pytest

from camserver.domain.progress import STALLED_AFTER_MS, Standing, analysis_standing

NOW_MS = 10_000_000
LONG_AGO = NOW_MS - STALLED_AFTER_MS - 1
JUST_NOW = NOW_MS - STALLED_AFTER_MS


@pytest.mark.parametrize(
    ("last_done_at", "oldest_waiting_at", "standing"),
    [
        (None, None, Standing.IDLE),
        (LONG_AGO, None, Standing.IDLE),
        (None, JUST_NOW, Standing.WORKING),
        (None, LONG_AGO, Standing.STALLED),
        (LONG_AGO, LONG_AGO, Standing.STALLED),
        (JUST_NOW, LONG_AGO, Standing.WORKING),
        (LONG_AGO, JUST_NOW, Standing.WORKING),
    ],
)
def test_how_analysis_gets_on(last_done_at: int | None, oldest_waiting_at: int | None, standing: Standing) -> None:
    assert analysis_standing(last_done_at, oldest_waiting_at, NOW_MS) is standing
