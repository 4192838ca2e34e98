"""What a source gives for a look: a picture that is not decoded yet, and when it was taken."""

from dataclasses import dataclass
from typing import TypeAlias

from camserver.base.errors import BadInput
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.packets import Packet
from camserver.media.pictures import Picture
from camserver.media.video_picture import decode


@dataclass(frozen=True, slots=True)
class JpegShot:
    """A picture as it came."""

    jpeg: bytes
    boot_ms: int | None = None  # when it was taken; None: just now

    def decode(self, width_needed: int) -> Picture:
        """BadInput when it is no readable JPEG. Work for a thread."""
        return JpegPicture(self.jpeg, width_needed)


@dataclass(frozen=True, slots=True)
class VideoShot:
    """A keyframe, or one and all that followed up to the picture that is meant."""

    packets: tuple[Packet, ...]

    @property
    def boot_ms(self) -> int:
        return self.packets[-1].boot_ms

    def decode(self, width_needed: int) -> Picture:
        """BadInput when there is no picture in it. Work for a thread."""
        if self.packets[-1].stream.codec == "mjpeg":
            return _decode_jpeg(self.packets[-1], width_needed)
        return decode(self.packets)


def _decode_jpeg(packet: Packet, width_needed: int) -> Picture:
    """As a file, which needs not be decoded whole; some webcams leave out tables that only FFmpeg puts in."""
    try:
        return JpegPicture(packet.data, width_needed)
    except BadInput:
        return decode((packet,))


Shot: TypeAlias = JpegShot | VideoShot
