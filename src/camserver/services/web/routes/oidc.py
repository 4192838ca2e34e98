"""Signing in with an OpenID Connect provider. Whatever goes wrong leads back to the sign-in page, with a code."""

from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query
from fastapi.responses import RedirectResponse

from camserver.base.errors import CamError, Retry, TooManyTries
from camserver.base.log import get_logger
from camserver.domain.oidc import FLOW_TTL_MS, Claimed, Failure, OidcRefused, refused, safe_target
from camserver.services.web import sign_ins
from camserver.services.web.access import Gate
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.oidc import CALLBACK, Flow, OidcSignIn
from camserver.services.web.routing import Routes
from camserver.services.web.throttle import keys_of_address
from camserver.store import oidc_entries
from camserver.wire import api

log = get_logger(__name__)
routes = Routes()

START = "/api/oidc/start"
FLOW_COOKIE = "camserver_oidc"
# Sent to where a sign-in begins and comes back, and nowhere else. The way back begins at the provider's page, where
# Strict would hide it.
_FLOW_PATH = "/api/oidc"
_SEE_OTHER = 303


@routes.get("/api/oidc", Gate.PUBLIC)
async def describe_oidc(call: TheCall) -> api.OidcOffer:
    """Whether people can sign in with a provider, and with passwords."""
    settings = call.web.settings.oidc
    return api.OidcOffer(
        enabled=call.web.oidc is not None,
        # Whole: the provider leads back to this host, and a cookie of another one would be missing there.
        start_url=call.web.public_url + START,
        label_ja=settings.label_ja,
        label_en=settings.label_en,
        passwords=settings.takes_passwords,
    )


@routes.get(START, Gate.PUBLIC, status_code=_SEE_OTHER, response_class=RedirectResponse)
async def start_oidc(call: TheCall, next: str = "") -> RedirectResponse:
    """Leads to the provider; after signing in there, to the page `next` of this site."""
    target = safe_target(next)
    try:
        oidc = _configured(call)
        flow = oidc.flows.begin(target, call.now_ms)
        response = _redirect(await oidc.address_for(flow))
    except CamError as error:
        return _back(call, error, target)
    _set_flow_cookie(call, response, oidc.flows.with_one(_flow_cookie(call), flow, call.now_ms))
    return response


@routes.get(CALLBACK, Gate.PUBLIC, status_code=_SEE_OTHER, response_class=RedirectResponse)
async def finish_oidc(
    call: TheCall,
    state: str = "",
    code: str = "",
    error: str = "",
    issuer: Annotated[str | None, Query(alias="iss")] = None,
) -> RedirectResponse:
    """Where the provider leads back to."""
    try:
        oidc = _configured(call)
        flow = _flow(call, oidc, state)
    except CamError as problem:
        # Any page of any site can have browsers ask for this, in a picture's address, say. So it is no try, which
        # would be held against everybody at that address, nor the end of the sign-in that the browser is at.
        return _back(call, problem, "/")
    try:
        response = await _finish(call, oidc, flow, code, error, issuer)
    except CamError as problem:
        response = _back(call, problem, flow.target)
    # Those of other tabs go on.
    _set_flow_cookie(call, response, oidc.flows.without(_flow_cookie(call), flow, call.now_ms))
    return response


async def _finish(
    call: Call, oidc: OidcSignIn, flow: Flow, code: str, error: str, issuer: str | None
) -> RedirectResponse:
    keys = keys_of_address(call.address)
    call.web.throttle.count_try(keys, call.web.clock.boot_ms())
    try:
        response = await _sign_in(call, oidc, flow, code, error, issuer)
    except (Retry, OidcRefused) as problem:
        if isinstance(problem, Retry) or problem.failure is Failure.AWAY:
            # The server or the provider was at fault, not the one who tried.
            call.web.throttle.take_back(keys)
        raise
    call.web.throttle.forgive(keys)
    return response


async def _sign_in(
    call: Call, oidc: OidcSignIn, flow: Flow, code: str, error: str, issuer: str | None
) -> RedirectResponse:
    who: Claimed | None = None
    try:
        if error:
            failure = Failure.DENIED if error == "access_denied" else Failure.REFUSED
            raise refused(failure, f"the provider answered with the error {error[:64]!r}")
        who, hint = await oidc.who_came_back(flow, code, issuer)
        rules = oidc.settings.entry_rules
        entered = await call.web.store.write(oidc_entries.enter, who, rules, call.language, call.address, call.now_ms)
    except OidcRefused as problem:
        await call.web.store.write(oidc_entries.note_failed, problem.failure, who, call.address, call.now_ms)
        raise
    response = _redirect(flow.target)
    await sign_ins.begin(call, entered.user_id, entered.tenant_id, entered.login, response, by="oidc", hint=hint)
    return response


def _configured(call: Call) -> OidcSignIn:
    if call.web.oidc is None:
        raise refused(Failure.OFF, "no provider is configured; see [oidc]")
    return call.web.oidc


def _flow(call: Call, oidc: OidcSignIn, state: str) -> Flow:
    flow = oidc.flows.find(_flow_cookie(call), state, call.now_ms)
    if flow is None:
        raise refused(Failure.FLOW, "the answer is to no sign-in that this browser began a short while ago")
    return flow


def _back(call: Call, error: CamError, target: str) -> RedirectResponse:
    """To the sign-in page, which says what went wrong. What the provider said is for the log alone."""
    failure = _failure(error)
    log.warning("a sign-in with the provider failed", reason=failure.value, cause=error.message)
    query = {"problem": failure.value} | ({"next": target} if target != "/" else {})
    return _redirect(f"/sign-in?{urlencode(query)}")


def _failure(error: CamError) -> Failure:
    if isinstance(error, OidcRefused):
        return error.failure
    return Failure.TOO_MANY if isinstance(error, TooManyTries) else Failure.BUSY


def _redirect(address: str) -> RedirectResponse:
    return RedirectResponse(address, status_code=_SEE_OTHER)


def _flow_cookie(call: Call) -> str:
    return call.request.cookies.get(FLOW_COOKIE, "")


def _set_flow_cookie(call: Call, response: RedirectResponse, value: str) -> None:
    max_age_sec = FLOW_TTL_MS // 1000 if value else 0
    sign_ins.set_cookie(call, response, FLOW_COOKIE, value, max_age_sec, path=_FLOW_PATH, same_site="lax")
