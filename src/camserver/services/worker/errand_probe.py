"""The errand `probe`: opens a source once, shows a picture and says what it sends or what is wrong.

The source need not be a camera yet. A camera may also be probed at another host (`at`), where it was seen to have
moved to: then its login is only used after the device there has given the camera's own ONVIF reference, and has
taken the login as a digest.
"""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import cast
from urllib.parse import urlsplit

import aiohttp
from pydantic import JsonValue, TypeAdapter, ValidationError

from camserver.base.clock import Clock
from camserver.base.errors import CamError, Forbidden
from camserver.base.hosts import at_host
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.onvif import Login as OnvifLogin
from camserver.clients.onvif import OnvifDevice
from camserver.clients.onvif_discovery import Found, discover
from camserver.domain.diagnosis import Cause, explain
from camserver.domain.polygons import Polygon
from camserver.media.addresses import AddressPolicy
from camserver.media.digest import Login
from camserver.media.packets import Miss
from camserver.media.probe import MEASURE_SEC, Probed, ProbeWanted, probe
from camserver.services.worker.doors import Door, Doors, place_of
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.wire.errands import JPEG
from camserver.wire.worker import Errand, Source

log = get_logger(__name__)

MEASURE_MAX_SEC = 20.0
CONNECT_SEC = 5.0
CONNECT_MAX_SEC = 30.0
# How long a device has to say who it is.
REFERENCE_SEC = 2.0
# What is left for sending the answer.
ANSWER_MS = 5_000
# A camera that has another address now looks like this at the old one.
_MAY_HAVE_MOVED = frozenset(
    {Cause.NO_ROUTE, Cause.NO_ANSWER, Cause.PORT_CLOSED, Cause.UNKNOWN_HOST, Cause.NOT_RTSP, Cause.WRONG_PASSWORD}
)
_POLYGONS: TypeAdapter[tuple[Polygon, ...]] = TypeAdapter(tuple[Polygon, ...])


def probe_handler(addresses: AddressPolicy, clock: Clock, doors: Doors, discovery_port: int = 3702) -> Handler:
    async def handle(errand: Errand) -> ErrandDone:
        if errand.source is None:
            return ErrandDone(False, "the probe has no source; the server is older or newer than this worker")
        asked = _Asked(errand.params)
        source, login = errand.source, login_of(errand.source)
        onvif: Found | None = None
        if asked.at:
            moved = await _moved(source, login, asked, addresses, clock, discovery_port)
            if isinstance(moved, Cause):
                return refusal(moved, {"host": asked.at})
            source, onvif = moved
        wanted = _wanted(source, login, asked, addresses, errand.left_ms)
        probing = _through_door(
            doors.door(place_of(source.type, source.url, asked.device), asked.streams_max), wanted
        )
        if onvif is None and errand.camera_id is not None and source.type in ("rtsp", "http"):
            probed, onvif = await asyncio.gather(probing, _who_is_at(source.url, addresses, discovery_port))
        else:
            probed = await probing
        done = _done(probed, asked, onvif, wanted.transport)
        if probed.cause in _MAY_HAVE_MOVED and asked.reference and not asked.at:
            return await _with_sighting(done, asked.reference, discovery_port)
        return done

    return handle


async def _with_sighting(done: ErrandDone, reference: str, port: int) -> ErrandDone:
    """Where a camera that is not at its address any more answers from, if it does. No login is sent there."""
    try:
        found = await discover(REFERENCE_SEC, port=port, wanted=lambda one: one.reference == reference)
    except OSError as error:
        log.info("no network to look for a camera in", cause=type(error).__name__)
        return done
    seen = next((one.address for one in found if one.reference == reference), None)
    return done if seen is None else replace(done, result={**done.result, "seen_at": seen})


async def _through_door(door: Door, wanted: ProbeWanted) -> Probed:
    """A device that bears few streams closes one that is only kept open: somebody waits for this one."""
    try:
        await door.enter(is_urgent=True)
        return await probe(wanted)
    finally:
        door.leave()
        door.remove()


def login_of(source: Source) -> Login | None:
    if source.user is None or source.password is None:
        return None
    return Login(source.user, source.password)


def refusal(cause: Cause, facts: Mapping[str, str]) -> ErrandDone:
    """An errand that ended before it began, in words."""
    said = explain(cause, facts)
    return ErrandDone(False, said.en, {"cause": cause.value, "said_ja": said.ja, "said_en": said.en})


class _Asked:
    """The parameters of a probe, each with its bound."""

    def __init__(self, params: Mapping[str, JsonValue]) -> None:
        self.stream = "sub" if params.get("stream") == "sub" else "main"
        self.transport = "udp" if params.get("transport") == "udp" else "tcp"
        self.tls_pin = _text(params.get("tls_pin")) or None
        self.measure_sec = _number(params.get("measure_sec"), MEASURE_SEC, MEASURE_MAX_SEC)
        self.connect_sec = _number(params.get("connect_timeout_sec"), CONNECT_SEC, CONNECT_MAX_SEC) or CONNECT_SEC
        self.at = _text(params.get("at"))
        self.reference = _text(params.get("reference"))
        self.device = _text(params.get("device"))
        streams_max = params.get("streams_max")
        self.streams_max = streams_max if isinstance(streams_max, int) and streams_max > 0 else None
        rotation = params.get("rotation")
        self.rotation = rotation if isinstance(rotation, int) and rotation in (90, 180, 270) else 0
        self.masks = _polygons(params.get("privacy_masks"))
        # Of a camera that must not be seen, or only in part that is not understood here: nobody gets a picture.
        self.hides_picture = bool(params.get("hide_picture")) or self.masks is None


