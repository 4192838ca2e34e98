"""Cameras: list, add, change, look at, remove; and the newest picture of each."""

import json
from typing import Annotated, Literal

from fastapi import Path, Query, Response

from camserver.base.credentials import Sealed, seal
from camserver.base.errors import BadInput, Forbidden, NotFound
from camserver.base.records import fields_of
from camserver.base.secrets import Secret
from camserver.domain.people import Permission
from camserver.domain.vocabulary import Vocabulary
from camserver.objects.keys import Kind
from camserver.services.web import camera_values, pictures
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.labels import active_vocabulary, shown_fault, shown_health
from camserver.services.web.looks import note_media
from camserver.services.web.once import Repeat
from camserver.services.web.plain_answers import plain_answer
from camserver.services.web.plain_tiles import shown_tiles
from camserver.services.web.routes.filters import SiteNames
from camserver.services.web.routing import Routes
from camserver.services.web.sources import LOCAL_TYPES, Login, Source, one_login, parse_source, shown_url
from camserver.store import camera_changes, camera_filters, camera_tiles, cameras
from camserver.store.camera_changes import CameraChange
from camserver.store.camera_narrowing import CameraFilter
from camserver.store.cameras import CameraSummary, LatestFrame, Stream
from camserver.wire import api

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
PAGE_USUAL = 100


@routes.get("/api/cameras", Permission.READ, response_model=api.CameraPage)
async def list_cameras(
    call: TheCall,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=cameras.PAGE_MAX)] = PAGE_USUAL,
    sites: SiteNames = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    enabled: bool | None = None,
    health: Literal["up", "down", "unknown"] | None = None,
    text: Annotated[
        str | None, Query(min_length=1, max_length=64, description="A part of the id or the name.")
    ] = None,
) -> api.CameraPage | Response:
    """Cameras in the order of their ids, each with its newest look. Several sites are alternatives."""
    if sites:
        await call.store.read(camera_filters.keys_of_sites, sites)
    wanted = CameraFilter(tuple(sites), enabled, health, text)
    if not call.principal.may(Permission.MANAGE_CAMERAS):
        tiles, older = await call.store.read(camera_tiles.page, after, limit, wanted)
        interval_sec = call.web.settings.looks.polling_interval_sec
        next_after = tiles[-1].camera_id if len(tiles) == limit else None
        shown_page = {"cameras": shown_tiles(tiles, older, interval_sec), "next_after": next_after}
        return plain_answer(api.CameraPage, shown_page)
    found = await call.store.read(cameras.page, after, limit, wanted)
    vocabulary = await active_vocabulary(call)
    return api.CameraPage(
        cameras=[shown(call, camera, vocabulary) for camera in found],
        next_after=found[-1].camera_id if len(found) == limit else None,
    )


@routes.post("/api/cameras", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=201)
async def add_camera(call: TheCall, asked: api.CameraAsked) -> api.Camera:
    """Adds a camera. Credentials are stored encrypted and never given out again."""
    source = permitted(call, asked.source)
    sub = None if asked.sub is None else permitted(call, asked.sub)
    new = cameras.NewCamera(
        camera_id=asked.camera_id,
        name=asked.name.strip() or asked.camera_id,
        site=asked.site,
        main=Stream(source.type, source.url),
        sub=None if sub is None else Stream(sub.type, sub.url),
        credentials=_sealed(call, asked.camera_id, one_login(source, sub)),
        values=camera_values.overrides(asked),
        do_not_process=asked.do_not_process,
        network_zone=asked.network_zone,
    )
    added = await call.store.write(cameras.add, new, call.address, call.now_ms)
    return shown(call, added, await active_vocabulary(call))


@routes.get("/api/cameras/{camera_id}", Permission.READ)
async def get_camera(call: TheCall, camera_id: CameraId) -> api.Camera:
    """One camera."""
    found = await call.store.read(cameras.get, camera_id)
    return shown(call, found, await active_vocabulary(call))


