"""Who may call: sessions, the local admin token, cross-site checks, permissions.

Every route passes through `admit` before its body is even parsed. Somebody is recognized by the session cookie, by a
token made for a program, or by the local admin token. A request that changes something must come from our own pages:
browsers say where it comes from (Origin, Sec-Fetch-Site), the cookie is SameSite=Strict, and with a cookie the
session's own token must be in the header X-CSRF-Token.
"""

import hashlib
import ipaddress
import secrets
from enum import StrEnum

from fastapi import Request
from starlette.requests import HTTPConnection

from camserver.base.errors import Forbidden, Reject, Retry, Unauthenticated
from camserver.base.log import get_logger
from camserver.domain.people import TENANT_WIDE, Permission, Principal, Role
from camserver.services.web.calls import Call, Web, address_of
from camserver.services.web.languages import note_language
from camserver.store import sessions, tokens
from camserver.store.sessions import SignedIn

log = get_logger(__name__)

SESSION_COOKIE = "camserver_session"
CSRF_HEADER = "x-csrf-token"
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# A request that a proxy handed on did not come from this machine, whatever its peer's address is.
_PROXY_HEADERS = ("forwarded", "x-forwarded-for", "x-real-ip")
_TOKEN_MAX_CHARS = 200
# So that a token is recognized as one, also by programs that look for secrets in places they should not be in.
TOKEN_PREFIX = "camserver_"


class Gate(StrEnum):
    """What a route needs when it is no permission."""

    PUBLIC = "public"
    SIGNED_IN = "signed_in"  # also by a token
    SESSION = "session"  # with a browser's cookie


Needs = Gate | Permission


async def admit(web: Web, request: Request, needs: Needs, within_sites: bool = False) -> Call:
    """The call, when its caller may make it; Unauthenticated or Forbidden otherwise.

    What a tenant-wide permission is needed for is changed only by somebody who reaches all sites, unless the route
    says that it keeps within the caller's sites by itself.
    """
    changes_something = request.method not in _SAFE_METHODS
    if changes_something:
        _refuse_foreign_pages(request)
    now_ms = web.clock.now_ms()
    if needs is Gate.PUBLIC:
        return Call(web, request, None, None, now_ms)
    principal, signed_in = await _recognize(web, request, now_ms)
    if signed_in is not None and changes_something:
        _require_csrf_token(request, signed_in)
    if needs is Gate.SESSION and signed_in is None:
        raise Forbidden("only somebody who is signed in with a browser can do this", reason="needs_session")
    if isinstance(needs, Permission):
        principal.require(needs)
        if changes_something and needs in TENANT_WIDE and not within_sites:
            principal.require_all_sites()
    if signed_in is not None and signed_in.needs_touch(now_ms):
        await _touch(web, principal, now_ms)
    return Call(web, request, principal, signed_in, now_ms)


async def admit_socket(web: Web, socket: HTTPConnection, needs: Needs) -> Call:
    """The same for a WebSocket, which a page of any site could open with the browser's cookie.

    Browsers name the page's origin in every handshake, so one with a cookie and without an origin is no browser's.
    """
    _refuse_foreign_pages(socket)
    now_ms = web.clock.now_ms()
    principal, signed_in = await _recognize(web, socket, now_ms)
    if signed_in is not None and "origin" not in socket.headers:
        raise _foreign_page()
    if isinstance(needs, Permission):
        principal.require(needs)
    return Call(web, socket, principal, signed_in, now_ms)


async def note_account(web: Web, request: HTTPConnection) -> None:
    """Whose language an answer is in that is the same for everybody. Who is not recognized is refused nothing."""
    try:
        await _recognize(web, request, web.clock.now_ms())
    except (Reject, Retry):
        return


def token_hash(token: str) -> str:
    """How a random token is kept. It has 256 bits of its own, so it needs no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def _cookie(given: str) -> str:
    """The session's, which is never quoted; the others are not looked at."""
    found = ""
    for one in given.split(";"):
        name, _, value = one.partition("=")
        if name.strip() == SESSION_COOKIE:
            found = value.strip()
    return found


async def find_session(web: Web, request: HTTPConnection, now_ms: int) -> SignedIn | None:
    token = _cookie(request.headers.get("cookie", ""))
    if not token or len(token) > _TOKEN_MAX_CHARS:
        return None
    hashed = token_hash(token)
    found = await web.remembered.get(("session", hashed), lambda: web.store.read(sessions.find, hashed, now_ms))
    return found if found is not None and found.expires_at > now_ms else None


