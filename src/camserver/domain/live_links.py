"""Addresses of live streams, and the tickets with which workers feed them (docs/design/live.md).

A viewing's signature keeps whoever guesses ids away from the store; it opens nothing alone, the valid viewing does.
A ticket says what one worker may push to one streamer: it is made by control, checked by the streamer, good for a
short time and one connection. All keys are derived from the installation's media key, so every service has them.
"""

import base64
import binascii
import hashlib
import hmac
import json
import re
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from camserver.base.errors import Bug, Forbidden

Quality: TypeAlias = Literal["main", "sub"]

TICKET_LIFE_MS: Final = 30_000
TICKET_MAX_CHARS: Final = 1_024
STREAM_PATH: Final = "/stream/"
HLS_PATH: Final = "/hls/"
SNAPSHOT_PATH: Final = "/snapshot/"
FEED_PATH: Final = "/v1/feed"
SOUND_LIST: Final = "sound.m3u8"  # beside index.m3u8
_LEASE = re.compile(r"[0-9A-Za-z-]{1,64}")
_CAMERA = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SIGNED = re.compile(r"(?P<lease_id>[0-9A-Za-z-]{1,64})\.(?P<sig>[0-9A-Za-z_-]{43})")


@dataclass(frozen=True, slots=True)
class LiveKeys:
    """One key a purpose. `earlier` are those of the media key before, while it is replaced."""

    viewing: bytes = field(repr=False)
    ticket: bytes = field(repr=False)
    streamer_token: str = field(repr=False)  # by which a streamer is known to control
    earlier: "LiveKeys | None" = field(default=None, repr=False)


def live_keys(media_key: bytes, previous: bytes | None = None) -> LiveKeys:
    return LiveKeys(
        _hmac(media_key, "live viewing"),
        _hmac(media_key, "live ticket"),
        _text(_hmac(media_key, "live streamer")),
        None if previous is None else live_keys(previous),
    )


# ---------------------------------------------------------------------------------------------------------------
# Viewings
# ---------------------------------------------------------------------------------------------------------------


def view_signature(keys: LiveKeys, lease_id: str) -> str:
    if not _LEASE.fullmatch(lease_id):
        raise Bug(f"viewing {lease_id!r} can't be signed")
    return _text(_hmac(keys.viewing, f"view|{lease_id}"))


def is_signed(keys: LiveKeys, lease_id: str, sig: str) -> bool:
    """Whether this is a viewing that we handed out, whatever became of it."""
    if not _LEASE.fullmatch(lease_id) or not sig.isascii():
        return False
    if hmac.compare_digest(view_signature(keys, lease_id), sig):
        return True
    return keys.earlier is not None and is_signed(keys.earlier, lease_id, sig)


def signed_lease(keys: LiveKeys, text: str) -> str | None:
    """The viewing of `{lease_id}.{sig}`; None when it is none of ours."""
    match = _SIGNED.fullmatch(text)
    if match is None or not is_signed(keys, match["lease_id"], match["sig"]):
        return None
    return match["lease_id"]


def stream_url(keys: LiveKeys, origin: str, camera_id: str, lease_id: str) -> str:
    """Of the socket. `origin` is http(s)://host[:port] of the streamer, as browsers reach it."""
    if not _CAMERA.fullmatch(camera_id):
        raise Bug(f"camera {camera_id!r} can't be addressed")
    socket_origin = re.sub("^http", "ws", origin.rstrip("/"))
    return f"{socket_origin}{STREAM_PATH}{camera_id}?lease={lease_id}&sig={view_signature(keys, lease_id)}"


def hls_url(keys: LiveKeys, origin: str, lease_id: str) -> str:
    return f"{origin.rstrip('/')}{HLS_PATH}{lease_id}.{view_signature(keys, lease_id)}/index.m3u8"


def snapshot_url(keys: LiveKeys, origin: str, lease_id: str) -> str:
    return f"{origin.rstrip('/')}{SNAPSHOT_PATH}{lease_id}.{view_signature(keys, lease_id)}"


def streamer_origin(public_url: str, port: int, page_scheme: str, page_host: str) -> str:
    """Where a browser reaches a streamer: its own address, or its port at the host that the page came from.

    `page_host` is the host name alone; an IPv6 address in brackets.
    """
    return public_url.rstrip("/") if public_url else f"{page_scheme}://{page_host}:{port}"


def feed_addresses(own: str, remote: str) -> str:
    """Where workers reach a streamer, as its row has it: those beside it first, then those at other sites, if any."""
    return f"{own} {remote}" if remote else own


def feed_address(addresses: str, is_remote: bool) -> str:
    """Of those the one for a worker; the only one there may be of the proxy in front of all."""
    own, _, remote = addresses.partition(" ")
    return remote if is_remote and remote else own


# ---------------------------------------------------------------------------------------------------------------
# Tickets
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a worker may push, and where."""

    streamer_id: str
    tenant_id: int
    camera_id: str
    generation: int
    quality: Quality
    transcode: bool
    worker_id: str
    expires_at: int
    nonce: str


def sign_ticket(keys: LiveKeys, ticket: Ticket) -> str:
    payload = _text(json.dumps([getattr(ticket, name) for name in Ticket.__slots__], separators=(",", ":")).encode())
    return f"{payload}.{_text(_hmac(keys.ticket, f'feed|{payload}'))}"


def read_ticket(keys: LiveKeys, text: str, streamer_id: str, now_ms: int) -> Ticket:
    """What the ticket says; Forbidden when it is not one of ours, for another streamer, or over."""
    payload, _, sig = text[:TICKET_MAX_CHARS].partition(".")
    if not payload.isascii() or not sig.isascii() or not _is_ticket(keys, payload, sig):
        raise Forbidden("the ticket is none of this installation's")
    try:
        ticket = Ticket(*json.loads(_bytes(payload)))
    except (ValueError, TypeError, binascii.Error):
        raise Forbidden("the ticket is of another version") from None
    if ticket.streamer_id != streamer_id:
        raise Forbidden("the ticket is for another streamer")
    if now_ms > ticket.expires_at:
        raise Forbidden("the ticket's time is over")
    return ticket


def _is_ticket(keys: LiveKeys, payload: str, sig: str) -> bool:
    if hmac.compare_digest(_text(_hmac(keys.ticket, f"feed|{payload}")), sig):
        return True
    return keys.earlier is not None and _is_ticket(keys.earlier, payload, sig)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
