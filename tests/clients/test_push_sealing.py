import json

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.clients.push_sealing import (
    CURVE,
    TEXT_MAX_BYTES,
    ServerKey,
    decoded,
    encoded,
    parse_keys,
    seal_text,
    seal_with,
)
from tests.fakes.push import Browser

# The example of RFC 8291, appendix A.
UA_PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
AS_PRIVATE = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
SEALED = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
    "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_standards_own_example() -> None:
    own = ec.derive_private_key(int.from_bytes(decoded(AS_PRIVATE)), CURVE)
    sealed = seal_with(b"When I grow up, I want to be a watermelon", parse_keys(UA_PUBLIC, AUTH), own, decoded(SALT))
    assert encoded(sealed) == SEALED


@given(st.binary(max_size=TEXT_MAX_BYTES))
def test_a_browser_opens_what_was_sealed_for_it(text: bytes) -> None:
    browser = Browser()
    sealed = seal_text(text, parse_keys(browser.p256dh, browser.auth))
    assert len(sealed) <= 4096
    assert browser.open(sealed) == text


def test_what_is_too_long_is_refused() -> None:
    browser = Browser()
    keys = parse_keys(browser.p256dh, browser.auth)
    seal_text(b"x" * TEXT_MAX_BYTES, keys)
    with pytest.raises(BadInput):
        seal_text(b"x" * (TEXT_MAX_BYTES + 1), keys)


@pytest.mark.parametrize(
    ("p256dh", "auth"),
    [
        ("", ""),
        ("not base64 !", AUTH),
        (UA_PUBLIC, "short"),
        (UA_PUBLIC, AUTH + "AAAA"),
        (encoded(b"\x04" + bytes(64)), AUTH),  # no point of the curve
        (encoded(b"\x02" + bytes(32)), AUTH),
        ("é", AUTH),
    ],
)
def test_keys_that_no_browser_makes_are_refused(p256dh: str, auth: str) -> None:
    with pytest.raises(BadInput):
        parse_keys(p256dh, auth)


def test_padding_and_the_other_alphabet_are_taken() -> None:
    assert parse_keys(UA_PUBLIC.replace("-", "+").replace("_", "/") + "=", AUTH + "==") == parse_keys(UA_PUBLIC, AUTH)


@given(st.binary(min_size=32, max_size=32))
def test_any_secret_makes_a_key_whose_signature_is_right(seed: bytes) -> None:
    key = ServerKey(seed)
    scheme, _, rest = key.authorization("https://push.example", "mailto:a@b.example", 1_700_000_000_000).partition(
        " "
    )
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert scheme == "vapid"
    assert fields["k"] == key.public
    signed, _, signature = fields["t"].rpartition(".")
    head, claims = (json.loads(decoded(part)) for part in signed.split("."))
    assert head == {"typ": "JWT", "alg": "ES256"}
    assert claims == {"aud": "https://push.example", "exp": 1_700_000_000 + 43_200, "sub": "mailto:a@b.example"}
    raw = decoded(signature)
    assert len(raw) == 64
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, decoded(key.public))
    public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))


def test_a_secret_always_makes_the_same_key() -> None:
    assert ServerKey(b"\x07" * 32).public == ServerKey(b"\x07" * 32).public
    assert ServerKey(b"\x07" * 32).public != ServerKey(b"\x08" * 32).public
    for extreme in (b"\x00" * 32, b"\xff" * 32):
        assert len(decoded(ServerKey(extreme).public)) == 65
