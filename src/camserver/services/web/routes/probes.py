"""Probes: a worker opens a source once and says what it sends or what is wrong. Also moves a camera to a new host."""

import ipaddress
import json
from typing import Annotated

from fastapi import Path

from camserver.base.errors import BadInput, NotFound
from camserver.domain.people import Permission
from camserver.services.web import errands
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import active_vocabulary
from camserver.services.web.once import Repeat
from camserver.services.web.routes.cameras import permitted, shown
from camserver.services.web.routing import Routes
from camserver.store import camera_moves, cameras
from camserver.store.cameras import CameraSummary
from camserver.wire import api, onboarding

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
# The longest wait for a keyframe, the longest count, and some time until a worker takes it.
PROBE_TTL_SEC = 75


@routes.post("/api/probes", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=202)
async def probe_source(call: TheCall, asked: onboarding.ProbeAsked) -> api.Errand:
    """Has a worker of the site open a source that need not be a camera yet. The login is kept until it is over."""
    source = permitted(call, asked.source)
    request = {
        "source": {"type": source.type, "url": source.url},
        "transport": asked.transport,
        "tls_pin": None if asked.tls_pin is None else asked.tls_pin.replace(":", "").lower(),
        "measure_sec": asked.measure_sec,
    }
    return await errands.ask_site(call, asked.site, "probe", request, PROBE_TTL_SEC, source.login)


@routes.post("/api/cameras/{camera_id}/probe", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=202)
async def probe_camera(call: TheCall, camera_id: CameraId, asked: onboarding.CameraProbeAsked) -> api.Errand:
    """Has a worker open a stream of the camera. What it finds becomes the camera's caps."""
    camera = await call.store.read(cameras.get, camera_id)
    if asked.stream == "sub" and camera.sub is None:
        raise NotFound(f"camera {camera_id} has no sub stream", reason="no_sub", camera_id=camera_id)
    request: dict[str, object] = {
        "stream": asked.stream,
        "transport": camera.own.transport,
        "tls_pin": camera.own.tls_pin,
        "connect_timeout_sec": camera.own.connect_timeout_sec,
        "measure_sec": asked.measure_sec,
        "device": camera.own.device,
        "streams_max": camera.own.streams_max,
        "rotation": camera.own.rotation,
        "privacy_masks": None if camera.own.privacy_masks is None else json.loads(camera.own.privacy_masks),
        # What must not be seen is not shown here either; the numbers are no picture.
        "hide_picture": camera.do_not_process,
        # By it a camera that is not at its address is looked for elsewhere.
        "reference": None if asked.renew else known_reference(camera),
    }
    if asked.at is not None:
        request |= {"at": _host(asked.at), "reference": reference_of(camera)}
    return await errands.ask_camera(call, camera_id, "probe", request, PROBE_TTL_SEC)


@routes.post("/api/cameras/{camera_id}/move", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def move_camera(call: TheCall, camera_id: CameraId, asked: onboarding.CameraMove) -> api.Camera:
    """Changes the camera's host to the one where a probe (`at`) has proven it to be. Its login stays."""
    moved = await call.store.write(camera_moves.move, camera_id, asked.errand_uuid, call.address, call.now_ms)
    return shown(call, moved, await active_vocabulary(call))


def known_reference(camera: CameraSummary) -> str | None:
    """The ONVIF reference that a probe has noted."""
    caps = {} if camera.caps is None else json.loads(camera.caps)
    reference = (caps.get("onvif") or {}).get("reference") if isinstance(caps, dict) else None
    return reference if isinstance(reference, str) and reference else None


def reference_of(camera: CameraSummary) -> str:
    """The same, where nothing can be done without."""
    reference = known_reference(camera)
    if reference is None:
        raise NotFound(
            f"camera {camera.camera_id} has no known ONVIF reference to tell it from others by; probe it while it is "
            "reachable, or change its address by hand",
            reason="no_reference",
            camera_id=camera.camera_id,
        )
    return reference


def _host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise BadInput(f"{text!r} is no IP address; give one", reason="no_ip_address", field="at") from None
