"""Cameras: list, add, look at, remove; and the newest picture of each."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query, Response

from camserver.base.credentials import Sealed, seal
from camserver.base.errors import Forbidden, NotFound
from camserver.domain.people import Permission
from camserver.objects.keys import Kind
from camserver.services.web import pictures
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.routing import Routes
from camserver.services.web.sources import LOCAL_TYPES, Source, parse_source, shown_url
from camserver.store import cameras
from camserver.store.cameras import CameraSummary, LatestFrame
from camserver.wire import api

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
PAGE_USUAL = 100


@routes.get("/api/cameras", Permission.READ)
async def list_cameras(
    call: TheCall,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=cameras.PAGE_MAX)] = PAGE_USUAL,
) -> api.CameraPage:
    """Cameras in the order of their ids, each with its newest look."""
    found = await call.store.read(cameras.page, after, limit)
    return api.CameraPage(
        cameras=[_shown(call, camera) for camera in found],
        next_after=found[-1].camera_id if len(found) == limit else None,
    )


@routes.post("/api/cameras", Permission.MANAGE_CAMERAS, status_code=201)
async def add_camera(call: TheCall, asked: api.CameraAsked) -> api.Camera:
    """Adds a camera. Credentials are stored encrypted and never given out again."""
    source = parse_source(asked.source)
    if source.type in LOCAL_TYPES and not call.principal.may(Permission.MANAGE_SYSTEM):
        raise Forbidden(
            f"a camera of type {source.type} opens what is on the worker's own machine; only a system "
            "administrator may add one",
            reason="source_needs_admin",
        )
    new = cameras.NewCamera(
        camera_id=asked.camera_id,
        name=asked.name.strip() or asked.camera_id,
        site=asked.site,
        source_type=source.type,
        url=source.url,
        credentials=_sealed(call, asked.camera_id, source),
        polling_interval_sec=asked.polling_interval_sec,
    )
    return _shown(call, await call.store.write(cameras.add, new, call.address, call.now_ms))


@routes.get("/api/cameras/{camera_id}", Permission.READ)
async def get_camera(call: TheCall, camera_id: CameraId) -> api.Camera:
    """One camera."""
    return _shown(call, await call.store.read(cameras.get, camera_id))


@routes.delete("/api/cameras/{camera_id}", Permission.MANAGE_CAMERAS, status_code=204)
async def remove_camera(call: TheCall, camera_id: CameraId) -> None:
    """Removes a camera. Its events and pictures stay until their retention is over."""
    await call.store.write(cameras.remove, camera_id, call.address, call.now_ms)


@routes.get("/api/cameras/{camera_id}/latest", Permission.READ)
async def latest(call: TheCall, camera_id: CameraId) -> api.Look:
    """The newest look of a camera, whether it succeeded or not."""
    camera = await call.store.read(cameras.get, camera_id)
    if camera.latest is None:
        raise NotFound(
            f"camera {camera_id} was not looked at yet; see its state", reason="no_picture", camera_id=camera_id
        )
    return _look(camera.latest)


@routes.get(
    "/api/cameras/{camera_id}/latest.jpg",
    Permission.READ,
    response_class=Response,
    responses=pictures.RESPONSES,
)
async def latest_picture(call: TheCall, camera_id: CameraId) -> Response:
    """The newest picture of a camera."""
    place = await call.store.read(cameras.latest_picture, camera_id)
    return await pictures.picture_response(call, place, Kind.INFER, {"Cache-Control": "private, no-cache"})


def _sealed(call: Call, camera_id: str, source: Source) -> Sealed | None:
    if source.login is None:
        return None
    key = call.web.secrets.credential_key_bytes()
    return seal(key, call.principal.tenant_id, camera_id, source.login.plaintext())


def _shown(call: Call, camera: CameraSummary) -> api.Camera:
    source = None
    if call.principal.may(Permission.MANAGE_CAMERAS):
        source = api.Source(
            type=camera.source_type,
            url=shown_url(camera.source_type, camera.url),
            has_credentials=camera.has_credentials,
        )
    default_sec = call.web.settings.looks.polling_interval_sec
    return api.Camera(
        camera_id=camera.camera_id,
        name=camera.name,
        site=camera.site,
        enabled=camera.enabled,
        state=camera.state,
        state_reason=camera.state_reason,
        polling_interval_sec=default_sec if camera.polling_interval_sec is None else camera.polling_interval_sec,
        source=source,
        created_at=camera.created_at,
        latest=None if camera.latest is None else _look(camera.latest),
        latest_picture=(
            None if camera.latest_picture is None else api.PictureRef.model_validate(asdict(camera.latest_picture))
        ),
        open_event=None if camera.open_event is None else api.OpenEvent.model_validate(asdict(camera.open_event)),
    )


def _look(frame: LatestFrame) -> api.Look:
    return api.Look.model_validate(asdict(frame))
