"""Paths under which makers' cameras have their streams: hints for a person whose address is not right.

They are hints only. Nothing tries them by itself: a camera may lock an account after a few wrong requests.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Maker:
    """`main` and `sub` follow host and port in an RTSP address; `marks` are words devices say about themselves."""

    name: str
    main: str
    sub: str
    marks: tuple[str, ...]
    note: str = ""


MAKERS: tuple[Maker, ...] = (
    Maker("Axis", "/axis-media/media.amp", "/axis-media/media.amp?resolution=640x360", ("axis",)),
    Maker("Avigilon", "/defaultPrimary?streamType=u", "/defaultSecondary?streamType=u", ("avigilon",)),
    Maker("Bosch", "/rtsp_tunnel", "/rtsp_tunnel?inst=2", ("bosch",)),
    Maker(
        "Dahua, Amcrest, Imou",
        "/cam/realmonitor?channel=1&subtype=0",
        "/cam/realmonitor?channel=1&subtype=1",
        ("dahua", "amcrest", "imou", "lorex"),
    ),
    Maker("Foscam", "/videoMain", "/videoSub", ("foscam",), "often port 88"),
    Maker(
        "Hanwha (Wisenet, Samsung)", "/profile2/media.smp", "/profile3/media.smp", ("hanwha", "wisenet", "samsung")
    ),
    Maker(
        "Hikvision, Annke, HiLook",
        "/Streaming/Channels/101",
        "/Streaming/Channels/102",
        ("hikvision", "hikvison", "annke", "hilook"),
    ),
    Maker("i-PRO, Panasonic", "/MediaInput/h264/stream_1", "/MediaInput/h264/stream_2", ("i-pro", "panasonic")),
    Maker("Mobotix", "/mobotix.h264", "/mobotix.mjpeg", ("mobotix",)),
    Maker("Reolink", "/h264Preview_01_main", "/h264Preview_01_sub", ("reolink",), "RTSP is switched on in its app"),
    Maker("Sony", "/media/video1", "/media/video2", ("sony",)),
    Maker(
        "TP-Link (Tapo, VIGI)",
        "/stream1",
        "/stream2",
        ("tp-link", "tapo", "vigi"),
        "with the camera account of its app, not with the TP-Link ID",
    ),
    Maker("Ubiquiti UniFi Protect", "/TOKEN", "/TOKEN", ("ubiquiti", "unifi"), "port 7441 (rtsps); shown in Protect"),
    Maker("Uniview", "/unicast/c1/s0/live", "/unicast/c1/s1/live", ("uniview", "unv")),
    Maker("Vivotek", "/live1s1.sdp", "/live1s2.sdp", ("vivotek",), "older ones: /live.sdp"),
)

# What an unknown camera is most likely to understand.
USUAL_PATHS = ("/Streaming/Channels/101", "/cam/realmonitor?channel=1&subtype=0", "/stream1", "/h264Preview_01_main")


def guess_maker(said: str) -> Maker | None:
    """The maker that a device names somewhere in what it says: a header, a scope, a model."""
    words = said.lower()
    return next((maker for maker in MAKERS if any(mark in words for mark in maker.marks)), None)


def likely_paths(said: str) -> tuple[str, ...]:
    """Paths to try by hand for a device that says this about itself."""
    maker = guess_maker(said)
    return (maker.main, maker.sub) if maker is not None else USUAL_PATHS
