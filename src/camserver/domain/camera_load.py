"""What a camera costs the worker that holds it: an estimate to plan with, not a measurement.

A look costs the decoding of one picture: the cost grows with its size and falls with the interval. Where there is a
sub stream, looks are made of that one; the full picture is decoded only for looks that pass, which are few. A camera
that is not to be processed is held and nothing more. Every camera takes a slot besides; a GPU is used by none.

    cpu (cores)  = 0.002 to hold the connection + (0.004 + 0.02 per megapixel) / interval in seconds
    mem (bytes)  = 12 MB for the connection and its ring buffer + 8 bytes per pixel
"""

import json
import re

from camserver.domain.assignment_types import Load

HOLD_CORES = 0.002
LOOK_CORE_SEC = 0.004
MEGAPIXEL_CORE_SEC = 0.02
HOLD_BYTES = 12_000_000.0
PIXEL_BYTES = 8.0
# Of a stream that was never probed.
MAIN_PIXELS = 1920 * 1080
SUB_PIXELS = 640 * 360


def camera_load(interval_sec: float, pixels: int | None, has_sub: bool, do_not_process: bool) -> Load:
    """`pixels` are those of the main stream, None when they are not known."""
    if do_not_process:
        return Load(cpu=HOLD_CORES, mem=HOLD_BYTES)
    looked_at = SUB_PIXELS if has_sub else pixels or MAIN_PIXELS
    look_core_sec = LOOK_CORE_SEC + MEGAPIXEL_CORE_SEC * looked_at / 1e6
    return Load(cpu=HOLD_CORES + look_core_sec / max(interval_sec, 0.1), mem=HOLD_BYTES + PIXEL_BYTES * looked_at)


def pixels_of(caps: str | None) -> int | None:
    """From what a probe found, {"res": "1920x1080", …}; None when it says nothing usable."""
    found = None if caps is None else json.loads(caps)
    size = found.get("res") if isinstance(found, dict) else None
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size) if isinstance(size, str) else None
    return int(match[1]) * int(match[2]) if match else None
