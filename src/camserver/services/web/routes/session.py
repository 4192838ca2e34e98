"""Signing in and out, and who one is."""

import secrets
from urllib.parse import urlsplit

from fastapi import Response

from camserver.base.errors import Retry, Unauthenticated
from camserver.domain.people import PERMISSIONS
from camserver.services.web.access import SESSION_COOKIE, Gate, find_session, token_hash
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.edge import host_name
from camserver.services.web.routing import Routes
from camserver.services.web.throttle import keys_of
from camserver.store import sessions, users
from camserver.store.sessions import SignedIn
from camserver.store.users import Account
from camserver.wire import api

routes = Routes()

DEVICE_COOKIE = "camserver_device"
DEVICE_COOKIE_SEC = 365 * 86_400


@routes.post("/api/session", Gate.PUBLIC, status_code=201)
async def sign_in(call: TheCall, asked: api.SignIn, response: Response) -> api.Session:
    """Signs in with login and password; the answer sets the session cookie."""
    login = asked.login.strip().lower()
    account = await _check(call, login, asked.password)
    await _end_former(call)
    token = secrets.token_urlsafe(32)
    session = sessions.NewSession(
        token_hash=token_hash(token),
        csrf_token=secrets.token_urlsafe(32),
        session_hours=call.web.settings.web.session_hours,
        address=call.address,
        user_agent=call.request.headers.get("user-agent", ""),
    )
    await call.web.store.write(sessions.begin, account.user_id, account.tenant_id, session, call.now_ms)
    signed_in = await call.web.store.read(sessions.find, session.token_hash, call.now_ms)
    if signed_in is None:
        raise Unauthenticated("the account was switched off at this moment; ask an administrator")
    _set_cookie(call, response, SESSION_COOKIE, token, call.web.settings.web.session_hours * 3600)
    _set_cookie(call, response, DEVICE_COOKIE, call.web.devices.make(login), DEVICE_COOKIE_SEC)
    return _described(signed_in)


async def _check(call: Call, login: str, password: str) -> Account:
    """The account whose password this is. Everything else takes as long and looks the same."""
    web = call.web
    device = web.devices.knows(call.request.cookies.get(DEVICE_COOKIE), login)
    keys = keys_of(login, call.address, device)
    web.throttle.count_try(keys, web.clock.boot_ms())
    try:
        account = await web.store.read(users.find_account, login)
        stored = None if account is None or account.disabled else account.password_hash
        right = await web.passwords.matches(password, stored)
        if not right or account is None or stored is None:
            await web.store.write(users.note_failed_sign_in, login, call.address, call.now_ms)
            raise Unauthenticated("login or password is wrong; check both and try again", reason="wrong_login")
        if web.passwords.is_outdated(stored):
            new_hash = await web.passwords.hash(password)
            await web.store.write(users.replace_hash, account.user_id, stored, new_hash)
    except Retry:
        # The server was at fault, not the one who tried.
        web.throttle.forgive(keys)
        raise
    web.throttle.forgive(keys)
    return account


async def _end_former(call: Call) -> None:
    """A browser has one sign-in; the one before ends here."""
    former = await find_session(call.web, call.request, call.now_ms)
    if former is not None:
        await call.web.store.as_(former.principal).write(sessions.end, call.address, call.now_ms)


def _set_cookie(call: Call, response: Response, name: str, value: str, max_age_sec: int) -> None:
    response.set_cookie(
        name, value, max_age=max_age_sec, path="/", secure=_over_tls(call), httponly=True, samesite="strict"
    )


def _over_tls(call: Call) -> bool:
    """By the connection, or, behind a proxy that does not say, by the address that people use."""
    public = urlsplit(call.web.public_url)
    reached_publicly = host_name(call.request.headers.get("host", "")) == public.hostname
    return call.request.url.scheme == "https" or (public.scheme == "https" and reached_publicly)


@routes.get("/api/session", Gate.SIGNED_IN)
async def who_am_i(call: TheCall) -> api.Session:
    """Who is signed in, what they may do, and the CSRF token of this session."""
    if call.signed_in is not None:
        return _described(call.signed_in)
    role = call.principal.role
    return api.Session(
        login="local-admin",
        display_name="local admin token",
        role=role.value,
        language=call.language,
        permissions=sorted(PERMISSIONS[role]),
        csrf_token="",
        expires_at=None,
    )


@routes.delete("/api/session", Gate.SIGNED_IN, status_code=204)
async def sign_out(call: TheCall, response: Response) -> None:
    """Signs out; the cookie is worth nothing afterwards."""
    if call.signed_in is not None:
        await call.store.write(sessions.end, call.address, call.now_ms)
    response.delete_cookie(SESSION_COOKIE, path="/", secure=_over_tls(call), httponly=True, samesite="strict")


def _described(signed_in: SignedIn) -> api.Session:
    role = signed_in.principal.role
    return api.Session(
        login=signed_in.login,
        display_name=signed_in.display_name,
        role=role.value,
        language=signed_in.language,
        permissions=sorted(PERMISSIONS[role]),
        csrf_token=signed_in.csrf_token,
        expires_at=signed_in.expires_at,
    )
