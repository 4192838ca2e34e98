"""Cursors of lists that are read page by page in the order of a time and, within it, of a key.

Each begins with a letter of what it lists: one of another list would be read as a place in this one, and the page
would hold something, but not what comes next.
"""

from enum import StrEnum

from camserver.base.errors import BadInput

# Above every time and key there is, and within a BIGINT.
BEYOND = 2**62
_CURSOR_MAX_CHARS = 40


class Listed(StrEnum):
    AUDIT = "a"
    DELIVERIES = "d"
    EVENTS = "e"  # searches and lists of them alike
    FRAMES = "f"
    INCIDENTS = "i"
    JOBS = "j"
    NOTIFICATIONS = "n"
    SHARES = "h"
    SUMMARIES = "s"


def make_cursor(listed: Listed, at_ms: int, key: int) -> str:
    """What a page that goes on behind this row is asked with."""
    return f"{listed}{at_ms}.{key}"


def parse_cursor(listed: Listed, cursor: str) -> tuple[int, int]:
    at_ms, dot, key = cursor[1:].partition(".")
    digits = f"{at_ms}{key}"
    is_whole = cursor[:1] == listed and dot and at_ms and key and digits.isascii() and digits.isdecimal()
    if not is_whole or len(cursor) > _CURSOR_MAX_CHARS:
        raise BadInput("the cursor is none that this list gave out; start again without it", reason="bad_cursor")
    return min(int(at_ms), BEYOND), min(int(key), BEYOND)
