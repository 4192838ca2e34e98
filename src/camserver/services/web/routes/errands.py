"""Errands: a picture now, why the gate let something pass, and the answers of all that workers are sent on."""

from typing import Annotated, Literal

from fastapi import Path, Query, Response

from camserver.domain.people import Permission
from camserver.services.web import errands, pictures
from camserver.services.web.admitting import CODECS
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import errands as stored
from camserver.wire import api

routes = Routes()

CameraId = Annotated[str, Path(pattern=api.CAMERA_ID_PATTERN)]
ErrandUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
# A camera that has to be opened first, with the longest wait for a keyframe, is done by then.
LOOK_TTL_SEC = 45
EXPLAIN_TTL_SEC = 30
# As long as cameras' video is kept in memory at most; usually half of it.
RECENT_MAX_SEC, RECENT_SEC = 60, 30
# Long enough for a film of a large H.265 picture to be transcoded on a busy machine.
RECENT_TTL_SEC = 90


@routes.post("/api/cameras/{camera_id}/look", Permission.READ, repeat=Repeat.ANSWER, status_code=202)
async def look_now(call: TheCall, camera_id: CameraId) -> api.Errand:
    """Asks for a look at the camera now, whatever its interval is."""
    return await errands.ask_camera(call, camera_id, "look", {}, LOOK_TTL_SEC)


@routes.post("/api/cameras/{camera_id}/recent-clip", Permission.READ, repeat=Repeat.ANSWER, status_code=202)
async def recent_clip(
    call: TheCall,
    camera_id: CameraId,
    sec: Annotated[int, Query(ge=1, le=RECENT_MAX_SEC)] = RECENT_SEC,
    plays: Annotated[list[Literal["h264", "h265"]] | None, Query(max_length=4)] = None,
) -> api.Errand:
    """Asks for the last seconds of a camera that is connected, such as one that is watched live, as a film.

    The errand's picture is that film, an MP4 file; its result says why when there is none. With `plays`, the codecs
    that a browser plays, it is transcoded to H.264 where it would not play (`note` and `source_codec` in the result
    say so); without, it is as the camera sends it.
    """
    span: dict[str, object] = {"from_ms": call.now_ms - sec * 1000, "to_ms": call.now_ms, stored.RECENT: True}
    if plays:
        span["plays"] = sorted({CODECS[codec] for codec in plays})
    return await errands.ask_camera(call, camera_id, "clip", span, RECENT_TTL_SEC)


@routes.post("/api/cameras/{camera_id}/explain", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=202)
async def explain_gate(call: TheCall, camera_id: CameraId) -> api.Errand:
    """Asks why the camera's last looks passed the gate or did not, as numbers and as a picture."""
    return await errands.ask_camera(call, camera_id, "explain", {}, EXPLAIN_TTL_SEC)


@routes.get("/api/errands/{errand_uuid}", Permission.READ)
async def get_errand(
    call: TheCall,
    errand_uuid: ErrandUuid,
    wait_sec: Annotated[float, Query(ge=0, le=api.ERRAND_WAIT_MAX_SEC, allow_inf_nan=False)] = 0,
) -> api.Errand:
    """How an errand stands. With wait_sec the answer comes when it is over, or after that time."""
    return await errands.settled(call, errand_uuid, wait_sec)


@routes.get(
    "/api/errands/{errand_uuid}/picture", Permission.READ, response_class=Response, responses=pictures.RESPONSES
)
async def errand_picture(call: TheCall, errand_uuid: ErrandUuid) -> Response:
    """The picture that an errand brought."""
    found = await call.store.read(stored.picture, errand_uuid)
    errands.require_reader(call, found.kind)
    data = await call.web.objects.get(found.object_key)
    return Response(data, media_type=found.content_type, headers={"Cache-Control": "private, no-store"})
