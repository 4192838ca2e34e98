"""Requests that are done once, however often they are sent: the header `Idempotency-Key`.

The first write of the request carries its key in the same transaction, so what is made and the key are there together
or not at all. A repeat with the same body gets the first answer again for a day; with another body it is refused. An
answer with a secret in it is never kept: its repeat is told so. Errors are not kept either, because nothing was done.
"""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any, ParamSpec, TypeVar

from fastapi import Request, Response

from camserver.base.errors import BadInput, Conflict, Reject, Retry
from camserver.base.log import get_logger
from camserver.services.web.calls import Call
from camserver.store import ScopedStore, request_keys
from camserver.store.core import BeyondOperation, ScopedOperation
from camserver.store.request_keys import BODY_MAX_BYTES, Claim, Kept

log = get_logger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
_KEY = re.compile(r"[\x21-\x7e]{1,128}")


class Repeat(StrEnum):
    """What a repeated request is answered with."""

    ANSWER = "answer"  # what the first one was
    SECRET = "secret"  # that it was done, if the first answer held something that is kept nowhere
    SAME = "same"  # by doing it again, which changes nothing: a key is not looked at (services/web/unkeyed.py)
    REFUSED = "refused"  # by doing it again, which is not the same: a request with a key is refused


class OtherRequest(Reject):
    code = "other_request"
    http_status = 422


class OnceStore(ScopedStore):
    """The store in the caller's name; the first write that succeeds carries the request's key."""

    def __init__(self, inner: ScopedStore, claim: Claim) -> None:
        super().__init__(inner.store, inner.principal, inner.beyond)
        self._claim = claim
        self.is_claimed = False
        self.is_without_secret = False

    async def write(self, operation: ScopedOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_claimed:
            return await super().write(operation, *args, **kwargs)
        result: R = await self.store.write(request_keys.once, self.principal, self._claim, operation, args, kwargs)
        self.is_claimed = True
        return result

    async def write_beyond(self, operation: BeyondOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_claimed:
            return await super().write_beyond(operation, *args, **kwargs)
        result: R = await self.beyond.write(
            request_keys.once_beyond, self.principal, self._claim, operation, args, kwargs
        )
        self.is_claimed = True
        return result


def without_secret(call: Call) -> None:
    """Said by a handler whose answers may hold a secret, of one that holds none: a repeat is told it again."""
    if isinstance(call.once, OnceStore):
        call.once.is_without_secret = True


async def answer_once(
    call: Call, request: Request, repeat: Repeat, handler: Callable[[Request], Awaitable[Response]]
) -> Response:
    """The handler's answer, or that of the request before with the same key. Not asked where `repeat` is SAME."""
    key = request.headers.get(HEADER)
    if key is None:
        return await handler(request)
    if repeat is Repeat.REFUSED:
        raise BadInput(
            f"this can't be remembered by an {HEADER}; send it without one, and look what is there before a repeat",
            reason="request_key_refused",
        )
    if not _KEY.fullmatch(key):
        raise BadInput(
            f"the header {HEADER} must be 1 to 128 visible ASCII characters, such as a UUID", reason="bad_request_key"
        )
    claim = _claim(call, request, key, await request.body())
    kept = await call.store.read(request_keys.find, claim)
    if kept is not None:
        return _again(kept, claim, repeat)
    store = OnceStore(call.store, claim)
    request.state.call = replace(call, once=store)
    try:
        response = await handler(request)
    except (Conflict, Reject):
        # Somebody may have sent the same at the same moment and been first: what is in the way is what that one made.
        kept = None if store.is_claimed else await call.store.read(request_keys.find, claim)
        if kept is None:
            raise
        return _again(kept, claim, repeat)
    if store.is_claimed:
        await _keep(call, claim, repeat is Repeat.ANSWER or store.is_without_secret, response)
    return response


def _claim(call: Call, request: Request, key: str, body: bytes) -> Claim:
    principal = call.principal
    # Keyed, because a body may hold a password, and a plain hash of it could be guessed from.
    secret = call.web.secrets.session_key.reveal().encode()
    # What somebody may see and do belongs to it: an answer is not told again to whoever would not be given it now.
    sites = None if principal.site_ids is None else sorted(principal.site_ids)
    rights = f"{sites} {sorted(principal.camera_keys)} {sorted(principal.permissions)}"
    said = f"{request.method} {request.url.path}?{request.url.query}\n{rights}\n".encode() + body
    return Claim(
        caller=f"{principal.user_id or 'local'}.{principal.token_id or ''}",
        key_hash=hashlib.sha256(key.encode()).hexdigest(),
        fingerprint=hmac.new(secret, b"request\n" + said, hashlib.sha256).hexdigest(),
        now_ms=call.now_ms,
    )


async def _keep(call: Call, claim: Claim, may_be_kept: bool, response: Response) -> None:
    body: Any = response.body
    kept = bytes(body).decode() if may_be_kept and len(body) <= BODY_MAX_BYTES else None
    try:
        await call.store.write(request_keys.keep, claim, response.status_code, kept)
    except Retry as error:
        # It was done, and the caller is told so; a repeat will be told that it was done.
        log.warning("an answer could not be kept for a repeated request", cause=error.message)


def _again(kept: Kept, claim: Claim, repeat: Repeat) -> Response:
    if not hmac.compare_digest(kept.fingerprint, claim.fingerprint):
        raise OtherRequest(
            f"this {HEADER} was used for another request; use a new one for each", reason="request_key_reused"
        )
    if repeat is Repeat.SECRET and kept.body is None:
        raise Conflict(
            "this was done already; its answer held a secret that is not kept, so if you don't have it, remove what "
            "was made and make it anew with another key",
            reason="repeat_secret",
        )
    if kept.status is None or kept.body is None:
        raise Conflict(
            "this was done already, or is being done; its answer is not known (yet), so look what is there",
            reason="repeat_no_answer",
        )
    return Response(kept.body, status_code=kept.status, media_type="application/json", headers={REPLAYED: "true"})
