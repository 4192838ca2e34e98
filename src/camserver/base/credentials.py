"""Credentials at rest: AES-256-GCM, bound to the camera or receiver they belong to.

The associated data is tenant|owner, so a row copied to another owner does not open. An owner is a camera's id, or a
kind and an id such as receiver:uuid; camera ids hold no colon. The key id tells which key
sealed a value; it is a hash and reveals nothing of the key. Storing and sending are done elsewhere.
"""

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from camserver.base.errors import DataUnusable

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is stored of a credential."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


@lru_cache(maxsize=16)
def key_id(key: bytes) -> str:
    """Names a key without revealing it."""
    return hashlib.sha256(b"camserver credential key\0" + key).hexdigest()[:16]


def seal(key: bytes, tenant_id: int, owner: str, plaintext: bytes) -> Sealed:
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plaintext, _bound_to(tenant_id, owner))
    return Sealed(key_id(key), nonce, sealed)


def open_sealed(key: bytes, tenant_id: int, owner: str, sealed: Sealed) -> bytes:
    if sealed.key_id != key_id(key):
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
