"""What makes a push message unreadable for those who carry it, and ours for those who get it.

The text is encrypted for one browser (RFC 8291, content coding aes128gcm of RFC 8188), and the push service is shown
that the sender is the one the browser subscribed to (VAPID, RFC 8292). Nothing is sent here.
"""

import base64
import binascii
import json
import os
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from camserver.base.errors import BadInput

CURVE = ec.SECP256R1()
# The number of points of the curve: a private key is a number from 1 to one less.
_CURVE_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
POINT_BYTES = 65
AUTH_BYTES = 16
SALT_BYTES = 16
RECORD_BYTES = 4096
# One record: its header, the tag and the byte that ends the text come off.
TEXT_MAX_BYTES = RECORD_BYTES - (SALT_BYTES + 4 + 1 + POINT_BYTES) - 16 - 1
# Services refuse a token that is good for more than a day.
TOKEN_TTL_SEC = 12 * 3600


@dataclass(frozen=True, slots=True)
class BrowserKeys:
    """What a browser gives with its subscription."""

    p256dh: bytes  # a point of the curve, uncompressed
    auth: bytes = field(repr=False)  # shared with us alone


class ServerKey:
    """The key by which push services know this installation."""

    def __init__(self, seed: bytes) -> None:
        """`seed`: the secret's bytes; any 32 random ones make a key."""
        self._private = ec.derive_private_key(int.from_bytes(seed) % (_CURVE_ORDER - 1) + 1, CURVE)
        self.public = encoded(_point(self._private))

    def authorization(self, audience: str, contact: str, now_ms: int) -> str:
        """The header that shows who sends. `audience`: scheme and host of the push service."""
        claims = {"aud": audience, "exp": now_ms // 1000 + TOKEN_TTL_SEC, "sub": contact}
        signed = ".".join(encoded(_json(part)) for part in ({"typ": "JWT", "alg": "ES256"}, claims))
        r, s = decode_dss_signature(self._private.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        signature = encoded(r.to_bytes(32) + s.to_bytes(32))
        return f"vapid t={signed}.{signature}, k={self.public}"


def parse_keys(p256dh: str, auth: str) -> BrowserKeys:
    """BadInput when a browser can't have given these."""
    try:
        point, secret = decoded(p256dh), decoded(auth)
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, point)
    except (ValueError, binascii.Error):
        point, secret = b"", b""
    if len(point) != POINT_BYTES or len(secret) != AUTH_BYTES:
        raise BadInput(
            "the keys of the push subscription are not what browsers make (p256dh and auth, base64url); "
            "switch notifications off and on again in the browser",
            reason="push_keys",
        )
    return BrowserKeys(point, secret)


def seal_text(text: bytes, keys: BrowserKeys) -> bytes:
    """The body of a push message. Each has a key and a salt of its own."""
    return seal_with(text, keys, ec.generate_private_key(CURVE), os.urandom(SALT_BYTES))


def seal_with(text: bytes, keys: BrowserKeys, own: ec.EllipticCurvePrivateKey, salt: bytes) -> bytes:
    """`seal_text` with given key and salt, so that it can be held against the standard's example."""
    if len(text) > TEXT_MAX_BYTES:
        raise BadInput(f"the push message has {len(text)} bytes; at most {TEXT_MAX_BYTES} fit", reason="push_long")
    own_point = _point(own)
    shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(CURVE, keys.p256dh))
    secret = _derive(shared, keys.auth, b"WebPush: info\0" + keys.p256dh + own_point, 32)
    key = _derive(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derive(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_BYTES.to_bytes(4) + bytes([POINT_BYTES]) + own_point
    # 2 marks the last record; there is only one.
    return header + AESGCM(key).encrypt(nonce, text + b"\x02", None)


def _derive(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)


def _point(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _json(value: dict[str, object] | dict[str, str]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def encoded(value: bytes) -> str:
    """base64url without padding, as the standards want it."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def decoded(text: str) -> bytes:
    """Takes padding and the other alphabet too: browsers differ."""
    plain = text.replace("+", "-").replace("/", "_").rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
