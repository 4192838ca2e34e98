"""Discovery: a worker looks for ONVIF devices in its networks, asks one for its streams, or finds a camera again."""

import ipaddress
from typing import Annotated

from fastapi import Path

from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.domain.people import Permission
from camserver.services.web import errands
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.probes import reference_of
from camserver.services.web.routing import Routes
from camserver.services.web.sources import Login
from camserver.store import cameras
from camserver.wire import api, onboarding

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
DISCOVERY_TTL_SEC = 60
REDISCOVERY_WAIT_SEC = 6.0


@routes.post("/api/discovery", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=202)
async def discover(call: TheCall, asked: onboarding.DiscoveryAsked) -> api.Errand:
    """Who is in the site's networks; with `device`, the streams of that device. Only that one is sent a login."""
    if asked.device is None:
        request: dict[str, object] = {"wait_sec": asked.wait_sec, "hosts": [_host(host) for host in asked.hosts]}
        return await errands.ask_site(call, asked.site, "discover", request, DISCOVERY_TTL_SEC)
    device = asked.device
    if "@" in device.url:
        raise BadInput("the device's address holds a login; give user and password apart from it", reason="url_form")
    login = None
    if device.user is not None or device.password is not None:
        login = Login(device.user or "", Secret(device.password or ""))
    request = {"source": {"type": "http", "url": device.url}}
    return await errands.ask_site(call, asked.site, "discover", request, DISCOVERY_TTL_SEC, login)


@routes.post("/api/cameras/{camera_id}/rediscover", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=202)
async def rediscover_camera(call: TheCall, camera_id: CameraId) -> api.Errand:
    """Looks for the camera by its ONVIF reference. Nothing changes, and no login is sent."""
    camera = await call.store.read(cameras.get, camera_id)
    request = {"wait_sec": REDISCOVERY_WAIT_SEC, "reference": reference_of(camera)}
    return await errands.ask_site(call, camera.site, "discover", request, DISCOVERY_TTL_SEC)


def _host(text: str) -> str:
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError:
        raise BadInput(f"{text!r} is no IPv4 address; give one", reason="no_ip_address", field="hosts") from None
