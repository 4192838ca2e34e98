"""Signing in and out, and who one is."""

from dataclasses import replace
from typing import Literal

from fastapi import Response

from camserver.base.errors import Forbidden, Retry, Unauthenticated
from camserver.domain.people import Principal, check_password
from camserver.domain.shares import Sharing, may_share
from camserver.services.web import sign_ins
from camserver.services.web.access import SESSION_COOKIE, Gate, token_hash
from camserver.services.web.calls import Call, TheCall, Web
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.services.web.sign_ins import DEVICE_COOKIE, HINT_COOKIE, over_tls
from camserver.services.web.throttle import FREE_TRIES, keys_of
from camserver.store import password_links, people, sessions, users
from camserver.store.sessions import SignedIn
from camserver.store.users import Account
from camserver.wire import api

routes = Routes()


@routes.post("/api/session", Gate.PUBLIC, status_code=201)
async def sign_in(call: TheCall, asked: api.SignIn, response: Response) -> api.Session:
    """Signs in with login and password; the answer sets the session cookie."""
    if not call.web.settings.oidc.takes_passwords:
        raise Forbidden(
            "signing in with a password is switched off here; use the other button", reason="passwords_off"
        )
    login = asked.login.strip().lower()
    account = await _check(call, login, asked.password)
    signed_in = await sign_ins.begin(
        call, account.user_id, account.tenant_id, login, response, proved_by=account.password_hash
    )
    return _described(call.web, signed_in)


async def _check(call: Call, login: str, password: str) -> Account:
    """The account whose password this is. Everything else takes as long and looks the same."""
    web = call.web
    device = web.devices.knows(call.request.cookies.get(DEVICE_COOKIE), login)
    keys = keys_of(login, call.address, device)
    web.throttle.count_try(keys, web.clock.boot_ms())
    try:
        account = await _proved(web, login, password)
        if account is not None and account.password_hash and web.passwords.is_outdated(account.password_hash):
            new_hash = await web.passwords.hash(password)
            if await web.store.write(users.replace_hash, account.user_id, account.password_hash, new_hash):
                account = replace(account, password_hash=new_hash)
            else:
                # Another sign-in was quicker, or the password is another one by now.
                account = await _proved(web, login, password)
        if account is None:
            await web.store.write(users.note_failed_sign_in, login, call.address, call.now_ms)
            raise Unauthenticated("login or password is wrong; check both and try again", reason="wrong_login")
    except Retry:
        # The server was at fault, not the one who tried.
        web.throttle.take_back(keys)
        raise
    web.throttle.forgive(keys)
    return account


async def _proved(web: Web, login: str, password: str) -> Account | None:
    account = await web.store.read(users.find_account, login)
    stored = None if account is None or account.disabled else account.password_hash
    return account if await web.passwords.matches(password, stored) else None


@routes.get("/api/session", Gate.SIGNED_IN)
async def who_am_i(call: TheCall) -> api.Session:
    """Who is signed in, what they may do, and the CSRF token of this session."""
    if call.signed_in is not None:
        return _described(call.web, call.signed_in)
    login, display_name, language = "local-admin", "local admin token", str(call.language)
    if call.principal.user_id is not None:
        person = await call.store.read(people.oneself)
        login, display_name, language = person.login, person.display_name, person.language
    return api.Session(
        login=login,
        display_name=display_name,
        role=call.principal.role.value,
        language=language,
        permissions=sorted(call.principal.permissions),
        features=_features(call.web),
        may_share=_may_share(call.web, call.principal),
        csrf_token="",
        expires_at=None,
    )


@routes.delete("/api/session", Gate.SIGNED_IN)
async def sign_out(call: TheCall, response: Response) -> api.SignedOut:
    """Signs out; the cookie is worth nothing afterwards. The answer says where to sign out at the provider, too."""
    if call.signed_in is not None:
        await call.store.write(sessions.end, call.address, call.now_ms)
    response.delete_cookie(SESSION_COOKIE, path="/", secure=over_tls(call), httponly=True, samesite="strict")
    hint = call.request.cookies.get(HINT_COOKIE, "")
    if not hint or call.web.oidc is None:
        return api.SignedOut(provider_url=None)
    sign_ins.set_hint(call, response, "")
    return api.SignedOut(provider_url=call.web.oidc.sign_out_address(hint))


