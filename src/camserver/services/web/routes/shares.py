"""Shares: made by somebody signed in, opened by whoever has the address; every opening is counted and logged."""

import secrets
from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from starlette.responses import HTMLResponse

from camserver.base.errors import NotFound, Retry
from camserver.domain.people import Permission
from camserver.domain.shares import Sharing, no_clip, no_picture, over
from camserver.services.web import films, pictures, share_page
from camserver.services.web.access import Gate, token_hash
from camserver.services.web.answers import told_later
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import Cursor
from camserver.services.web.routing import Routes
from camserver.services.web.throttle import LINKS, wrong_links_of
from camserver.store import shares
from camserver.store.frame_pages import THUMB
from camserver.store.shares import NewShare, Opened, ShareSummary
from camserver.wire import api

routes = Routes()

PAGE_USUAL = 50
Token = Annotated[str, Path(max_length=200)]
# Asked for again each time, so that a share that is revoked is closed at once.
_HEADERS = {"Cache-Control": "private, no-cache", "X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer"}
_TOKEN_BYTES = 32


@routes.post("/api/shares", Permission.READ, repeat=Repeat.SECRET, status_code=201)
async def add_share(call: TheCall, asked: api.ShareAsked) -> api.ShareAdded:
    """Shares an event (its pictures and clip) or one frame with whoever gets the address, without signing in.

    What belongs to a case can't be shared, and what is put into one later is closed then.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    new = NewShare(
        kind=asked.kind,
        uuid=asked.uuid,
        note=asked.note.strip(),
        expires_at=None if asked.ttl_sec is None else call.now_ms + asked.ttl_sec * 1000,
        token_hash=token_hash(token),
    )
    added = await call.store.write(shares.add, new, _sharing(call), call.address, call.now_ms)
    return api.ShareAdded(share=_shown(added), url=f"{call.web.public_url}/share/{token}")


@routes.get("/api/shares", Permission.READ)
async def list_shares(
    call: TheCall,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=shares.PAGE_MAX)] = PAGE_USUAL,
) -> api.SharePage:
    """Shares that are open, newest first: one's own, or, for those who manage cameras, all of cameras they reach."""
    found = await call.store.read(shares.page, before, limit, call.now_ms)
    return api.SharePage(
        shares=[_shown(one) for one in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )


@routes.delete("/api/shares/{share_uuid}", Permission.READ, status_code=204, repeat=Repeat.ANSWER)
async def revoke_share(call: TheCall, share_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)]) -> None:
    """Ends a share at once."""
    await call.store.write(shares.revoke, share_uuid, call.address, call.now_ms)


@routes.get("/share/{token}", Gate.PUBLIC, response_class=HTMLResponse)
async def open_share(call: TheCall, token: str) -> Response:
    """The page of a share."""
    # Whatever is wrong is said on a page: who has a link need not know what JSON is.
    try:
        share = await _opened(call, token, is_page=True)
    except NotFound:
        return HTMLResponse(share_page.over_page(call.language), status_code=404, headers=share_page.HEADERS)
    except Retry as error:
        words, status, headers = told_later(call.request, error)
        page = share_page.later_page(words, call.language)
        return HTMLResponse(page, status_code=status, headers={**share_page.HEADERS, **headers})
    return HTMLResponse(share_page.page(share, f"/share/{token}", call.language), headers=share_page.HEADERS)


@routes.get("/share/{token}/picture/{n}", Gate.PUBLIC, response_class=Response, responses=pictures.RESPONSES)
async def open_share_picture(
    call: TheCall,
    token: Token,
    n: Annotated[int, Path(ge=0, lt=1000)],
    kind: Annotated[Literal["kept", "thumb"], Query()] = "kept",
) -> Response:
    """A picture of a share: 0 is the best, the others follow in the order of time."""
    share = await _opened(call, token)
    if n >= len(share.pictures):
        raise no_picture(n)
    place = share.pictures[n]
    return await pictures.picture_response(call, place, THUMB if kind == "thumb" else place.kept, _HEADERS)


@routes.get("/share/{token}/clip", Gate.PUBLIC, response_class=Response, responses=films.RESPONSES)
async def open_share_clip(call: TheCall, token: Token, playable: films.Playable = False) -> Response:
    """The clip of a shared event."""
    share = await _opened(call, token)
    if share.clip is None:
        raise no_clip()
    return await films.clip_response(call, share.clip, _HEADERS, playable=playable)


async def _opened(call: Call, token: str, is_page: bool = False) -> Opened:
    """What the share shows, once it is written down that it was opened; NotFound for whatever opens nothing."""
    store = call.web.store
    share = await store.read(shares.opened, token_hash(token), _sharing(call), call.address, call.now_ms)
    if share is None:
        # Only now: a token can't be guessed, and whoever has a right one must not wait for what others at their
        # address did.
        call.web.throttle.count_try(wrong_links_of(call.address), call.web.clock.boot_ms(), LINKS)
        raise over()
    if is_page or not share.is_noted:
        await store.write(shares.note_opening, share, call.address, is_page, call.now_ms)
    return share


def _sharing(call: Call) -> Sharing:
    return Sharing(call.web.settings.media.shares)


def _shown(share: ShareSummary) -> api.Share:
    return api.Share.model_validate(asdict(share))
