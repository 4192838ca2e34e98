"""Hostile keys and tokens: whatever they are, they are refused by name and nothing else happens."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.clients.oidc_keys import checked_claims, find_key, key_id_of, keys_of
from camserver.domain.oidc import Failure, OidcRefused
from tests.fakes.oidc.server import b64, jwk, sign

NOW_MS = 1_767_225_600_000
GOOD = {"iss": "i", "aud": "c", "sub": "s", "nonce": "n", "exp": NOW_MS // 1000 + 60, "iat": NOW_MS // 1000}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
[KEY] = keys_of({"keys": [jwk("first")]})


def check(token: str) -> Any:
    key_id_of(token)
    return checked_claims(token, KEY, "i", "c", "n", NOW_MS)


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except OidcRefused as error:
        return error.failure


def test_a_good_token_is_taken() -> None:
    assert check(sign(GOOD, "first"))["sub"] == "s"


@given(st.text(max_size=60) | st.builds("{}.{}.{}".format, *(ANY.map(lambda x: b64(json.dumps(x).encode())),) * 3))
def test_any_text_is_refused(text: str) -> None:
    with pytest.raises(OidcRefused) as caught:
        check(text)
    assert caught.value.failure is Failure.TOKEN


@given(ANY, st.sampled_from(sorted(GOOD)))
def test_a_signed_token_with_anything_in_a_claim_is_taken_or_refused(value: Any, name: str) -> None:
    try:
        claims = check(sign({**GOOD, name: value}, "first"))
    except OidcRefused:
        return
    assert name in ("sub", "exp", "iat") or claims[name] in (GOOD[name], [GOOD[name]])


@given(ANY, st.sampled_from(["kid", "typ", "crit", "b64", "jwk", "x5c", "jku"]))
def test_a_signed_token_with_anything_in_its_header_is_taken_or_refused(value: Any, name: str) -> None:
    assert outcome(lambda: check(sign(GOOD, "first", {name: value}))) in (GOOD, Failure.TOKEN)


@given(ANY)
def test_any_document_of_keys_is_read_or_refused(document: Any) -> None:
    for given_document in (document, {"keys": document}, {"keys": [document, {**jwk("first"), "n": document}]}):
        assert outcome(lambda written=given_document: len(keys_of(written))) in (0, Failure.AWAY)


def test_keys_that_are_weak_for_something_else_or_secret_are_passed_over() -> None:
    others = [jwk("first", use="enc"), jwk("first", n="AQAB"), {"kty": "oct", "k": "AAAA"}, {"kty": "RSA"}, 7]
    assert keys_of({"keys": others}) == ()
    both = keys_of({"keys": [jwk("first"), jwk("second")]})
    assert find_key(both, None) is None
    assert find_key(both, "second") is both[1]
    assert find_key(both, "third") is None
