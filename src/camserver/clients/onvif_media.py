"""The streams of an ONVIF device: codec, size and address of each profile.

There are two media services. The newer one (Profile T) knows H.265 and is asked where there is one; the older one
(Profile S) is asked otherwise, and when the newer one has nothing to say.
"""

import contextlib
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from camserver.base.errors import Reject, Unavailable
from camserver.base.log import get_logger
from camserver.clients import onvif_xml as xml
from camserver.clients.onvif import TEXT_MAX_CHARS, OnvifDevice, shown

log = get_logger(__name__)

PROFILES_MAX = 64
_STREAM_SETUP = (
    "<trt:StreamSetup><tt:Stream>RTP-Unicast</tt:Stream>"
    "<tt:Transport><tt:Protocol>RTSP</tt:Protocol></tt:Transport></trt:StreamSetup>"
)


@dataclass(frozen=True, slots=True)
class Profile:
    """One stream that a device offers. Addresses hold no login."""

    token: str
    name: str
    codec: str  # as the device names it: H264, H265, JPEG
    width: int
    height: int
    fps: float | None
    gop: int | None  # pictures from keyframe to keyframe
    stream_url: str = field(default="", repr=False)  # some have a token in the path
    snapshot_url: str = field(default="", repr=False)


async def profiles(device: OnvifDevice) -> tuple[Profile, ...]:
    """The largest picture first."""
    found: list[Profile] = []
    newer_url = await _newer_service(device)
    if newer_url:
        try:
            found = await _newer(device, newer_url)
        except (Reject, Unavailable) as error:
            log.info("the newer media service of a device does not answer", cause=error.message)
    if not found:
        found = await _older(device, await _older_service(device))
    return tuple(sorted(found, key=lambda one: (-one.width * one.height, one.token)))


async def _newer_service(device: OnvifDevice) -> str:
    """The address of the newer media service; empty when there is none."""
    with contextlib.suppress(Unavailable):  # older devices do not know the question
        answer = await device.ask("tds:GetServices", "<tds:IncludeCapability>false</tds:IncludeCapability>")
        for service in xml.find_all(answer, "Service"):
            if xml.text(service, "Namespace") == xml.MEDIA2:
                return device.here(xml.text(service, "XAddr"), ("http", "https"))
    return ""


async def _older_service(device: OnvifDevice) -> str:
    answer = await device.ask("tds:GetCapabilities", "<tds:Category>Media</tds:Category>")
    media = next(xml.find_all(answer, "Media"), None)
    return device.here(xml.text(media, "XAddr"), ("http", "https"))


async def _newer(device: OnvifDevice, url: str) -> list[Profile]:
    answer = await device.ask("tr2:GetProfiles", "<tr2:Type>VideoEncoder</tr2:Type>", url)
    made = []
    for one in _profiles(answer):
        profile = _profile(one, xml.find(one, "Configurations", "VideoEncoder"))
        if profile is None:
            continue
        token = f"<tr2:ProfileToken>{xml.escaped(profile.token)}</tr2:ProfileToken>"
        asked = f"<tr2:Protocol>RtspUnicast</tr2:Protocol>{token}"
        stream = _uri(await device.ask("tr2:GetStreamUri", asked, url))
        made.append(await _located(device, profile, stream, "tr2:GetSnapshotUri", token, url))
    return made


async def _older(device: OnvifDevice, url: str) -> list[Profile]:
    answer = await device.ask("trt:GetProfiles", "", url)
    made = []
    for one in _profiles(answer):
        profile = _profile(one, one.find("VideoEncoderConfiguration"))
        if profile is None:
            continue
        token = f"<trt:ProfileToken>{xml.escaped(profile.token)}</trt:ProfileToken>"
        stream = _uri(await device.ask("trt:GetStreamUri", _STREAM_SETUP + token, url))
        made.append(await _located(device, profile, stream, "trt:GetSnapshotUri", token, url))
    return made


async def _located(
    device: OnvifDevice, profile: Profile, stream: str, question: str, token: str, url: str
) -> Profile:
    snapshot = ""
    with contextlib.suppress(Reject, Unavailable):  # not every device has one
        snapshot = _uri(await device.ask(question, token, url))
    return replace(
        profile,
        stream_url=device.here(stream, ("rtsp", "rtsps")),
        snapshot_url=device.here(snapshot, ("http", "https")),
    )


def _profiles(answer: Element) -> list[Element]:
    return list(xml.find_all(answer, "Profiles"))[:PROFILES_MAX]


def _profile(one: Element, encoder: Element | None) -> Profile | None:
    """None for one without video."""
    token, codec = xml.attribute(one, "token")[:TEXT_MAX_CHARS], shown(xml.text(encoder, "Encoding"))
    if not token or not codec:
        return None
    # The newer service has it as an attribute.
    gop = _number(xml.text(encoder, codec.upper(), "GovLength") or xml.attribute(encoder, "GovLength"))
    return Profile(
        token=token,
        name=shown(xml.text(one, "Name")),
        codec=codec,
        width=int(_number(xml.text(encoder, "Resolution", "Width")) or 0),
        height=int(_number(xml.text(encoder, "Resolution", "Height")) or 0),
        fps=_number(xml.text(encoder, "RateControl", "FrameRateLimit")),
        gop=None if gop is None else int(gop),
    )


def _uri(answer: Element) -> str:
    """The older service has it inside of another element."""
    return xml.text(next(xml.find_all(answer, "Uri"), None))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1_000_000 else None
