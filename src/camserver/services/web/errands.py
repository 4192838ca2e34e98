"""Asking for errands and waiting for them: what every route does that sends a worker on one."""

import json
from collections.abc import Mapping

import uuid_utils

from camserver.base.credentials import seal
from camserver.domain.people import Permission
from camserver.services.web.calls import Call
from camserver.services.web.messages import errand_message
from camserver.services.web.sources import Login
from camserver.store import errands
from camserver.store.errands import ErrandState, NewErrand
from camserver.wire import api

# How often the row is looked at while somebody waits.
WAIT_STEP_SEC = 0.25


async def ask_camera(
    call: Call, camera_id: str, kind: str, request: Mapping[str, object], ttl_sec: float
) -> api.Errand:
    """Sends the camera's holder; `request` becomes the errand's params."""
    errand = _new(call, kind, request, ttl_sec, None)
    state = await call.store.write(errands.ask_camera, camera_id, errand, call.address, call.now_ms)
    call.web.bells.errands.ring()
    return shown(call, state)


async def ask_site(
    call: Call, site: str | None, kind: str, request: Mapping[str, object], ttl_sec: float, login: Login | None = None
) -> api.Errand:
    """Sends any worker of the site. A `source` in the request (type, url) becomes the errand's, with the login."""
    errand = _new(call, kind, request, ttl_sec, login)
    state = await call.store.write(errands.ask_site, site, errand, call.address, call.now_ms)
    call.web.bells.errands.ring()
    return shown(call, state)


def _new(call: Call, kind: str, request: Mapping[str, object], ttl_sec: float, login: Login | None) -> NewErrand:
    errand_uuid = str(uuid_utils.uuid7())
    sealed = None
    if login is not None:
        key = call.web.secrets.credential_keys
        sealed = seal(key, call.principal.tenant_id, errand_uuid, login.plaintext())
    text = json.dumps(dict(request), ensure_ascii=False)
    return NewErrand(errand_uuid, kind, text, call.now_ms + round(ttl_sec * 1000), sealed)


async def settled(call: Call, errand_uuid: str, wait_sec: float) -> api.Errand:
    """The errand as soon as it is over, or as it is when the time is up."""
    clock = call.web.clock
    until_boot_ms = clock.boot_ms() + round(wait_sec * 1000)
    found = await call.store.read(errands.get, errand_uuid, clock.now_ms())
    require_reader(call, found.kind)
    if found.is_over or wait_sec <= 0:
        return shown(call, found)
    with call.web.waits.one_more() as may_wait:
        while may_wait and not found.is_over and clock.boot_ms() < until_boot_ms:
            await clock.sleep(WAIT_STEP_SEC)
            found = await call.store.read(errands.get, errand_uuid, clock.now_ms())
    return shown(call, found)


def require_reader(call: Call, kind: str) -> None:
    """Everybody may look, and see again. What the other kinds find out is for those who may ask for them."""
    call.principal.require(Permission.READ if kind in ("look", "clip") else Permission.MANAGE_CAMERAS)


def shown(call: Call, errand: ErrandState) -> api.Errand:
    result = None if errand.result is None else json.loads(errand.result)
    return api.Errand.model_validate(
        {
            "errand_uuid": errand.errand_uuid,
            "kind": errand.kind,
            "camera_id": errand.camera_id,
            "state": errand.state,
            "message": errand_message(errand.message, result, call.language),
            "result": result,
            "has_picture": errand.has_picture,
            "created_at": errand.created_at,
            "expires_at": errand.expires_at,
            "done_at": errand.done_at,
        }
    )
