"""Signed media links (decision 29): an address that opens one picture, for whoever has it, until it expires.

The signature covers `"{frame_uuid}|{object}|{exp_unix}"`. The object (which picture of the frame, its clip, or the id
of a copy at an archive) is not in the address: the one among the frame's objects that the signature fits is the one
that was linked. Nothing here reads rows or pictures, and nothing here knows who asks.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from camserver.base.errors import Bug, Forbidden
from camserver.domain.retention import Retention

# Without the payload's separator, so that no two (frame, object, time) have the same payload. An object may be the id
# of a file at an archive: a path there, or a key.
_PART = re.compile(r"[A-Za-z0-9._-]{1,128}")
_OBJECT = re.compile(r"[A-Za-z0-9._+/-]{1,255}")
_EXP = re.compile(r"[1-9][0-9]{0,11}")
_KID_CHARS: Final = 8


@dataclass(frozen=True, slots=True)
class LinkKeys:
    """What signs, and what also opens while one key replaces another."""

    current: bytes = field(repr=False)
    previous: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Signature:
    """What is in a link's query. `exp` is UTC seconds, as text because it comes from an address."""

    exp: str
    sig: str
    kid: str

    @property
    def query(self) -> str:
        """Of one that `sign` made: digits and characters of base64 for addresses, which need no escape."""
        return f"exp={self.exp}&sig={self.sig}&kid={self.kid}"


def may_be_linked(retention_class: str) -> bool:
    """A link can be handed on to anybody, so what belongs to a case has none."""
    return retention_class != Retention.CASE


@lru_cache(maxsize=8)
def key_id(key: bytes) -> str:
    """Which key signed. It says nothing about the key that a signature would not."""
    return _hmac(key, "kid").hex()[:_KID_CHARS]


def sign(keys: LinkKeys, frame_uuid: str, linked: str, exp_unix: int) -> Signature:
    """The signature of a link to the object `linked` of a frame."""
    exp = str(exp_unix)
    if not (_PART.fullmatch(frame_uuid) and _OBJECT.fullmatch(linked) and _EXP.fullmatch(exp)):
        raise Bug(f"a link to {linked!r} of frame {frame_uuid!r} until {exp} can't be signed")
    return Signature(exp, _signed(keys.current, frame_uuid, linked, exp), key_id(keys.current))


def is_of(keys: LinkKeys, given: Signature) -> bool:
    """Whether a link names one of our keys; made up ones seldom do."""
    known = (key_id(key) for key in (keys.current, keys.previous) if key is not None)
    return given.kid.isascii() and given.kid in known


def opened(keys: LinkKeys, frame_uuid: str, given: Signature, objects: Sequence[str], now_ms: int) -> str:
    """Which of the frame's `objects` the link opens; Forbidden when it is none of ours or over."""
    found = None
    if _PART.fullmatch(frame_uuid) and _EXP.fullmatch(given.exp):
        for key in (keys.current, keys.previous):
            if key is None or not hmac.compare_digest(key_id(key).encode(), given.kid.encode()):
                continue
            # Every object is tried, so that the time taken does not tell which one it was.
            for candidate in objects:
                expected = _signed(key, frame_uuid, candidate, given.exp)
                if hmac.compare_digest(expected.encode(), given.sig.encode()):
                    found = candidate
    if found is None:
        raise Forbidden("this link was not made by this server, or is not whole; ask for it again", reason="link_bad")
    if now_ms >= int(given.exp) * 1000:
        raise Forbidden("this link is over; ask for a new one", reason="link_expired")
    return found


def _signed(key: bytes, frame_uuid: str, linked: str, exp: str) -> str:
    digest = _hmac(key, f"{frame_uuid}|{linked}|{exp}")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _hmac(key: bytes, payload: str) -> bytes:
    return hmac.digest(key, payload.encode(), hashlib.sha256)
