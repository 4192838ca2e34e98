"""A camera at the worker's own USB port, through the system's video devices (v4l2).

A device is one camera: it can be opened once, and a second one who tries is told so. Compressed pictures are asked
for first, because plain ones are large; whoever has none gives plain ones.
"""

import errno
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from urllib.parse import urlsplit

import av
import av.error
from av.container import InputContainer

from camserver.base.errors import BadInput
from camserver.base.log import get_logger
from camserver.domain.devices import is_webcam
from camserver.domain.leases import Fault
from camserver.media.packets import Miss, Packet, RawShape, Stream
from camserver.media.rtsp_ffmpeg import PACKET_MAX_BYTES, judged

log = get_logger(__name__)

# The largest size that most have; a device that has not takes the nearest.
SIZE = "1920x1080"
FORMATS = ("mjpeg", "")  # the second: whatever it gives
READ_TIMEOUT_SEC = 5.0

_open_devices: set[str] = set()
_opening = threading.Lock()


def device_of(url: str) -> str:
    """The device of webcam:///dev/video0; other files are none. BadInput when it is none."""
    parts = urlsplit(url)
    if parts.scheme != "webcam" or parts.netloc or parts.query or not is_webcam(parts.path):
        raise BadInput("a webcam's address is of the form webcam:///dev/video0 or webcam:///dev/v4l/by-id/…")
    return parts.path


class WebcamPackets:
    """A `PacketSource`."""

    def __init__(self, device: str, boot_ms: Callable[[], int]) -> None:
        self._device = device
        self._boot_ms = boot_ms

    def read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        # By what it is and not by its name: two names may be one device.
        device = str(Path(self._device).resolve())
        with _opening:
            if device in _open_devices:
                return self._busy("by another camera of this worker")
            _open_devices.add(device)
        try:
            return self._read(sink, wanted)
        finally:
            with _opening:
                _open_devices.discard(device)

    def _read(self, sink: Callable[[Packet], None], wanted: Callable[[], bool]) -> Miss | None:
        opened = self._open()
        if isinstance(opened, Miss):
            return opened
        with opened:
            try:
                return self._read_packets(opened, sink, wanted)
            except av.FFmpegError as error:
                return Miss(Fault.NO_VIDEO, f"the webcam {self._device} stopped ({type(error).__name__})")

    def _open(self) -> InputContainer | Miss:
        miss = Miss(Fault.NO_VIDEO, f"the webcam {self._device} gives no video")
        for wanted in FORMATS:
            options = {"video_size": SIZE} | ({"input_format": wanted} if wanted else {})
            try:
                return av.open(self._device, format="video4linux2", options=options, timeout=READ_TIMEOUT_SEC)
            except av.FFmpegError as error:
                miss = self._explain(error)
                if miss.fault is not Fault.NO_VIDEO:
                    break
        return miss

    def _explain(self, error: av.FFmpegError) -> Miss:
        match error.errno:
            case errno.EBUSY:
                return self._busy("by another program")
            case errno.ENOENT | errno.ENODEV | errno.ENXIO:
                return Miss(Fault.NOT_FOUND, f"there is no webcam {self._device} at the worker's machine")
            case errno.EACCES | errno.EPERM:
                return Miss(
                    Fault.REFUSED,
                    f"the worker may not open the webcam {self._device}; put its user into the group video",
                )
        return Miss(Fault.NO_VIDEO, f"{self._device} can't be opened as a webcam ({type(error).__name__})")

    def _busy(self, by_whom: str) -> Miss:
        return Miss(Fault.REFUSED, f"the webcam {self._device} is in use {by_whom}; it can be opened only once")

    def _read_packets(
        self, container: InputContainer, sink: Callable[[Packet], None], wanted: Callable[[], bool]
    ) -> Miss | None:
        if not container.streams.video:
            return Miss(Fault.NO_VIDEO, f"{self._device} gives no video")
        video = container.streams.video[0]
        context = video.codec_context
        is_raw = context.name == "rawvideo"
        raw = RawShape(context.width, context.height, context.pix_fmt or "yuyv422") if is_raw else None
        extradata = bytes(context.extradata or b"")
        fps = None if not video.average_rate else round(float(video.average_rate), 2)
        stream = Stream(context.name, extradata, video.time_base or Fraction(1, 1_000_000), raw, fps)
        log.info("webcam is open", device=self._device, codec=stream.codec, size=(context.width, context.height))
        for packet in container.demux(video):
            if not wanted():
                return None
            if packet.is_corrupt or not 0 < packet.size <= PACKET_MAX_BYTES:
                continue
            is_keyframe = packet.is_keyframe or stream.codec in ("mjpeg", "rawvideo")
            made = judged(Packet(stream, packet.pts, packet.dts, is_keyframe, bytes(packet), self._boot_ms()))
            stream = made.stream
            sink(made)
        return Miss(Fault.NO_VIDEO, f"the webcam {self._device} ended the video")
