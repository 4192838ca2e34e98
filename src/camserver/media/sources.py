"""Where pictures come from: one `Source` a camera, asked for a picture when a look is due.

A camera that gives no picture is an everyday thing, so `grab` answers with a `Miss` that names the fault instead
of raising. How long a grab may take, and how often it is tried, is the caller's affair. Here are the generated
`test` source and the `file` source (one JPEG, or a folder of them in turn). What sends video (RTSP, webcams, video
files) is looked at by `rtsp_source`, pictures over HTTP by `http_source`.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from camserver.base.clock import boot_time_ms
from camserver.base.errors import BadInput
from camserver.domain.leases import Fault
from camserver.media import test_pictures
from camserver.media.addresses import AddressPolicy
from camserver.media.file_packets import SUFFIXES as VIDEO_SUFFIXES
from camserver.media.file_packets import FilePackets
from camserver.media.http_source import HttpSource
from camserver.media.keyframes import Keyframes
from camserver.media.packets import Hub, Miss, PacketSource
from camserver.media.rtsp import RtspPackets
from camserver.media.rtsp_address import Login, RtspAddress
from camserver.media.rtsp_source import RtspSource
from camserver.media.shots import JpegShot, Shot
from camserver.media.tls import clean_pin
from camserver.media.waiting_threads import FILES
from camserver.media.webcam import WebcamPackets, device_of

PICTURE_MAX_BYTES = 15_000_000
# A folder is listed anew on every look, so that pictures may be added; past this only the first ones count.
FOLDER_FILES_MAX = 10_000
PICTURE_SUFFIXES = (".jpg", ".jpeg")


class Source(Protocol):
    @property
    def learned_gop_ms(self) -> int | None:
        """How far keyframes are apart, where there are such and it is known: how long to wait for a picture."""

    async def grab(self) -> Shot | Miss:
        """One picture of now. May be cancelled at any moment."""

    async def close(self) -> None:
        """Lets go of the camera; a later `grab` opens it again."""


@dataclass(frozen=True, slots=True)
class SourceWanted:
    """A camera as it is to be looked at."""

    kind: str
    url: str
    login: Login | None = None
    interval_ms: int = 60_000
    connect_timeout_sec: float = 3.0
    transport: str = "tcp"  # of RTSP: tcp or udp
    tls_pin: str | None = None  # SHA-256 of the camera's certificate in hex; None: an authority must vouch for it
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    with_sound: bool = False


def open_source(wanted: SourceWanted, boot_ms: Callable[[], int] = boot_time_ms) -> Source:
    """The source of a camera. BadInput when there is no such source or its address makes no sense."""
    match wanted.kind:
        case "rtsp":
            address = RtspAddress(wanted.url, wanted.login, wanted.addresses)
            pin = None if wanted.tls_pin is None else clean_pin(wanted.tls_pin)
            packets = RtspPackets(
                address, wanted.connect_timeout_sec, boot_ms, wanted.transport, pin, wanted.with_sound
            )
            return _video(packets, wanted, boot_ms)
        case "http":
            pin = None if wanted.tls_pin is None else clean_pin(wanted.tls_pin)
            return HttpSource(wanted.url, wanted.login, wanted.connect_timeout_sec, wanted.addresses, pin)
        case "webcam":
            return _video(WebcamPackets(device_of(wanted.url), boot_ms), wanted, boot_ms)
        case "file":
            path = file_of(wanted.url)
            if path.suffix.lower() in VIDEO_SUFFIXES:
                return _video(FilePackets(path, boot_ms, with_sound=wanted.with_sound), wanted, boot_ms)
            return FileSource(path)
        case "test":
            return TestSource(wanted.url)
    raise BadInput(f"there are no sources of type {wanted.kind!r}; use rtsp, http, webcam, file or test")


def _video(packets: PacketSource, wanted: SourceWanted, boot_ms: Callable[[], int]) -> RtspSource:
    return RtspSource(Hub(packets), Keyframes(wanted.interval_ms, boot_ms), wanted.interval_ms, boot_ms)


def file_of(url: str) -> Path:
    """The file or folder of file:///…; BadInput when it is of another machine."""
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        raise BadInput(f"the file source {url!r} is not of the form file:///folder/picture.jpg")
    return Path(unquote(parts.path))