@routes.patch("/api/cameras/{camera_id}", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def change_camera(call: TheCall, camera_id: CameraId, asked: api.CameraChange) -> api.Camera:
    """Changes a camera. Its worker goes on with the new values at once, without giving the camera back."""
    given = asked.model_fields_set
    source = None if asked.source is None else permitted(call, asked.source)
    sub = None if asked.sub is None else permitted(call, asked.sub)
    wanted = CameraChange(
        name=None if asked.name is None else asked.name.strip() or camera_id,
        enabled=asked.enabled,
        do_not_process=asked.do_not_process,
        network_zone=asked.network_zone,
        site=asked.site,
        main=None if source is None else Stream(source.type, source.url),
        sub=None if sub is None else Stream(sub.type, sub.url),
        without_sub="sub" in given and sub is None,
        credentials=_sealed(call, camera_id, _new_login(asked, source, sub)),
        without_credentials="credentials" in given and asked.credentials is None,
        values=tuple(camera_values.columns(asked).items()),
    )
    changed = await call.store.write(camera_changes.change, camera_id, wanted, call.address, call.now_ms)
    return shown(call, changed, await active_vocabulary(call))


@routes.delete("/api/cameras/{camera_id}", Permission.MANAGE_CAMERAS, status_code=204, repeat=Repeat.ANSWER)
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
    await note_media(call, Kind.INFER.value, place.frame_uuid, place.in_case)
    return await pictures.picture_response(call, place, Kind.INFER.value, pictures.ASKED_AGAIN)


def permitted(call: Call, asked: api.SourceAsked) -> Source:
    source = parse_source(asked)
    if source.type in LOCAL_TYPES and not call.principal.may(Permission.MANAGE_SYSTEM):
        raise Forbidden(
            f"a camera of type {source.type} opens what is on the worker's own machine; only a system "
            "administrator may add one",
            reason="source_needs_admin",
        )
    return source


def _new_login(asked: api.CameraChange, source: Source | None, sub: Source | None) -> Login | None:
    """The login that a change brings, wherever it stands."""
    inside = None
    if source is not None:
        inside = one_login(source, sub)
    elif sub is not None:
        inside = sub.login
    if asked.credentials is None:
        return inside
    if inside is not None:
        raise BadInput("user and password are given twice; give them once", reason="url_two_credentials")
    return Login(asked.credentials.user, Secret(asked.credentials.password))


def _sealed(call: Call, camera_id: str, login: Login | None) -> Sealed | None:
    if login is None:
        return None
    key = call.web.secrets.credential_keys
    return seal(key, call.principal.tenant_id, camera_id, login.plaintext())


def _source(camera: CameraSummary, stream: Stream | None) -> api.Source | None:
    if stream is None:
        return None
    return api.Source(
        type=stream.source_type,
        url=shown_url(stream.source_type, stream.url),
        has_credentials=camera.has_credentials,
    )


def shown(call: Call, camera: CameraSummary, vocabulary: Vocabulary) -> api.Camera:
    manages = call.principal.may(Permission.MANAGE_CAMERAS)
    own = camera_values.own(camera.own, camera.network_zone) if manages else None
    default_sec = call.web.settings.looks.polling_interval_sec
    return api.Camera(
        camera_id=camera.camera_id,
        name=camera.name,
        site=camera.site,
        enabled=camera.enabled,
        state=camera.state,
        state_reason=camera.state_reason,
        worker_id=camera.worker_id if manages else None,
        polling_interval_sec=camera.own.polling_interval_sec or default_sec,
        source=_source(camera, camera.main) if manages else None,
        sub=_source(camera, camera.sub) if manages else None,
        own=own,
        do_not_process=camera.do_not_process,
        caps=None if camera.caps is None else json.loads(camera.caps),
        last_probe_at=camera.last_probe_at,
        created_at=camera.created_at,
        latest=None if camera.latest is None else _look(camera.latest),
        latest_picture=(
            None
            if camera.latest_picture is None
            else api.PictureRef.model_validate(camera.latest_picture, from_attributes=True)
        ),
        open_event=(
            None
            if camera.open_event is None
            else api.OpenEvent.model_validate(camera.open_event, from_attributes=True)
        ),
        health=shown_health(camera.health),
        stream_fault=shown_fault(camera.stream_fault, manages),
        unknown_hints=None if own is None else camera_values.unknown_hints(own.hints, vocabulary),
    )


def _look(frame: LatestFrame) -> api.Look:
    return api.Look(**fields_of(frame))
