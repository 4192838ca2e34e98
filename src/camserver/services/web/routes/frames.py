"""Frames: one with its boxes and tags, and its pictures."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Response

from camserver.base.records import fields_of
from camserver.domain.people import Permission
from camserver.domain.vocabulary import Vocabulary
from camserver.services.web import pictures
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import active_vocabulary, plain_tags, shown_tags
from camserver.services.web.looks import note_investigation, note_media
from camserver.services.web.routing import Routes
from camserver.store import archive_links, frame_pages
from camserver.store.frame_pages import FrameDetail
from camserver.wire import api

routes = Routes()

FrameUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.get("/api/frames/{frame_uuid}", Permission.READ)
async def get_frame(call: TheCall, frame_uuid: FrameUuid) -> api.Frame:
    """One frame with its boxes and tags."""
    found = await call.store.read(frame_pages.get, frame_uuid)
    shown = shown_frame(await active_vocabulary(call), found)
    await note_investigation(call, "frame", frame_uuid, shown.tags)
    return shown


@routes.get(
    "/api/frames/{frame_uuid}/picture", Permission.READ, response_class=Response, responses=pictures.RESPONSES
)
async def get_frame_picture(
    call: TheCall,
    frame_uuid: FrameUuid,
    kind: Annotated[api.ShownKind, Query()] = "infer",
    boxes: Annotated[bool, Query(description="Draw what was found on it; the kept picture stays clean.")] = False,
) -> Response:
    """A picture of a frame, for somebody who is signed in."""
    place = await call.store.read(frame_pages.picture, frame_uuid, kind)
    await note_media(call, kind, frame_uuid, place.in_case)
    if boxes:
        return await pictures.drawn_response(call, place, kind, pictures.KEPT, with_words=True)
    return await pictures.picture_response(call, place, kind, pictures.KEPT)


@routes.get("/api/frames/{frame_uuid}/copies", Permission.READ)
async def list_frame_copies(call: TheCall, frame_uuid: FrameUuid) -> api.ArchivedCopies:
    """Where archives hold copies of a frame, and of the clip of the event whose best frame it is."""
    found = await call.store.read(archive_links.copies, frame_uuid)
    return api.ArchivedCopies(copies=[api.ArchivedCopy.model_validate(asdict(one)) for one in found])


def shown_frame(vocabulary: Vocabulary, frame: FrameDetail) -> api.Frame:
    return api.Frame.model_validate(
        {
            **fields_of(frame),
            "pictures": list(frame.pictures),
            "warnings": list(frame.warnings),
            "tags": shown_tags(vocabulary, frame.tags),
        },
        from_attributes=True,
    )


def plain_frame(vocabulary: Vocabulary, frame: FrameDetail) -> dict[str, Any]:
    """What `api.Frame` would be, as it stands in an answer."""
    shown = fields_of(frame)
    del shown["cursor"]
    shown["tags"] = plain_tags(vocabulary, frame.tags)
    return shown
