"""Clips: the short film of an event, for somebody who is signed in. Signed links to clips are in media.py."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Response

from camserver.domain.clips import no_clip_phrase
from camserver.domain.people import Permission
from camserver.services.web import films, pictures
from camserver.services.web.calls import TheCall
from camserver.services.web.looks import note_media
from camserver.services.web.routing import Routes
from camserver.store import clips
from camserver.store.clips import ClipDetail
from camserver.wire import api

routes = Routes()

EventUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.get("/api/events/{event_uuid}/clip", Permission.READ, response_class=Response, responses=films.RESPONSES)
async def get_event_clip(call: TheCall, event_uuid: EventUuid, playable: films.Playable = False) -> Response:
    """The clip of an event, whole or a part of it (`Range`)."""
    place = await call.store.read(clips.place, event_uuid)
    await note_media(call, "clip", event_uuid, place.in_case)
    return await films.clip_response(call, place, pictures.KEPT, playable=playable)


def shown_clip(clip: ClipDetail) -> api.Clip:
    phrase = no_clip_phrase(clip.reason)
    reason = api.Label(id=clip.reason, label_ja=phrase.ja, label_en=phrase.en) if clip.reason else None
    return api.Clip.model_validate({**asdict(clip), "reason": reason})