async def _recognize(web: Web, request: HTTPConnection, now_ms: int) -> tuple[Principal, SignedIn | None]:
    given = request.headers.get("authorization")
    if given is not None:
        kind, _, token = given.partition(" ")
        if kind.lower() == "bearer" and token.strip().startswith(TOKEN_PREFIX):
            return await _of_token(web, request, token.strip(), now_ms), None
        return _local_admin(web, request, given), None
    signed_in = await find_session(web, request, now_ms)
    if signed_in is None:
        raise Unauthenticated("nobody is signed in here, or the sign-in is over; sign in and try again")
    note_language(request, signed_in.language)
    return signed_in.principal, signed_in


async def _of_token(web: Web, request: HTTPConnection, token: str, now_ms: int) -> Principal:
    known = None
    if len(token) <= _TOKEN_MAX_CHARS:
        hashed = token_hash(token)
        known = await web.remembered.get(("token", hashed), lambda: web.store.read(tokens.find, hashed, now_ms))
    if known is None or known.expires_at <= now_ms:
        raise Unauthenticated(
            "the token is unknown, revoked or too old; make a new one with `camserver token add`", reason="bad_token"
        )
    note_language(request, known.language)
    if known.needs_touch(now_ms):
        try:
            await web.store.as_(known.principal).write(tokens.touch, address_of(request), now_ms)
        except Retry as error:
            log.warning("the use of a token could not be noted", cause=error.message)
    return known.principal


def _local_admin(web: Web, request: HTTPConnection, given: str) -> Principal:
    kind, _, token = given.partition(" ")
    expected = web.secrets.local_admin_token.reveal()
    if (
        not _is_local(request)
        or kind.lower() != "bearer"
        or not secrets.compare_digest(token.strip().encode(), expected.encode())
    ):
        raise Unauthenticated(
            "the header Authorization holds no token that is known here; send `Bearer TOKEN` with one that "
            f"`camserver token add` made (it begins with {TOKEN_PREFIX}), or on the server's own machine with what "
            "is in the file local_admin_token of its secrets folder",
            reason="unknown_token",
        )
    return Principal(web.home.tenant_id, None, Role.SYSTEM_ADMIN)


def may_read_metrics(web: Web, request: HTTPConnection) -> None:
    """Unauthenticated unless it comes from a program on this machine, or with the token of the settings."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    expected = web.settings.metrics.token
    if expected is not None and kind.lower() == "bearer":
        if secrets.compare_digest(given.strip().encode(), expected.reveal().encode()):
            return
    elif _is_local(request):
        return
    raise Unauthenticated(
        "figures are for programs on the server's own machine, or with the token of metrics.token", reason="metrics"
    )


def _is_local(request: HTTPConnection) -> bool:
    if any(name in request.headers for name in _PROXY_HEADERS):
        return False
    try:
        return ipaddress.ip_address(address_of(request)).is_loopback
    except ValueError:
        return False


def _refuse_foreign_pages(request: HTTPConnection) -> None:
    """Programs send neither header; browsers send at least one with every request that changes something."""
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    foreign = site is not None and site not in ("same-origin", "none")
    if origin is not None:
        # Host was held against the allow-list already. The scheme may differ where a proxy ends TLS.
        foreign = foreign or origin.lower().partition("://")[2] != request.headers.get("host", "").lower()
    if foreign:
        raise _foreign_page()


def _foreign_page() -> Forbidden:
    return Forbidden(
        "the request comes from a page of another site; open this server's own pages", reason="foreign_origin"
    )


def _require_csrf_token(request: Request, signed_in: SignedIn) -> None:
    given = request.headers.get(CSRF_HEADER, "")
    if not secrets.compare_digest(given.encode(), signed_in.csrf_token.encode()):
        raise Forbidden(
            "the header X-CSRF-Token is missing or not this session's; get it from GET /api/session", reason="csrf"
        )


async def _touch(web: Web, principal: Principal, now_ms: int) -> None:
    try:
        await web.store.as_(principal).write(sessions.touch, web.settings.web.session_hours, now_ms)
    except Retry as error:
        # Reading goes on while writing can't; the next request tries again.
        log.warning("the use of a session could not be noted", cause=error.message)
