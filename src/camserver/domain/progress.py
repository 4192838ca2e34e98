"""Whether analysis gets on, judged by when jobs were done and since when they wait."""

from enum import StrEnum

# Longer than an ordinary back-off: a job that waits this long while none is done has nobody to analyze it.
STALLED_AFTER_MS = 60_000


class Standing(StrEnum):
    WORKING = "working"
    IDLE = "idle"  # nothing to do
    STALLED = "stalled"  # work waits, and nothing gets done


def analysis_standing(last_done_at: int | None, oldest_waiting_at: int | None, now_ms: int) -> Standing:
    if oldest_waiting_at is None:
        return Standing.IDLE
    last_sign_ms = max(oldest_waiting_at, last_done_at or 0)
    return Standing.STALLED if now_ms - last_sign_ms > STALLED_AFTER_MS else Standing.WORKING