def _polygons(value: JsonValue) -> tuple[Polygon, ...] | None:
    """Polygons of a camera; None when they are not understood, so that nothing is shown by mistake."""
    try:
        return _POLYGONS.validate_python(value or ())
    except ValidationError:
        return None


def _text(value: JsonValue) -> str:
    return value[:255] if isinstance(value, str) else ""


def _number(value: JsonValue, usual: float, greatest: float) -> float:
    return min(max(float(value), 0.0), greatest) if isinstance(value, int | float) else usual


def _wanted(
    source: Source, login: Login | None, asked: _Asked, addresses: AddressPolicy, left_ms: int
) -> ProbeWanted:
    usual = ProbeWanted(source.type, source.url)
    left_sec = max(left_ms - ANSWER_MS, 1_000) / 1000
    return ProbeWanted(
        source.type,
        source.url,
        login,
        asked.transport,
        asked.tls_pin,
        asked.connect_sec,
        min(asked.measure_sec, left_sec / 2),
        min(usual.keyframe_sec, left_sec / 2),
        addresses,
        asked.rotation,
        asked.masks or (),
    )


async def _moved(
    source: Source,
    login: Login | None,
    asked: _Asked,
    addresses: AddressPolicy,
    clock: Clock,
    port: int,
) -> tuple[Source, Found] | Cause:
    """The source at the host where the camera now is, when that is surely the camera; else why not."""
    if addresses.why_not(asked.at) is not None:
        return Cause.NOT_ALLOWED
    found = await _reference_at(asked.at, port)
    if found is None or not asked.reference or found.reference != asked.reference:
        return Cause.OTHER_DEVICE
    if login is not None and not await _proves_login(found, login, clock):
        return Cause.LOGIN_NOT_PROVEN
    return source.model_copy(update={"url": at_host(source.url, asked.at)}), found


async def _proves_login(found: Found, login: Login, clock: Clock) -> bool:
    """Whether the device knows the login: it takes it, and it does not take another password.

    A device that takes everything may be anybody. Which of the two comes first is left to chance, so that somebody
    who does not know the password can't tell them apart; one wrong try locks no account.
    """
    decoy = Login(login.user, Secret(secrets.token_urlsafe(12)))
    tried = [login, decoy] if secrets.randbelow(2) else [decoy, login]
    try:
        taken = [await _takes(found, one, clock) for one in tried]
    except CamError as error:
        log.warning("a device with a camera's reference does not answer", cause=error.message)
        return False
    return taken == [one is login for one in tried]


async def _takes(found: Found, login: Login, clock: Clock) -> bool:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        device = OnvifDevice(session, found.service_url, OnvifLogin(login.user, login.password), clock)
        await device.learn_time()
        try:
            await device.about()
        except Forbidden:
            return False
    return True


async def _who_is_at(url: str, addresses: AddressPolicy, port: int) -> Found | None:
    parts = urlsplit(url)
    if not parts.hostname:
        return None
    place = await addresses.find(parts.hostname, 80)
    return None if isinstance(place, Miss) or ":" in place.address else await _reference_at(place.address, port)


async def _reference_at(address: str, port: int) -> Found | None:
    """What the device at an address calls itself; None when it does not say."""
    try:
        found = await discover(REFERENCE_SEC, [address], port=port, wanted=lambda one: one.address == address)
    except OSError as error:
        log.info("no network to ask for ONVIF devices in", cause=type(error).__name__)
        return None
    return next((one for one in found if one.address == address), None)


def _done(probed: Probed, asked: _Asked, onvif: Found | None, transport: str) -> ErrandDone:
    result: dict[str, JsonValue] = {
        "cause": probed.cause.value,
        "said_ja": probed.said.ja,
        "said_en": probed.said.en,
        "steps": [cast(JsonValue, asdict(step)) for step in probed.steps],
        "server": probed.server,
        "stream_kind": asked.stream,
    }
    if asked.at:
        result["at"] = asked.at
    if probed.caps is None:
        return ErrandDone(False, probed.said.en, result)
    stream = cast(dict[str, JsonValue], asdict(probed.caps))
    result["stream"] = stream | {"transport": transport}
    caps: dict[str, JsonValue] = {asked.stream: stream}
    if asked.stream == "main":
        caps |= {
            "codec": probed.caps.codec,
            "res": f"{probed.caps.width}x{probed.caps.height}",
            "fps": probed.caps.fps,
            "gop_sec": probed.caps.gop_sec,
        }
    if onvif is not None and asked.reference not in ("", onvif.reference):
        # The address may have been given to another device; what is known of the camera is not overwritten by that.
        result["other_reference"] = onvif.reference
    elif onvif is not None:
        caps["onvif"] = {"reference": onvif.reference, "hardware": onvif.hardware, "mac": onvif.mac}
    result["caps"] = caps
    if asked.hides_picture or not probed.jpeg:
        return ErrandDone(True, "", result)
    return ErrandDone(True, "", result, JPEG, probed.jpeg)
