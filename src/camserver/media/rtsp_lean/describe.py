"""What a camera says about its video and sound (SDP, RFC 4566): the codec, its parameters and where to ask for it."""

import base64
import binascii
import re
from dataclasses import dataclass

from camserver.media.nal_units import joined
from camserver.media.rtsp_lean.messages import BrokenTalk, Unfit

CODECS = {"H264": "h264", "H265": "hevc"}
# Those that browsers play, and those of telephony, which most cameras with a microphone send.
SOUND_CODECS = {"MPEG4-GENERIC": "aac", "OPUS": "opus", "PCMU": "pcm_mulaw", "PCMA": "pcm_alaw"}
# Without a word about it these numbers mean them (RFC 3551).
_FIXED_SOUND = {0: ("PCMU", 8000, 1), 8: ("PCMA", 8000, 1)}
_RTPMAP = re.compile(r"(\d{1,3})\s+([\w.-]+)/(\d+)(?:/(\d))?")


@dataclass(frozen=True, slots=True)
class Track:
    codec: str  # h264 or hevc
    payload_type: int
    clock_hz: int
    sets: bytes  # parameter sets in Annex B, if they are given
    control: str  # the whole address for SETUP
    aggregate: str  # the whole address for PLAY


@dataclass(frozen=True, slots=True)
class SoundTrack:
    codec: str  # aac, opus, pcm_mulaw or pcm_alaw
    payload_type: int
    clock_hz: int
    channels: int
    config: bytes  # of AAC: what a decoder must know
    control: str  # the whole address for SETUP


def parse_sound(body: bytes, base: str) -> SoundTrack | None:
    """The first sound track that can be read here; None when there is none."""
    _, media = _sections(body.decode("utf-8", "replace"))
    for lines in media:
        parts = lines[0].split()
        if lines[0].startswith("m=audio") and len(parts) >= 4 and parts[3].isdecimal():
            track = _sound(lines, int(parts[3]), base)
            if track is not None:
                return track
    return None


def _sound(lines: list[str], payload_type: int, base: str) -> SoundTrack | None:
    name, clock_hz, channels = _FIXED_SOUND.get(payload_type, ("", 0, 1))
    for line in lines:
        found = _RTPMAP.match(line.removeprefix("a=rtpmap:")) if line.startswith("a=rtpmap:") else None
        if found and int(found[1]) == payload_type:
            name, clock_hz, channels = found[2].upper(), int(found[3][:9]), int(found[4] or 1)
    codec = SOUND_CODECS.get(name)
    options = _options(lines, payload_type)
    config = b""
    if codec == "aac":
        # In the one way that cameras pack it; others are rare.
        if options.get("mode", "").lower() != "aac-hbr" or options.get("sizelength", "13") != "13":
            return None
        try:
            config = bytes.fromhex(options.get("config", ""))
        except ValueError:
            return None
        if not 2 <= len(config) <= 64:
            return None
    if codec is None or not 8000 <= clock_hz <= 96_000 or not 1 <= channels <= 2:
        return None
    return SoundTrack(codec, payload_type, clock_hz, channels, config, _address(_attribute(lines, "control"), base))


def parse_description(body: bytes, base: str) -> Track | None:
    """The video track; None when there is none. Unfit when it is another codec or sent in another way."""
    session, media = _sections(body.decode("utf-8", "replace"))
    video = next((lines for lines in media if lines[0].startswith("m=video")), None)
    if video is None:
        return None
    parts = video[0].split()
    if len(parts) < 4 or not parts[3].isdecimal():
        raise BrokenTalk("the camera's description of its video is malformed")
    payload_type = int(parts[3])
    name, clock_hz = _coding(video, payload_type)
    if name not in CODECS:
        raise Unfit(f"its video is {name}")
    options = _options(video, payload_type)
    if options.get("packetization-mode", "0") not in ("0", "1") or options.get("sprop-max-don-diff", "0") != "0":
        raise Unfit("its packets are interleaved")
    return Track(
        codec=CODECS[name],
        payload_type=payload_type,
        clock_hz=clock_hz,
        sets=_parameter_sets(options),
        control=_address(_attribute(video, "control"), base),
        aggregate=_address(_attribute(session, "control"), base),
    )


def _sections(text: str) -> tuple[list[str], list[list[str]]]:
    """The lines about all of it, and those of each medium."""
    session: list[str] = []
    media: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("m="):
            media.append([line])
        elif media:
            media[-1].append(line)
        else:
            session.append(line)
    return session, media


def _attribute(lines: list[str], name: str) -> str:
    prefix = f"a={name}:"
    return next((line[len(prefix) :].strip() for line in lines if line.startswith(prefix)), "")


def _coding(lines: list[str], payload_type: int) -> tuple[str, int]:
    for line in lines:
        found = _RTPMAP.match(line.removeprefix("a=rtpmap:")) if line.startswith("a=rtpmap:") else None
        if found and int(found[1]) == payload_type:
            return found[2].upper(), min(max(int(found[3][:9]), 1), 1_000_000)
    return f"of payload type {payload_type}", 90_000


def _options(lines: list[str], payload_type: int) -> dict[str, str]:
    prefix = f"a=fmtp:{payload_type} "
    text = next((line[len(prefix) :] for line in lines if line.startswith(prefix)), "")
    pairs = (one.strip().partition("=") for one in text.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs if name}


def _parameter_sets(options: dict[str, str]) -> bytes:
    names = ("sprop-parameter-sets", "sprop-vps", "sprop-sps", "sprop-pps")
    texts = [one for name in names for one in options.get(name, "").split(",") if one]
    try:
        return joined(base64.b64decode(text + "=" * (-len(text) % 4)) for text in texts)
    except binascii.Error:
        return b""  # the video itself holds them too, or else it shows no picture


def _address(control: str, base: str) -> str:
    if control in ("", "*"):
        return base
    if control.lower().startswith(("rtsp://", "rtsps://")):
        return control
    # Not joined by the rules of HTTP: cameras keep the query in front, as in ?channel=1/trackID=0.
    return f"{base.rstrip('/')}/{control.lstrip('/')}"
