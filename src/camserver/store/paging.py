"""Cursors of lists that are read page by page in the order of a time and, within it, of a key."""

from camserver.base.errors import BadInput

# Above every time and key there is, and within a BIGINT.
BEYOND = 2**62
_CURSOR_MAX_CHARS = 38


def make_cursor(at_ms: int, key: int) -> str:
    """What a page that goes on behind this row is asked with."""
    return f"{at_ms}.{key}"


def parse_cursor(cursor: str) -> tuple[int, int]:
    at_ms, dot, key = cursor.partition(".")
    digits = f"{at_ms}{key}"
    if not (dot and at_ms and key and digits.isascii() and digits.isdecimal()) or len(cursor) > _CURSOR_MAX_CHARS:
        raise BadInput("the cursor is none that this server gave out; start again without it", reason="bad_cursor")
    return min(int(at_ms), BEYOND), min(int(key), BEYOND)
