"""Reads a camera's packets over RTSP with FFmpeg, through PyAV: what the lean reader can't read, such as MJPEG.

Only RTSP is opened: the format is forced and the protocols are listed. Options as measured: a small probe, because
codec and parameters are in the camera's description; never `nobuffer`, which drops the first keyframe. `timeout`
is the only one that ends a stalled read, after twice its value. FFmpeg's own messages are never passed on: they may
quote the address, and with it the password. It is not trusted with certificates or with where a
camera sends it either: it goes through `rtsp_pipe`, and so over TCP only.
"""

import contextlib
import errno
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import av
import av.error
from av.container import InputContainer

from camserver.base.log import get_logger
from camserver.domain.leases import Fault
from camserver.media import nal_units
from camserver.media.addresses import Place
from camserver.media.packets import Miss, Packet, SoundShape, Stream
from camserver.media.pictures import OPEN_OPTIONS
from camserver.media.rtsp_address import RtspAddress
from camserver.media.rtsp_lean.reader import UNREACHABLE
from camserver.media.rtsp_pipe import RtspPipe

log = get_logger(__name__)

OPTIONS = {
    "rtsp_transport": "tcp",
    "allowed_media_types": "video",
    "probesize": "32",
    "analyzeduration": "0",
    "protocol_whitelist": "rtsp,tcp",
    **OPEN_OPTIONS,
}
# Sound that is passed on; of AAC only what comes with its description.
SOUND_CODECS = ("aac", "opus", "pcm_mulaw", "pcm_alaw")
# A packet of more is no picture of a camera.
PACKET_MAX_BYTES = 20_000_000


class FfmpegPackets:
    """A `PacketSource`. May be read again after it ended, by one thread at a time."""

    def __init__(
        self,
        address: RtspAddress,
        connect_timeout_sec: float,
        read_timeout_sec: float,
        boot_ms: Callable[[], int],
        tls_pin: str | None = None,
        with_sound: bool = False,
    ) -> None:
        self._address = address
        self._with_sound = with_sound
        self._connect_timeout_sec = connect_timeout_sec
        self._read_timeout_sec = read_timeout_sec
        self._boot_ms = boot_ms
        self._tls_pin = tls_pin

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        with contextlib.ExitStack() as stack:
            place = self._address.find()
            if isinstance(place, Miss):
                return place
            pipe = stack.enter_context(RtspPipe(self._address, place, self._tls_pin, self._connect_timeout_sec))
            if pipe.miss is not None:
                return pipe.miss
            opened = self._open(pipe.place)
            if isinstance(opened, Miss):
                return opened
            # In this thread, which alone has used it: closing from another one crashes the process.
            stack.callback(opened.close)
            try:
                return self._read_packets(opened, sink, wanted)
            except av.FFmpegError as error:
                return explain(error, "the camera's video ended")

    def _open(self, place: Place) -> InputContainer | Miss:
        began_sec = time.monotonic()
        try:
            return av.open(
                self._address.for_ffmpeg(place, "rtsp"),
                format="rtsp",
                options=OPTIONS | ({"allowed_media_types": "video+audio"} if self._with_sound else {}),
                timeout=(self._connect_timeout_sec, self._read_timeout_sec),
            )
        except av.FFmpegError as error:
            # Whatever FFmpeg made of it: when the time is over, being interrupted was the cause.
            in_time = time.monotonic() - began_sec < self._connect_timeout_sec
            cause = error if in_time else av.error.TimeoutError(errno.ETIMEDOUT, "timed out")
            return explain(cause, f"{self._address} can't be opened")

    def _read_packets(
        self, container: InputContainer, sink: Callable[[Packet], None], wanted: Callable[[], bool]
    ) -> Miss | None:
        if not container.streams.video:
            return Miss(Fault.NO_VIDEO, f"{self._address} has no video that can be read")
        video = container.streams.video[0]
        context = video.codec_context
        stream = Stream(context.name, bytes(context.extradata or b""), video.time_base or Fraction(1, 90_000))
        log.debug("camera is open", codec=stream.codec, reader="ffmpeg")
        heard, sound = sound_of(container)
        if sound is not None:
            sink(Packet(sound, None, None, False, b"", self._boot_ms()))
        for packet in container.demux(*([video] if heard is None else [video, heard])):
            if not wanted():
                return None
            if packet.is_corrupt or not 0 < packet.size <= PACKET_MAX_BYTES:
                continue
            if sound is not None and packet.stream is heard:
                sink(Packet(sound, packet.pts, packet.dts, False, bytes(packet), self._boot_ms()))
                continue
            made = Packet(stream, packet.pts, packet.dts, packet.is_keyframe, bytes(packet), self._boot_ms())
            made = judged(made)
            stream = made.stream
            sink(made)
        return Miss(Fault.NO_VIDEO, "the camera ended the video")


def sound_of(container: InputContainer) -> tuple[Any, Stream | None]:
    """The sound track as FFmpeg has it and as it is here; None twice where there is none that is passed on."""
    for track in container.streams.audio:
        context = track.codec_context
        config = bytes(context.extradata or b"")
        if context.name in SOUND_CODECS and (context.name != "aac" or config) and 1 <= context.channels <= 2:
            shape = SoundShape(context.sample_rate or 8000, context.channels)
            base = track.time_base or Fraction(1, shape.rate)
            return track, Stream(context.name, config if context.name == "aac" else b"", base, sound=shape)
    return None, None


def judged(packet: Packet) -> Packet:
    """The packet as it is. With intra refresh FFmpeg calls also that a keyframe from which decoding only begins, of
    H.264; of H.265 it does not say where that is."""
    stream = packet.stream
    if stream.codec != "hevc" and not (packet.is_keyframe and stream.codec == "h264"):
        return packet
    kind = nal_units.kind_of_bytes(stream.codec, packet.data)
    if kind.sets and kind.sets != stream.extradata:
        # In the video itself they are newer than in the camera's description: another size, perhaps.
        stream = Stream(stream.codec, kind.sets, stream.time_base, fps=stream.fps)
    # It also takes parameter sets alone for one.
    is_keyframe = kind.has_picture and (kind.is_keyframe or (packet.is_keyframe and not kind.is_recovery))
    return Packet(stream, packet.pts, packet.dts, is_keyframe, packet.data, packet.boot_ms, kind.is_recovery)


def explain(error: av.FFmpegError, what: str) -> Miss:
    """Which fault an error of FFmpeg is, without a word of what FFmpeg says."""
    match error:
        case av.error.HTTPUnauthorizedError() | av.error.HTTPForbiddenError():
            return Miss(Fault.UNAUTHORIZED, f"{what}: the camera refused user or password")
        case av.error.HTTPNotFoundError():
            return Miss(Fault.NOT_FOUND, f"{what}: the camera has no such path")
        case av.error.ConnectionRefusedError():
            return Miss(Fault.REFUSED, f"{what}: the connection was refused", is_crowded=True)
        case av.error.ExitError() | av.error.TimeoutError():
            return Miss(Fault.NO_VIDEO, f"{what}: the camera does not answer in time", timed_out=True)
    if error.errno in UNREACHABLE:
        return Miss(Fault.NO_ROUTE, f"{what}: there is no route to the camera")
    return Miss(Fault.NO_VIDEO, f"{what} ({type(error).__name__})")
