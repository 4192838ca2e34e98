"""Admitting a viewing for a caller, and the addresses it is watched under. The store decides what is admitted."""

import math
from datetime import UTC, datetime

from camserver.base.errors import CamError, Conflict
from camserver.base.log import get_logger
from camserver.domain.admission import Refusal, refused
from camserver.domain.live_links import LiveKeys, hls_url, live_keys, snapshot_url, stream_url, streamer_origin
from camserver.services.web.calls import Call
from camserver.services.web.edge import host_name
from camserver.services.web.sign_ins import over_tls
from camserver.store import admissions, viewings
from camserver.store.admissions import Admitted, NotAdmitted, Request, Wish
from camserver.wire import api

log = get_logger(__name__)

# What browsers say they play, as FFmpeg and a camera's probe call it.
CODECS = {"h264": "h264", "h265": "hevc"}
# Streamers that are asked before somebody is refused for want of room.
STREAMERS_ASKED_MAX = 8


async def admit(call: Call, wish: Wish) -> Admitted:
    """The viewing, on whichever streamer has room for it; the refusal of the first one asked otherwise."""
    first: NotAdmitted | None = None
    tried: frozenset[str] = frozenset()
    for _ in range(STREAMERS_ASKED_MAX):
        answer = await _ask(call, wish, tried)
        if isinstance(answer, Admitted):
            call.web.bells.live.ring()
            return answer
        if answer.refusal is not Refusal.NO_STREAMER or first is None:
            first = first or answer
        if answer.streamer_id is None or answer.refusal is Refusal.USER_ALREADY_HAS_MODAL:
            break
        tried |= {answer.streamer_id}
    assert first is not None
    log.info("a live view was not admitted", refusal=first.refusal.value, camera_id=wish.camera_id)
    raise _error(first)


async def _ask(call: Call, wish: Wish, tried: frozenset[str]) -> Admitted | NotAdmitted:
    request = Request(call.principal, wish, call.address, call.now_ms, tried)
    try:
        return await call.web.desk.ask(request)
    except Conflict:
        # The same login asked on another streamer at the same moment; this time that one is seen.
        [answer] = await call.web.store.write(admissions.admit_all, (request,), call.web.settings.admission)
        return answer


def _error(answer: NotAdmitted) -> CamError:
    return refused(answer.refusal, **answer.details)


def viewing_answer(call: Call, admitted: Admitted) -> api.Viewing:
    policy = call.web.settings.admission
    keys, origin = keys_of(call), origin_of(call, admitted.public_url, admitted.port)
    return api.Viewing(
        lease_id=admitted.lease_id,
        camera_id=admitted.camera_id,
        allowed_quality=admitted.quality.value,
        expires_at=iso(admitted.expires_at),
        remaining_sec=seconds(admitted.expires_at - call.now_ms),
        ttl_sec=policy.modal_ttl_sec,
        heartbeat_interval_sec=policy.heartbeat_interval_sec,
        heartbeat_grace_sec=policy.heartbeat_grace_sec,
        stream_url=stream_url(keys, origin, admitted.camera_id, admitted.lease_id),
        hls_url=hls_url(keys, origin, admitted.lease_id),
        snapshot_url=snapshot_url(keys, origin, admitted.lease_id),
        units=admitted.units,
        transcoded=admitted.transcode,
        note=admitted.note.value,
    )


async def stream_answer(call: Call, lease_id: str) -> api.StreamStarted:
    """The addresses of one's own valid viewing."""
    viewing = await call.store.read(viewings.own, lease_id, call.now_ms)
    keys, origin = keys_of(call), origin_of(call, viewing.public_url, viewing.port)
    return api.StreamStarted(
        session_id=lease_id,
        lease_id=lease_id,
        hls_url=hls_url(keys, origin, lease_id),
        stream_url=stream_url(keys, origin, viewing.camera_id, lease_id),
        expires_at=iso(viewing.expires_at),
    )


def keys_of(call: Call) -> LiveKeys:
    previous = call.web.secrets.media_hmac_previous
    return live_keys(
        call.web.secrets.media_hmac.reveal().encode(), None if previous is None else previous.reveal().encode()
    )


def origin_of(call: Call, public_url: str, port: int) -> str:
    host = host_name(call.request.headers.get("host", ""))
    scheme = "https" if over_tls(call) else "http"
    return streamer_origin(public_url, port, scheme, f"[{host}]" if ":" in host else host)


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(ms: int) -> int:
    return max(0, math.ceil(ms / 1000))
