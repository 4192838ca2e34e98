"""A video file as a camera: played for ever, at its own pace, with times that only grow.

For demonstrations and for judging with footage. Reads in the hub's thread; nothing is decoded. The file is opened
here and never by FFmpeg, so that whatever its name looks like, it is a file of this machine.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.bitstream import BitStreamFilterContext
from av.container import InputContainer

from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.media.packets import Miss, Packet, Stream
from camserver.media.pictures import OPEN_OPTIONS
from camserver.media.rtsp_ffmpeg import PACKET_MAX_BYTES, judged, sound_of

log = get_logger(__name__)

SUFFIXES = (".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".mpg", ".mpeg")
# Files keep these without start codes; cameras send them with.
_TO_ANNEX_B = {"h264": "h264_mp4toannexb", "hevc": "hevc_mp4toannexb"}
# Kinds of files that hold their video themselves; lists of other files or addresses are none.
OPTIONS = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg",
    "protocol_whitelist": "none",
    **OPEN_OPTIONS,
}
_MILLISECONDS = Fraction(1, 1000)
# How long it waits at a time before it asks whether anybody wants more.
WAKE_SEC = 0.2
# A gap in a file's times is not waited out for longer.
PAUSE_MAX_SEC = 5.0


class FilePackets:
    """A `PacketSource`. Every reading begins at the beginning."""

    def __init__(
        self,
        path: Path,
        boot_ms: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        with_sound: bool = False,
    ) -> None:
        self._with_sound = with_sound
        self._path = path
        self._boot_ms = boot_ms
        self._clock = clock
        self._pause = pause

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        begun_sec = self._clock()
        turn_ms = 0  # where in time this turn of the file begins
        try:
            while True:
                last_ms = turn_ms
                for due_ms, packet in self._turn(turn_ms):
                    last_ms = max(last_ms, due_ms)
                    if not self._wait_until(begun_sec + last_ms / 1000, wanted):
                        return None
                    sink(packet)
                if last_ms == turn_ms:
                    return Miss(Fault.NO_VIDEO, f"{self._path} holds no video that can be played")
                # One picture's time between the last and the first.
                turn_ms = last_ms + 40
        except FileNotFoundError:
            return Miss(Fault.NOT_FOUND, f"{self._path} does not exist on the worker's machine")
        except av.FFmpegError as error:
            return Miss(Fault.NO_VIDEO, f"{self._path} is no video that can be read ({type(error).__name__})")
        except OSError as error:
            return Miss(Fault.REFUSED, f"{self._path} can't be read: {error.strerror}")

    def _wait_until(self, due_sec: float, wanted: Callable[[], bool]) -> bool:
        """Whether somebody still wants it then."""
        due_sec = min(due_sec, self._clock() + PAUSE_MAX_SEC)
        while wanted():
            left_sec = due_sec - self._clock()
            if left_sec <= 0:
                return True
            self._pause(min(left_sec, WAKE_SEC))
        return False

    def _turn(self, begin_ms: int) -> Iterator[tuple[int, Packet]]:
        """The file once, each packet with the time at which it is due, from `begin_ms` on."""
        with self._path.open("rb") as file, av.open(file, "r", options=dict(OPTIONS)) as container:
            if not container.streams.video:
                return
            video = container.streams.video[0]
            yield from packets_of(container, video, begin_ms, self._boot_ms, with_sound=self._with_sound)


def packets_of(
    container: InputContainer,
    video: Any,
    begin_ms: int = 0,
    boot_ms: Callable[[], int] = lambda: 0,
    *,
    with_sound: bool = False,
) -> Iterator[tuple[int, Packet]]:
    """A file's packets as a camera sends them, each with the time at which it is due, from `begin_ms` on."""
    codec = video.codec_context.name
    to_annex_b = BitStreamFilterContext(_TO_ANNEX_B[codec], video) if codec in _TO_ANNEX_B else None
    unit_ms = float((video.time_base or _MILLISECONDS) * 1000)
    extradata = b"" if to_annex_b else bytes(video.codec_context.extradata or b"")
    fps = None if not video.average_rate else round(float(video.average_rate), 2)
    stream = Stream(codec, extradata, _MILLISECONDS, fps=fps)
    first: int | None = None
    heard, sound = sound_of(container) if with_sound else (None, None)
    if sound is not None:
        yield begin_ms, Packet(sound, None, None, False, b"", boot_ms())
    for packet in container.demux(*([video] if sound is None else [video, heard])):
        if packet.size == 0:
            continue
        if sound is not None and packet.stream is heard:
            if packet.dts is not None and packet.dts >= 0:
                due_ms = begin_ms + round(packet.dts * sound.time_base * 1000)
                stamp = round(begin_ms / 1000 / sound.time_base) + packet.dts
                yield due_ms, Packet(sound, stamp, stamp, False, bytes(packet), boot_ms())
            continue
        for out in to_annex_b.filter(packet) if to_annex_b else (packet,):
            if out.dts is None or not 0 < out.size <= PACKET_MAX_BYTES:
                continue
            first = out.dts if first is None else first
            dts_ms = begin_ms + round((out.dts - first) * unit_ms)
            pts_ms = dts_ms if out.pts is None else begin_ms + round((out.pts - first) * unit_ms)
            made = judged(Packet(stream, pts_ms, dts_ms, out.is_keyframe, bytes(out), boot_ms()))
            stream = made.stream
            yield dts_ms, made
