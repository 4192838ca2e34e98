"""Credentials at rest: AES-256-GCM, bound to the camera or receiver they belong to.

The associated data is tenant|owner, so a row copied to another owner does not open. An owner is a camera's id, or a
kind and an id such as receiver:uuid; camera ids hold no colon. The key id tells which key
sealed a value; it is a hash and reveals nothing of the key. While a key is replaced, values of two keys are there: a
ring opens both and seals with the newer one. Storing and sending are done elsewhere.

The ciphers are loaded when something is sealed or opened: a process that only knows where the keys are does without
their 7 MB.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from camserver.base.errors import DataUnusable

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is stored of a credential."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


class KeyRing:
    """The key that seals, and others that only open. It follows its source: keys change while processes run.

    `load` gives the keys, the one that seals first; `mark` something that changes when they do.
    """

    def __init__(self, load: Callable[[], tuple[bytes, ...]], mark: Callable[[], object] = lambda: None) -> None:
        self._load = load
        self._mark = mark
        self._marked = mark()
        self._keys = load()

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(map(key_id, self._keys))})"

    @property
    def sealing(self) -> bytes:
        self._follow()
        return self._keys[0]

    @property
    def before(self) -> tuple[str, ...]:
        """Ids of the keys that only open."""
        self._follow()
        return tuple(sorted({key_id(key) for key in self._keys[1:]} - {key_id(self._keys[0])}))

    def opening(self, wanted: str) -> bytes | None:
        """The key of that id, if it is there."""
        found = self._find(wanted)
        if found is None:
            self._follow()
            found = self._find(wanted)
        return found

    def _find(self, wanted: str) -> bytes | None:
        return next((key for key in self._keys if key_id(key) == wanted), None)

    def _follow(self) -> None:
        marked = self._mark()
        if marked != self._marked:
            self._keys = self._load()
            self._marked = marked


# One key where there is only one, or a ring of them.
Keys = bytes | KeyRing


@lru_cache(maxsize=16)
def key_id(key: bytes) -> str:
    """Names a key without revealing it."""
    return hashlib.sha256(b"camserver credential key\0" + key).hexdigest()[:16]


def seal(keys: Keys, tenant_id: int, owner: str, plaintext: bytes) -> Sealed:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key = keys.sealing if isinstance(keys, KeyRing) else keys
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plaintext, _bound_to(tenant_id, owner))
    return Sealed(key_id(key), nonce, sealed)


def open_sealed(keys: Keys, tenant_id: int, owner: str, sealed: Sealed) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if isinstance(keys, KeyRing):
        key = keys.opening(sealed.key_id)
    else:
        key = keys if key_id(keys) == sealed.key_id else None
    if key is None:
        raise DataUnusable(
            f"the credentials of {_shown(owner)} were sealed with another key ({sealed.key_id}); restore that "
            "credential_key file from a backup, or enter its password again"
        )
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, _bound_to(tenant_id, owner))
    except InvalidTag:
        raise DataUnusable(
            f"the stored credentials of {_shown(owner)} are damaged or belong to another one; enter its "
            "password again"
        ) from None


def _bound_to(tenant_id: int, owner: str) -> bytes:
    return f"{tenant_id}|{owner}".encode()


def _shown(owner: str) -> str:
    kind, _, name = owner.rpartition(":")
    return f"{kind or 'camera'} {name}"
