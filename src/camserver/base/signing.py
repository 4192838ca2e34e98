"""Signatures that others can check: Ed25519. Whoever has the public key can tell what this installation signed."""

import hashlib

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from camserver.base.errors import BadInput

ALGORITHM = "Ed25519"


def public_key(key: bytes) -> str:
    """The public half of a key of 32 bytes, as hex."""
    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw().hex()


def sign(key: bytes, data: bytes) -> str:
    return Ed25519PrivateKey.from_private_bytes(key).sign(data).hex()


def private_key_of(pem: bytes) -> bytes:
    """The 32 bytes of a key as `openssl genpkey -algorithm ed25519` writes it; BadInput when it is none."""
    try:
        key = load_pem_private_key(pem, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise BadInput(f"it is no private key in PEM without a passphrase ({type(error).__name__})") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadInput(f"it is a key of another kind than {ALGORITHM}")
    return key.private_bytes_raw()


def is_signed(public: str, signature: str, data: bytes) -> bool:
    """Whether `data` was signed with the key whose public half is given; whatever is no key or signature is not."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(public: str) -> str:
    """What people compare: the first half of the public key's hash."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()[:32]
