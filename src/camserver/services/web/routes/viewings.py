"""Live view: viewings as in seed 001, and the streams of seed 002 under the same admission."""

from typing import Annotated

from fastapi import Path

from camserver.domain.admission import Kind, Quality
from camserver.domain.people import Permission
from camserver.services.web.admitting import CODECS, admit, seconds, stream_answer, viewing_answer
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import viewings
from camserver.store.admissions import Wish
from camserver.wire import api

routes = Routes()
LeaseId = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.post("/api/modal/lease", Permission.READ)
async def open_viewing(call: TheCall, asked: api.ViewingAsked) -> api.Viewing:
    """Asks to watch a camera live. Refused with SYSTEM_OVERLOAD, USER_ALREADY_HAS_MODAL or OVER_CAPACITY."""
    kind = Kind(asked.purpose)
    quality = Quality.SUB if kind is Kind.SUGGEST else Quality(asked.quality)
    plays = frozenset(CODECS[codec] for codec in asked.plays)
    return viewing_answer(call, await admit(call, Wish(asked.camera_id, quality, kind, plays)))


@routes.post("/api/modal/lease/{lease_id}/heartbeat", Permission.READ)
async def keep_viewing(call: TheCall, lease_id: LeaseId) -> api.HeartbeatDone:
    """Says that a live view is still watched."""
    left_ms = await call.store.write(viewings.heartbeat, lease_id, call.web.settings.admission, call.now_ms)
    return api.HeartbeatDone(remaining_sec=seconds(left_ms))


@routes.delete("/api/modal/lease/{lease_id}", Permission.READ)
async def end_viewing(call: TheCall, lease_id: LeaseId) -> api.Released:
    """Ends a live view of one's own; one that is over already is no error."""
    await call.store.write(viewings.release, lease_id)
    return api.Released()


@routes.post("/v1/streams/start", Permission.READ)
async def start_stream(call: TheCall, asked: api.StreamAsked) -> api.StreamStarted:
    """The addresses of a viewing that is there, or of a new one under the same admission."""
    lease_id = asked.lease_id
    if lease_id is None:
        assert asked.camera_id is not None
        wish = Wish(asked.camera_id, Quality(asked.quality), plays=frozenset({"h264"}))
        lease_id = (await admit(call, wish)).lease_id
    return await stream_answer(call, lease_id)


@routes.post("/v1/streams/stop", Permission.READ)
async def stop_stream(call: TheCall, asked: api.StreamStopAsked) -> api.Released:
    """Ends the viewing of a stream."""
    await call.store.write(viewings.release, asked.session_id)
    return api.Released()
