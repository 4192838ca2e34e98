"""A film of video that a browser does not play, made anew as H.264: what a live transcode does, all at once.

It is of the same size and rate as a transcoded live view, in one thread, and stops as soon as nobody wants it.
"""

import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import av

from camserver.base.errors import BadInput, Unavailable
from camserver.media import file_packets, nal_units
from camserver.media.mp4_clip import FilmedClip, film
from camserver.media.packets import Packet
from camserver.media.parameter_sets import is_played_everywhere
from camserver.media.transcoding import VideoTranscoder, VideoWork


def is_playable(packets: Sequence[Packet], plays: Collection[str]) -> bool:
    """Whether a browser that plays these codecs, by FFmpeg's names, plays the video as it is."""
    first = packets[0]
    codec = first.stream.codec
    if codec == "hevc":
        return codec in plays
    # Many cameras send their parameter sets with the pictures only.
    sets = nal_units.kind_of_bytes(codec, first.data).sets if codec == "h264" else b""
    return is_played_everywhere(codec, sets or first.stream.extradata)


def film_transcoded(packets: Sequence[Packet], work: VideoWork, is_wanted: Callable[[], bool]) -> FilmedClip:
    """The same as a film in H.264; BadInput where there is no picture in it, Unavailable when nobody wants it now."""
    transcoder = VideoTranscoder(work)
    made: list[Packet] = []
    for packet in packets:
        if not is_wanted():
            raise Unavailable("the film took too long to be transcoded")
        made += transcoder.feed(packet, 0)
    made += transcoder.finish()
    return film(made)


def playable_anew(mp4: bytes, work: VideoWork, is_wanted: Callable[[], bool]) -> bytes | None:
    """A film that was made of a camera's video, as one that every browser plays; None: it is one already.

    BadInput where it can't be read, Unavailable when nobody wants it now.
    """
    try:
        with av.open(io.BytesIO(mp4), "r", options=dict(file_packets.OPTIONS)) as container:
            if not container.streams.video:
                raise BadInput("the film holds no video")
            found = file_packets.packets_of(container, container.streams.video[0])
            # Its times are right: nothing arrives here that they could be compared with.
            packets = [replace(packet, boot_ms=due_ms) for due_ms, packet in found]
    except av.FFmpegError as error:
        raise BadInput(f"the film can't be read ({type(error).__name__})") from error
    if not packets:
        raise BadInput("the film holds no video")
    if is_playable(packets, ()):
        return None
    return film_transcoded(packets, work, is_wanted).mp4
