"""Camera credentials at rest: AES-256-GCM, bound to the camera they belong to.

The associated data is tenant|camera, so a row copied to another camera does not open. The key id tells which key
sealed a value; it is a hash and reveals nothing of the key. Storing and sending are done elsewhere.
"""

import hashlib
import os
from dataclasses import dataclass

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


def key_id(key: bytes) -> str:
    """Names a key without revealing it."""
    return hashlib.sha256(b"camserver credential key\0" + key).hexdigest()[:16]


def seal(key: bytes, tenant_id: int, camera_id: str, plaintext: bytes) -> Sealed:
    nonce = os.urandom(NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, plaintext, _bound_to(tenant_id, camera_id))
    return Sealed(key_id(key), nonce, sealed)


def open_sealed(key: bytes, tenant_id: int, camera_id: str, sealed: Sealed) -> bytes:
    if sealed.key_id != key_id(key):
        raise DataUnusable(
            f"the credentials of camera {camera_id} were sealed with another key ({sealed.key_id}); restore that "
            "credential_key file from a backup, or enter the camera's password again"
        )
    try:
        return AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, _bound_to(tenant_id, camera_id))
    except InvalidTag:
        raise DataUnusable(
            f"the stored credentials of camera {camera_id} are damaged or belong to another camera; enter the "
            "camera's password again"
        ) from None


def _bound_to(tenant_id: int, camera_id: str) -> bytes:
    return f"{tenant_id}|{camera_id}".encode()