class TestSource:
    """Generated pictures: the n-th one is always the same.

    test://moving?period=10    a shape that crosses the picture in `period` looks, and the number of the look
    test://still               the same picture every time
    test://broken?fault=…      no picture, with a fault of domain.leases.Fault
    test://hang                never answers
    """

    __test__ = False  # not a test, whatever pytest thinks of its name
    learned_gop_ms = None

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._kind = parts.netloc
        given = dict(parse_qsl(parts.query))
        if parts.scheme != "test" or self._kind not in ("moving", "still", "broken", "hang"):
            raise BadInput(f"the test source {url!r} is not test://moving, still, broken or hang")
        self._fault = _fault(given.pop("fault", Fault.NO_VIDEO))
        self._period = _number(given, "period", 10, 1, 100_000)
        self._size = (_number(given, "width", 640, 64, 3840), _number(given, "height", 360, 64, 2160))
        if given:
            raise BadInput(f"the test source {url!r} has unknown options: {', '.join(sorted(given))}")
        self._grabbed = 0

    async def grab(self) -> JpegShot | Miss:
        if self._kind == "broken":
            return Miss(self._fault, f"the test source is broken on purpose ({self._fault})")
        if self._kind == "hang":
            await asyncio.Event().wait()
        number = self._grabbed if self._kind == "moving" else None
        self._grabbed += 1
        return JpegShot(await asyncio.to_thread(test_pictures.draw, self._size, number, self._period))

    async def close(self) -> None:
        """Nothing is held open."""


class FileSource:
    """A JPEG file again and again, or the JPEG files of a folder in the order of their names, for ever."""

    learned_gop_ms = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = 0
        # A read that hangs (a network drive) can't be cancelled; the next grab waits for it, so that at most one
        # thread of a camera hangs.
        self._reading: asyncio.Future[JpegShot | Miss] | None = None

    async def grab(self) -> JpegShot | Miss:
        if self._reading is not None:
            await asyncio.wait({self._reading})
        self._reading = asyncio.ensure_future(FILES.run(self._read, self._turn))
        answer = await asyncio.shield(self._reading)
        self._turn += 1
        return answer

    async def close(self) -> None:
        """Nothing is held open."""

    def _read(self, turn: int) -> JpegShot | Miss:
        try:
            path = self._pick(turn)
            if path is None:
                return Miss(Fault.NO_VIDEO, f"{self._path} holds no {' or '.join(PICTURE_SUFFIXES)} file")
            with path.open("rb") as file:
                data = file.read(PICTURE_MAX_BYTES + 1)
        except FileNotFoundError:
            return Miss(Fault.NOT_FOUND, f"{self._path} does not exist on the worker's machine")
        except OSError as error:
            return Miss(Fault.REFUSED, f"{self._path} can't be read: {error.strerror}")
        if len(data) > PICTURE_MAX_BYTES:
            return Miss(Fault.NO_VIDEO, f"{path} is larger than {PICTURE_MAX_BYTES} bytes")
        return JpegShot(data)

    def _pick(self, turn: int) -> Path | None:
        if not self._path.is_dir():
            return self._path
        names = []
        with os.scandir(self._path) as entries:
            for entry in entries:
                if entry.name.lower().endswith(PICTURE_SUFFIXES):
                    names.append(entry.name)
                if len(names) >= FOLDER_FILES_MAX:
                    break
        names.sort()
        return self._path / names[turn % len(names)] if names else None


def _fault(text: str) -> Fault:
    try:
        return Fault(text)
    except ValueError:
        raise BadInput(f"fault {text!r} of a test source is none of {', '.join(Fault)}") from None


def _number(given: dict[str, str], name: str, default: int, least: int, greatest: int) -> int:
    """Takes a number out of the options of a test source."""
    text = given.pop(name, str(default))
    if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= greatest:
        raise BadInput(f"{name}={text!r} of a test source is no number from {least} to {greatest}")
    return int(text)
