"""Pictures that say when they were made. Run by the system's Python; imports nothing of camserver.

A picture is 8 by 5 cells, white for 1 and black for 0, from left to right and from top to bottom: the time of day as
milliseconds since 1970, the lowest 32 bits of it with the highest first, and the sum of their four bytes as 8 bits
more. Whoever sees the picture reads its age off it (ui/e2e/latency.spec.ts), and a torn one has a wrong sum.
"""

import struct
import time
from typing import Any

COLUMNS, ROWS = 8, 5
CELL_WIDTH, CELL_HEIGHT = 40, 36
WIDTH, HEIGHT = COLUMNS * CELL_WIDTH, ROWS * CELL_HEIGHT
FPS = 15
SOURCE = "clock"
PIPELINE = (
    f"( appsrc name={SOURCE} is-live=true do-timestamp=true format=time "
    f"caps=video/x-raw,format=I420,width={WIDTH},height={HEIGHT},framerate={FPS}/1 "
    "! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 bitrate=1000 "
    "! video/x-h264,profile=baseline ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=1 )"
)
_BLACK, _WHITE = bytes([16]) * CELL_WIDTH, bytes([235]) * CELL_WIDTH
_GREY = bytes([128]) * (WIDTH // 2 * (HEIGHT // 2) * 2)


def picture(now_ms: int) -> bytes:
    """I420: the brightness of every pixel, then what gives no colour."""
    stamp = struct.pack("!I", now_ms & 0xFFFFFFFF)
    written = [*stamp, sum(stamp) & 0xFF]
    lines = [b"".join(_WHITE if byte >> bit & 1 else _BLACK for bit in range(7, -1, -1)) for byte in written]
    return b"".join(line * CELL_HEIGHT for line in lines) + _GREY


class Pusher:
    """Feeds one media whose source is called `clock`, for as long as it is prepared."""

    def __init__(self, media: Any, gst: Any, glib: Any) -> None:
        self.gst = gst
        self.glib = glib
        self.source = media.get_element().get_child_by_name(SOURCE)
        self.timer = glib.timeout_add(1000 // FPS, self.push)
        media.connect("unprepared", self.stop)

    def push(self) -> bool:
        buffer = self.gst.Buffer.new_wrapped(picture(time.time_ns() // 1_000_000))
        buffer.duration = self.gst.SECOND // FPS
        return bool(self.source.emit("push-buffer", buffer) == self.gst.FlowReturn.OK)

    def stop(self, _media: Any) -> None:
        if self.timer:
            self.glib.source_remove(self.timer)
            self.timer = 0
