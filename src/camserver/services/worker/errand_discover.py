"""The errand `discover`: ONVIF devices in the worker's networks, or with a source, the streams of one device.

Looking around sends no login to anybody. The streams of a device are asked for with the login that was given for
exactly that device.
"""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import cast
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from pydantic import JsonValue

from camserver.base.clock import Clock
from camserver.base.errors import Forbidden, NotFound, Unavailable
from camserver.base.log import get_logger
from camserver.clients import onvif_media
from camserver.clients.onvif import Login, OnvifDevice, service_url
from camserver.clients.onvif_discovery import Found, discover
from camserver.clients.onvif_media import Profile
from camserver.domain.diagnosis import Cause
from camserver.domain.leases import Fault
from camserver.media.addresses import AddressPolicy
from camserver.media.packets import Miss
from camserver.services.worker.errand_probe import login_of, refusal
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.wire.worker import Errand, Source

log = get_logger(__name__)

WAIT_SEC = 4.0
WAIT_MAX_SEC = 20.0
HOSTS_MAX = 256
# Below what the header of an answer may have.
DEVICES_MAX_BYTES = 200_000
# The gate and the small picture want little more than this.
SUB_WIDTH = 640


def discover_handler(addresses: AddressPolicy, clock: Clock, discovery_port: int = 3702) -> Handler:
    async def handle(errand: Errand) -> ErrandDone:
        if errand.source is not None:
            return await _streams(errand.source, addresses, clock)
        found = await _look_around(errand, addresses, discovery_port)
        devices = _fitting([asdict(one) for one in found])
        return ErrandDone(True, "", {"devices": devices, "left_off": len(found) - len(devices)})

    return handle


def _fitting(devices: Sequence[dict[str, JsonValue]]) -> list[JsonValue]:
    """As many as an answer holds."""
    fitting: list[JsonValue] = []
    left_bytes = DEVICES_MAX_BYTES
    for one in devices:
        left_bytes -= len(json.dumps(one).encode())
        if left_bytes < 0:
            log.warning("more devices answer than fit into the answer", devices=len(devices), listed=len(fitting))
            break
        fitting.append(one)
    return fitting


async def _look_around(errand: Errand, addresses: AddressPolicy, port: int) -> Sequence[Found]:
    params = errand.params
    given = params.get("wait_sec")
    wait_sec = min(max(float(given), 0.2), WAIT_MAX_SEC) if isinstance(given, int | float) else WAIT_SEC
    named = params.get("hosts")
    hosts = [host for host in named if isinstance(host, str)] if isinstance(named, list) else []
    reference = params.get("reference")
    found = await discover(
        wait_sec,
        [host for host in hosts[:HOSTS_MAX] if _is_askable(host, addresses)],
        port=port,
        wanted=(lambda one: one.reference == reference) if isinstance(reference, str) else None,
    )
    if isinstance(reference, str):
        return [one for one in found if one.reference == reference]
    return found


def _is_askable(host: str, addresses: AddressPolicy) -> bool:
    try:
        return ipaddress.ip_address(host).version == 4 and addresses.why_not(host) is None
    except ValueError:
        return False


async def _streams(source: Source, addresses: AddressPolicy, clock: Clock) -> ErrandDone:
    """Who a device is and what it offers."""
    given = urlsplit(service_url(source.url))
    port = given.port or (443 if given.scheme == "https" else 80)
    place = await addresses.find(given.hostname or "", port)
    facts = {"host": given.hostname or ""}
    if isinstance(place, Miss):
        return refusal(Cause.NOT_ALLOWED if place.fault is Fault.REFUSED else Cause.UNKNOWN_HOST, facts)
    # The address that was checked is the one that is asked, so a name can't lead elsewhere a moment later.
    url = urlunsplit(given._replace(netloc=place.netloc))
    login = login_of(source)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        device = OnvifDevice(session, url, None if login is None else Login(login.user, login.password), clock)
        try:
            await device.learn_time()
            about = await device.about()
            profiles = await onvif_media.profiles(device)
        except Forbidden:
            return refusal(Cause.NEEDS_LOGIN if login is None else Cause.WRONG_PASSWORD, facts)
        except (NotFound, Unavailable) as error:
            log.info("no ONVIF service answers", cause=error.message)
            return refusal(Cause.NO_ONVIF, facts)
    main, sub = choose(profiles)
    result: dict[str, JsonValue] = {
        "device": cast(JsonValue, asdict(about)),
        "profiles": [cast(JsonValue, asdict(one)) for one in profiles],
        "main": None if main is None else main.token,
        "sub": None if sub is None else sub.token,
    }
    return ErrandDone(True, "", result)


def choose(profiles: Sequence[Profile]) -> tuple[Profile | None, Profile | None]:
    """The stream to keep pictures of and the one to watch: the largest, and of the smaller ones the most fitting."""
    usable = [one for one in profiles if one.stream_url]
    if not usable:
        return None, None
    main = max(usable, key=lambda one: one.width * one.height)
    smaller = [one for one in usable if one.width < main.width and one.stream_url != main.stream_url]
    return main, min(smaller, key=lambda one: abs(one.width - SUB_WIDTH), default=None)