@routes.post("/api/session/password", Gate.SESSION, status_code=204, repeat=Repeat.ANSWER)
async def change_password(call: TheCall, asked: api.PasswordChange) -> None:
    """One's own password. Every other sign-in of oneself ends; tokens stay."""
    assert call.signed_in is not None
    assert call.principal.user_id is not None
    web, login, user_id = call.web, call.signed_in.login, call.principal.user_id
    check_password(asked.new_password, login)
    # Whoever found a browser open must not be able to guess the password here without end.
    keys = {f"password {user_id}": FREE_TRIES}
    web.throttle.count_try(keys, web.clock.boot_ms())
    try:
        stored = await call.store.read(people.password_hash_of, user_id)
        if not await web.passwords.matches(asked.password, stored):
            raise Forbidden("the present password is wrong; try again", reason="wrong_password")
        new_hash = await web.passwords.hash(asked.new_password)
        await call.store.write(people.change_own_password, stored, new_hash, call.address, call.now_ms)
    except Retry:
        web.throttle.take_back(keys)
        raise
    web.throttle.forgive(keys)


@routes.post("/api/password-links/look", Gate.PUBLIC)
async def look_at_password_link(call: TheCall, asked: api.PasswordLinkLook) -> api.PasswordLinkOwner:
    """Whose password a link chooses."""
    chooser = await call.web.store.read(password_links.find, token_hash(asked.token), call.now_ms)
    if chooser is None:
        raise password_links.unknown()
    return api.PasswordLinkOwner(login=chooser.login, display_name=chooser.display_name)


@routes.post("/api/password-links/use", Gate.PUBLIC, status_code=204)
async def use_password_link(call: TheCall, asked: api.PasswordLinkUse) -> None:
    """Chooses a password with a one-time link. Sign in with it afterwards; all earlier sign-ins end."""
    web = call.web
    used_token = token_hash(asked.token)
    # Asked before the password is hashed, so that a made-up token costs next to nothing.
    chooser = await web.store.read(password_links.find, used_token, call.now_ms)
    if chooser is None:
        raise password_links.unknown()
    check_password(asked.password, chooser.login)
    new_hash = await web.passwords.hash(asked.password)
    store = web.store.as_(chooser.principal)
    await store.write(password_links.use, used_token, new_hash, call.address, call.now_ms)


@routes.get("/api/sessions", Gate.SESSION)
async def list_sessions(call: TheCall) -> api.SignInList:
    """Where one is signed in."""
    found = await call.store.read(sessions.own, call.now_ms)
    return api.SignInList(
        sign_ins=[
            api.SignInSeen(
                id=one.session_id,
                created_at=one.created_at,
                last_seen_at=one.last_seen_at,
                address=one.address,
                user_agent=one.user_agent,
                is_this=one.session_id == call.principal.session_id,
            )
            for one in found
        ]
    )


@routes.delete("/api/sessions", Gate.SESSION, status_code=204, repeat=Repeat.ANSWER)
async def end_other_sessions(call: TheCall) -> None:
    """Signs oneself out everywhere else."""
    await call.store.write(sessions.end_others, call.address, call.now_ms)


def _features(web: Web) -> list[Literal["scoring"]]:
    return ["scoring"] if web.settings.llm.is_configured else []


def _may_share(web: Web, principal: Principal) -> bool:
    return may_share(principal, Sharing(web.settings.media.shares))


def _described(web: Web, signed_in: SignedIn) -> api.Session:
    return api.Session(
        login=signed_in.login,
        display_name=signed_in.display_name,
        role=signed_in.principal.role.value,
        language=signed_in.language,
        permissions=sorted(signed_in.principal.permissions),
        features=_features(web),
        may_share=_may_share(web, signed_in.principal),
        csrf_token=signed_in.csrf_token,
        expires_at=signed_in.expires_at,
    )
