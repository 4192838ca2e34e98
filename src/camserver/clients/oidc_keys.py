"""A provider's keys, and ID tokens checked with them. No requests are made here.

Only signatures with a public key are accepted: neither unsigned tokens nor those signed with a secret, which could be
the public key itself. Whatever is wrong with a token is OidcRefused.
"""

from collections.abc import Sequence
from typing import Any, Final

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from camserver.domain.oidc import LEEWAY_SEC, Claims, Failure, is_meant_for, refused

PublicKey = RSAKey | ECKey | OKPKey

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
KEYS_MAX: Final = 100
TOKEN_MAX_CHARS: Final = 32_768
# A modulus of 2048 bits in base64url, and one of 16384: shorter ones are too weak, longer ones only cost time.
_MODULUS_CHARS: Final = range(342, 2732)
# What a library may say about hostile input, besides its own errors.
_MALFORMED: Final = (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def keys_of(document: Any) -> tuple[PublicKey, ...]:
    """The keys of a JWKS that can sign ID tokens; others are passed over."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise refused(Failure.AWAY, "the provider's keys are no JWKS")
    found = [_key(one) for one in listed[:KEYS_MAX]]
    return tuple(key for key in found if key is not None)


def _key(written: Any) -> PublicKey | None:
    if not isinstance(written, dict) or written.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    if written.get("use", "sig") != "sig":
        return None
    if written["kty"] == "RSA" and len(str(written.get("n", "")).rstrip("=")) not in _MODULUS_CHARS:
        return None
    try:
        key = JWKRegistry.import_key(written)
    except _MALFORMED:
        return None
    return key if isinstance(key, RSAKey | ECKey | OKPKey) else None


def key_id_of(id_token: str) -> str | None:
    """Which key the token says it is signed with; None when it does not say."""
    if len(id_token) > TOKEN_MAX_CHARS:
        raise refused(Failure.TOKEN, "the ID token is too long")
    try:
        key_id = jws.extract_compact(id_token.encode()).headers().get("kid")
    except _MALFORMED:
        raise refused(Failure.TOKEN, "the ID token is no signed token") from None
    if key_id is not None and not isinstance(key_id, str):
        raise refused(Failure.TOKEN, "the ID token names its key by something that is no text")
    return key_id


def find_key(keys: Sequence[PublicKey], key_id: str | None) -> PublicKey | None:
    """The key of that id; without one, the only key there is."""
    if key_id is None:
        return keys[0] if len(keys) == 1 else None
    return next((key for key in keys if key.get("kid") == key_id), None)


def checked_claims(id_token: str, key: PublicKey, issuer: str, client_id: str, nonce: str, now_ms: int) -> Claims:
    """What the token says, when it is the provider's, meant for us, of this sign-in, and of now."""
    wanted = jwt.JWTClaimsRegistry(
        now=now_ms // 1000,
        leeway=LEEWAY_SEC,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        claims = jwt.decode(id_token, key, algorithms=ALGORITHMS).claims
        wanted.validate(claims)
    except _MALFORMED as error:
        raise refused(Failure.TOKEN, f"the ID token is refused: {type(error).__name__} {str(error)[:200]}") from None
    if claims.get("nonce") != nonce:
        raise refused(Failure.TOKEN, "the ID token is of another sign-in: its nonce differs")
    if not is_meant_for(client_id, claims):
        raise refused(Failure.TOKEN, "the ID token was made for another client")
    return claims
