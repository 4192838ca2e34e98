"""The streamer's HTTP side: HLS, snapshots, health. Every request of media is checked like a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, Forbidden, NotFound, Unavailable
from camserver.base.log import get_logger
from camserver.base.ready import Ready
from camserver.domain.live_links import SOUND_LIST, LiveKeys, signed_lease
from camserver.services.streamer.hls import Segments
from camserver.services.streamer.stream import LiveStream
from camserver.services.streamer.streams import Streams
from camserver.services.streamer.syncing import Syncing

log = get_logger(__name__)

# The first list waits for its first segment.
FIRST_SEGMENT_SEC = 10.0
FIRST_SEGMENT_STEP_SEC = 0.05
# What was valid so lately is not asked for again; a list, its segments and their neighbours come together.
FRESH_MS = 1_000
# Nothing here depends on who asks, and no cookie is read: the address is the key.
HEADERS = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
SOUND_PREFIX = "s-"
PLAYLIST, SEGMENT = "application/vnd.apple.mpegurl", "video/iso.segment"

Snapshot = Callable[[LiveStream], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Routes:
    keys: LiveKeys
    streams: Streams
    syncing: Syncing
    clock: Clock
    ready: Ready
    snapshot: Snapshot

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/healthz", self.healthz),
                Route("/readyz", self.readyz),
                Route("/hls/{signed}/{name}", self._answered(self.hls)),
                Route("/snapshot/{signed}", self._answered(self.picture)),
            ]
        )

    async def healthz(self, request: Request) -> Response:
        """This process is alive."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Every service of this process can do its work, or why not."""
        checks = {name: why or "ok" for name, why in self.ready.checks().items()}
        about = {"streams": len(self.streams), "viewers": self.streams.viewers, "feeds": self.streams.feeds}
        return JSONResponse({"checks": checks, **about}, 200 if self.ready.is_ready else 503)

    async def hls(self, request: Request) -> Response:
        lease_id = await self._lease(request)
        name = request.path_params["name"]
        stream = self.streams.hls(lease_id)
        if stream is None:
            raise NotFound("there is no such viewing (any more)")
        if name in ("index.m3u8", SOUND_LIST):
            segments = await self._first_segment(lease_id, stream, name == SOUND_LIST)
            # Both lists may be read at once, and a number means another segment in each.
            prefix = SOUND_PREFIX if segments is stream.sound_segments else ""
            told = self.streams.told_in_lists(lease_id)
            return Response(segments.playlist(prefix, told), headers=HEADERS, media_type=PLAYLIST)
        if name.startswith(SOUND_PREFIX):
            if stream.sound_segments is None:
                raise NotFound("the list does not name it (any more)")
            return _part(stream.sound_segments, name.removeprefix(SOUND_PREFIX))
        return _part(stream.begin_segments(), name)

    async def picture(self, request: Request) -> Response:
        lease_id = await self._lease(request)
        stream = self.streams.stream_of(lease_id)
        if stream is None or stream.keyframe is None:
            raise Unavailable("there is no picture yet; try again")
        return Response(await self.snapshot(stream), headers=HEADERS, media_type="image/jpeg")

    async def _lease(self, request: Request) -> str:
        lease_id = signed_lease(self.keys, request.path_params["signed"])
        if lease_id is None:
            raise Forbidden("the address is not one that this installation handed out")
        viewing = self.streams.viewing(lease_id)
        if viewing is None or self.clock.boot_ms() - self.streams.synced_boot_ms > FRESH_MS:
            viewing = await self.syncing.viewing(lease_id)
        if viewing is None:
            raise NotFound("there is no such viewing (any more)")
        return lease_id

    async def _first_segment(self, lease_id: str, stream: LiveStream | None, with_sound: bool) -> Segments:
        deadline_boot_ms = self.clock.boot_ms() + FIRST_SEGMENT_SEC * 1000
        while True:
            if stream is None:
                raise NotFound("there is no such viewing (any more)")
            segments = stream.begin_sound_segments() if with_sound else stream.begin_segments()
            if not segments.is_empty:
                return segments
            if self.clock.boot_ms() > deadline_boot_ms:
                raise Unavailable("there is no segment yet; try again")
            await asyncio.sleep(FIRST_SEGMENT_STEP_SEC)
            stream = self.streams.hls(lease_id)

    def _answered(self, route: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await route(request)
            except BadInput as error:
                return _error(Unavailable(error.message))
            except CamError as error:
                return _error(error)

        return answer


def _part(segments: Segments, name: str) -> Response:
    """An init segment or a segment, by its name in the list."""
    stem, _, suffix = name.partition(".")
    if suffix == "mp4" and stem.startswith("init-") and stem[5:].isdecimal() and len(stem) < 15:
        found = segments.init(int(stem[5:]))
        if found is not None:
            data, mime = found
            return Response(data, headers={**HEADERS, "Content-Type": mime})
    elif suffix == "m4s" and stem.isdecimal() and len(stem) < 15:
        segment = segments.segment(int(stem))
        if segment is not None:
            return Response(segment, headers=HEADERS, media_type=SEGMENT)
    raise NotFound("the list does not name it (any more)")


def _error(error: CamError) -> Response:
    headers = dict(HEADERS)
    if error.http_status == 503:
        headers["Retry-After"] = "1"
    return PlainTextResponse(error.message, error.http_status, headers=headers)
