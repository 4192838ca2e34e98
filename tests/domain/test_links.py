import base64
import hashlib
import hmac
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import Bug, Forbidden
from camserver.domain.links import LinkKeys, Signature, key_id, may_be_linked, opened, sign

FRAME = "0198a1b2-0000-7000-8000-000000000001"
OBJECTS = ("full", "infer")
KEYS = LinkKeys(b"a key of this server")
EXP = 1_767_225_600

secrets = st.binary(min_size=1, max_size=64)
parts = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True)
times = st.integers(1, 10**12 - 1)


def test_the_signature_is_exactly_as_the_contract_says() -> None:
    signature = sign(KEYS, FRAME, "full", EXP)
    digest = hmac.new(b"a key of this server", f"{FRAME}|full|{EXP}".encode(), hashlib.sha256).digest()
    assert signature.sig == base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert (signature.exp, len(signature.kid)) == (str(EXP), 8)


@given(secrets, parts, st.sampled_from(OBJECTS), times, st.integers(1, 10**9))
def test_a_link_opens_its_object_until_it_expires_and_never_after(
    secret: bytes, frame_uuid: str, linked: str, exp: int, left_ms: int
) -> None:
    keys = LinkKeys(secret)
    signature = sign(keys, frame_uuid, linked, exp)
    assert opened(keys, frame_uuid, signature, OBJECTS, exp * 1000 - left_ms) == linked
    with pytest.raises(Forbidden, match="over"):
        opened(keys, frame_uuid, signature, OBJECTS, exp * 1000 + left_ms - 1)


@given(st.data())
def test_nothing_of_a_link_can_be_changed(data: st.DataObject) -> None:
    signature = sign(KEYS, FRAME, "infer", EXP)
    field = data.draw(st.sampled_from(["exp", "sig", "kid", "frame"]))
    whole = FRAME if field == "frame" else getattr(signature, field)
    changed = data.draw(st.one_of(st.text(max_size=60), _one_changed(whole)).filter(lambda text: text != whole))
    frame_uuid = changed if field == "frame" else FRAME
    given_ = signature if field == "frame" else replace(signature, **{field: changed})
    with pytest.raises(Forbidden, match="not made by this server"):
        opened(KEYS, frame_uuid, given_, OBJECTS, 0)


def _one_changed(text: str) -> st.SearchStrategy[str]:
    """The text with one character changed, added or gone."""
    place = st.integers(0, len(text) - 1)
    letter = st.sampled_from("0aZ-_=| +é")
    return st.one_of(
        st.builds(lambda at, new: text[:at] + new + text[at + 1 :], place, letter),
        st.builds(lambda at, new: text[:at] + new + text[at:], place, letter),
        st.builds(lambda at: text[:at] + text[at + 1 :], place),
    )


@given(secrets, secrets, parts, times)
def test_both_keys_open_while_one_replaces_the_other(old: bytes, new: bytes, frame_uuid: str, exp: int) -> None:
    before = sign(LinkKeys(old), frame_uuid, "full", exp)
    rotating = LinkKeys(new, old)
    assert opened(rotating, frame_uuid, before, OBJECTS, 0) == "full"
    after = sign(rotating, frame_uuid, "full", exp)
    assert after.kid == key_id(new)
    assert opened(rotating, frame_uuid, after, OBJECTS, 0) == "full"
    # HMAC pads short keys with zeros, so only those that differ by more are different keys.
    if old.rstrip(b"\0") != new.rstrip(b"\0"):
        with pytest.raises(Forbidden):
            opened(LinkKeys(new), frame_uuid, before, OBJECTS, 0)


@given(parts, parts, parts, parts, times, times)
def test_different_links_have_different_signatures(
    frame: str, other_frame: str, linked: str, other_linked: str, exp: int, other_exp: int
) -> None:
    first = sign(KEYS, frame, linked, exp).sig
    second = sign(KEYS, other_frame, other_linked, other_exp).sig
    assert (first == second) == ((frame, linked, exp) == (other_frame, other_linked, other_exp))


def test_an_object_the_frame_does_not_have_is_not_opened() -> None:
    signature = sign(KEYS, FRAME, "clip", EXP)
    with pytest.raises(Forbidden):
        opened(KEYS, FRAME, signature, OBJECTS, 0)
    assert opened(KEYS, FRAME, signature, (*OBJECTS, "clip"), 0) == "clip"


@pytest.mark.parametrize(
    "exp", ["", "0", "-1", "01767225600", "1e9", "１７６７２２５６００", "9" * 13, " 1767225600"]
)
def test_a_malformed_time_is_refused(exp: str) -> None:
    sig = base64.urlsafe_b64encode(hmac.digest(KEYS.current, f"{FRAME}|full|{exp}".encode(), "sha256")).decode()
    with pytest.raises(Forbidden):
        opened(KEYS, FRAME, Signature(exp, sig.rstrip("="), key_id(KEYS.current)), OBJECTS, 0)


@pytest.mark.parametrize(
    ("frame", "linked"), [("a|b", "full"), ("", "full"), ("f", "x|y"), ("../x", "full"), ("f", "")]
)
def test_what_could_be_read_in_two_ways_is_not_signed(frame: str, linked: str) -> None:
    with pytest.raises(Bug):
        sign(KEYS, frame, linked, EXP)


def test_keys_do_not_show() -> None:
    assert "key of this server" not in repr(LinkKeys(KEYS.current, KEYS.current))


def test_cases_are_not_linked() -> None:
    assert [may_be_linked(name) for name in ("normal", "quarantine", "case")] == [True, True, False]
