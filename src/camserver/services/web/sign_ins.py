"""How a sign-in begins, however it was proved who it is: a session, and the cookies of it."""

import secrets
from typing import Literal
from urllib.parse import urlsplit

from fastapi import Response

from camserver.base.errors import Unauthenticated
from camserver.services.web.access import SESSION_COOKIE, find_session, token_hash
from camserver.services.web.calls import Call
from camserver.services.web.edge import host_name
from camserver.store import sessions
from camserver.store.sessions import SignedIn

DEVICE_COOKIE = "camserver_device"
# Of somebody who came in by a provider: what it knows them by when they sign out.
HINT_COOKIE = "camserver_oidc_hint"
DEVICE_COOKIE_SEC = 365 * 86_400


async def begin(
    call: Call,
    user_id: int,
    tenant_id: int,
    login: str,
    response: Response,
    *,
    proved_by: str | None = None,
    by: str = "",
    hint: str = "",
) -> SignedIn:
    """Signs in and sets the cookies. It was proved by a password that fits the hash `proved_by`, or as `by` says;
    `hint` is what a provider knows the person by."""
    await _end_former(call)
    token = secrets.token_urlsafe(32)
    session = sessions.NewSession(
        token_hash=token_hash(token),
        csrf_token=secrets.token_urlsafe(32),
        session_hours=call.web.settings.web.session_hours,
        address=call.address,
        user_agent=call.request.headers.get("user-agent", ""),
        by=by,
        proved_by=proved_by,
    )
    await call.web.store.write(sessions.begin, user_id, tenant_id, session, call.now_ms)
    signed_in = await call.web.store.read(sessions.find, session.token_hash, call.now_ms)
    if signed_in is None:
        raise Unauthenticated(
            "the account was switched off at this moment; ask an administrator", reason="account_off"
        )
    set_cookie(call, response, SESSION_COOKIE, token, call.web.settings.web.session_hours * 3600)
    set_cookie(call, response, DEVICE_COOKIE, call.web.devices.make(login), DEVICE_COOKIE_SEC)
    if hint or HINT_COOKIE in call.request.cookies:
        set_hint(call, response, hint)
    return signed_in


def set_hint(call: Call, response: Response, hint: str) -> None:
    """Kept by the browser alone, and sent to signing in and out only. An empty one is forgotten."""
    lifetime_sec = call.web.settings.web.session_hours * 3600 if hint else 0
    set_cookie(call, response, HINT_COOKIE, hint, lifetime_sec, path="/api/session")


async def _end_former(call: Call) -> None:
    """A browser has one sign-in; the one before ends here."""
    former = await find_session(call.web, call.request, call.now_ms)
    if former is not None:
        await call.web.store.as_(former.principal).write(sessions.end, call.address, call.now_ms)


def set_cookie(
    call: Call,
    response: Response,
    name: str,
    value: str,
    max_age_sec: int,
    *,
    path: str = "/",
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    response.set_cookie(
        name, value, max_age=max_age_sec, path=path, secure=over_tls(call), httponly=True, samesite=same_site
    )


def over_tls(call: Call) -> bool:
    """By the connection, or, behind a proxy that does not say, by the address that people use."""
    public = urlsplit(call.web.public_url)
    reached_publicly = host_name(call.request.headers.get("host", "")) == public.hostname
    return call.request.url.scheme == "https" or (public.scheme == "https" and reached_publicly)
