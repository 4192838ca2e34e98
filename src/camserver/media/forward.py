"""Decodes forward from a keyframe, look by look, where keyframes are much rarer than looks.

The decoder is kept from one look to the next, so that a look decodes only what came since the last one and not the
whole group again. Kept decoders hold their reference pictures; so there is one only while it is needed.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import av
from av.video.frame import VideoFrame

from camserver.media.packets import Packet
from camserver.media.pictures import Picture
from camserver.media.shots import VideoShot
from camserver.media.video_picture import VideoPicture, decode, new_decoder


@dataclass(slots=True)
class _Going:
    """A decoder in the middle of a group."""

    first: Packet
    context: Any
    seen: int = 0  # packets of the group it has had


class ForwardDecoder:
    """Of one camera. Used from picture threads; a look at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going: _Going | None = None
        self._broken: Packet | None = None

    def take_broken(self) -> Packet | None:
        """The first packet of a group that can't be decoded any further, once."""
        broken, self._broken = self._broken, None
        return broken

    def forget(self) -> None:
        """The connection is gone, or keyframes come often: the next group begins with a new decoder."""
        self._going = None

    def picture(self, packets: Sequence[Packet]) -> VideoPicture:
        """The picture of the last packet. BadInput when there is none in them. Work for a thread."""
        with self._lock:
            going = self._going
            if going is None or going.first is not packets[0] or going.seen > len(packets):
                going = _Going(packets[0], new_decoder(packets[0].stream))
            try:
                last = _feed(going, packets)
            except av.FFmpegError:
                last = None
            if last is None or last.is_corrupt:
                # From the beginning, and by the one who can tell what is wrong.
                self._going, self._broken = None, packets[0]
                picture = decode(packets)
                self._broken = None
                return picture
            self._going = going
            return VideoPicture(last)


@dataclass(frozen=True, slots=True)
class ForwardShot(VideoShot):
    """A keyframe and what followed, for a decoder that has seen the first of it already."""

    decoder: ForwardDecoder

    def decode(self, width_needed: int) -> Picture:
        return self.decoder.picture(self.packets)


def _feed(going: _Going, packets: Sequence[Packet]) -> VideoFrame | None:
    """The last picture that came out; pictures that are still to be put in order stay for the next look."""
    last: VideoFrame | None = None
    for packet in packets[going.seen :]:
        for frame in going.context.decode(av.Packet(packet.data)):
            last = frame
    going.seen = len(packets)
    return last
