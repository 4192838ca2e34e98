"""Sound of telephony (G.711), which browsers don't play in video, as AAC. Work for a thread, though hardly any."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal

import av
from av.audio.fifo import AudioFifo
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler

from camserver.base.log import get_logger
from camserver.media.packets import Packet, SoundShape, Stream
from camserver.media.sound import AAC_FRAME

log = get_logger(__name__)

# Twice what telephony has: some browsers don't take less.
RATE = 16_000
BITS_PER_SEC = 48_000
# AAC-LC, 16 kHz, one channel (ISO 14496-3).
AAC_STREAM = Stream("aac", b"\x14\x08", Fraction(1, RATE), sound=SoundShape(RATE, 1))
# A hole in the sound that is larger than this is one to hear.
HOLE_SEC = 0.25


class SoundEncoder:
    def __init__(self, source: Stream) -> None:
        """`source` is G.711."""
        assert source.sound is not None
        self.source = source
        self._decoder: Any = _context(source.codec, "r")
        self._decoder.sample_rate = source.sound.rate
        self._decoder.layout = "mono" if source.sound.channels == 1 else "stereo"
        self._resampler = AudioResampler(format="fltp", layout="mono", rate=RATE)
        self._encoder: Any = _context("aac", "w")
        self._encoder.sample_rate, self._encoder.layout, self._encoder.format = RATE, "mono", "fltp"
        self._encoder.time_base, self._encoder.bit_rate = Fraction(1, RATE), BITS_PER_SEC
        self._fifo = AudioFifo()
        self._due = 0  # when the next piece that goes in begins, in ticks of what comes out
        self._at: int | None = None  # when the next frame that comes out begins

    def feed(self, packet: Packet) -> list[Packet]:
        if not packet.data:
            return [Packet(AAC_STREAM, None, None, False, b"", packet.boot_ms)]
        begin = self._due if packet.pts is None else int(packet.pts * self.source.time_base * RATE)
        if self._at is None or abs(begin - self._due) > HOLE_SEC * RATE:
            self._fifo = AudioFifo()
            self._at = begin
        self._due = begin
        try:
            for frame in self._decoder.decode(av.Packet(packet.data)):
                for part in self._resampler.resample(frame):
                    part.pts = None
                    self._due += part.samples
                    self._fifo.write(part)
            return [made for frame in self._frames() for made in self._made(frame, packet.boot_ms)]
        except av.FFmpegError as error:
            log.info("sound can't be converted", cause=type(error).__name__)
            return []

    def _frames(self) -> Iterator[AudioFrame]:
        while (frame := self._fifo.read(AAC_FRAME)) is not None:
            yield frame

    def _made(self, frame: AudioFrame, boot_ms: int) -> Iterator[Packet]:
        frame.pts = None
        for one in self._encoder.encode(frame):
            assert self._at is not None
            yield Packet(AAC_STREAM, self._at, self._at, False, bytes(one), boot_ms)
            self._at += AAC_FRAME


def _context(codec: str, mode: Literal["r", "w"]) -> Any:
    return av.CodecContext.create(codec, mode)
