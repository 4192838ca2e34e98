"""A browser's side of Web Push: its keys, and opening what was sealed for it (RFC 8188, RFC 8291)."""

import base64
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _expand(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """HKDF by hand: one block of it is enough here."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, info + b"\x01", hashlib.sha256)[:length]


class Browser:
    def __init__(self) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)
        self._point = self._private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @property
    def p256dh(self) -> str:
        return b64(self._point)

    @property
    def auth(self) -> str:
        return b64(self._auth)

    def open(self, body: bytes) -> bytes:
        """The text of a message; an error when it was not sealed for this browser."""
        salt, record_bytes, id_bytes = body[:16], int.from_bytes(body[16:20]), body[20]
        sender, record = body[21 : 21 + id_bytes], body[21 + id_bytes :]
        if len(record) > record_bytes:
            raise ValueError("more than one record")
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self._private.exchange(ec.ECDH(), point)
        secret = _expand(shared, self._auth, b"WebPush: info\0" + self._point + sender, 32)
        key = _expand(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _expand(secret, salt, b"Content-Encoding: nonce\0", 12)
        padded = AESGCM(key).decrypt(nonce, record, None)
        text = padded.rstrip(b"\0")
        if not text.endswith(b"\x02"):
            raise ValueError("the last record is not marked as such")
        return text[:-1]
