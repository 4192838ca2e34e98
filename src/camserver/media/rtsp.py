"""A camera's packets over RTSP, by whichever reader suits it.

Most cameras send H.264 or H.265, which the lean reader reads with a fraction of the work. FFmpeg reads what the lean
one says it can't, over TCP. Which of them it is, is remembered for some connections: a camera's settings change, and
one odd packet at the beginning is no reason to read it at ten times the cost for ever.
"""

from collections.abc import Callable

from camserver.base.log import get_logger
from camserver.media.packets import Miss, Packet
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_ffmpeg import FfmpegPackets
from camserver.media.rtsp_lean.messages import Unfit
from camserver.media.rtsp_lean.reader import LeanPackets

log = get_logger(__name__)

# A camera that has sent nothing for so long is given up here at last; consumers know sooner what silence means.
STALL_SEC = 60.0
# FFmpeg notices only after twice this time that nobody wants more, so it can't be as patient.
READ_TIMEOUT_SEC = 3.0
# After so many connections at most the lean reader is tried again.
LEAN_AGAIN_MAX = 64


class RtspPackets:
    """A `PacketSource`. May be read again after it ended, by one thread at a time."""

    def __init__(
        self,
        address: RtspAddress,
        connect_timeout_sec: float,
        boot_ms: Callable[[], int],
        transport: str = "tcp",
        tls_pin: str | None = None,
        with_sound: bool = False,
    ) -> None:
        self._lean = LeanPackets(address, connect_timeout_sec, STALL_SEC, boot_ms, tls_pin, transport, with_sound)
        self._ffmpeg = FfmpegPackets(address, connect_timeout_sec, READ_TIMEOUT_SEC, boot_ms, tls_pin, with_sound)
        self._lean_again = 1  # after so many connections, when it is unfit once more
        self._ffmpeg_left = 0  # connections that are FFmpeg's without asking again

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        if self._ffmpeg_left > 0:
            self._ffmpeg_left -= 1
            return self._ffmpeg.read(sink, wanted)
        try:
            miss = self._lean.read(sink, wanted)
            self._lean_again = 1
            return miss
        except Unfit as reason:
            log.info("camera is read by FFmpeg", cause=str(reason), connections=self._lean_again)
        self._ffmpeg_left = self._lean_again - 1
        self._lean_again = min(2 * self._lean_again, LEAN_AGAIN_MAX)
        return self._ffmpeg.read(sink, wanted)
