"""The upload that answers an errand: what it says is fixed, nothing else is understood."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from camserver.base.errors import BadInput
from camserver.wire.errands import (
    HEADER_MAX_BYTES,
    OBJECT_MAX_BYTES,
    ErrandHeader,
    ErrandRecorded,
    ErrandRefused,
    pack,
    parse_answer,
    unpack,
)

# Recorded: a header and the body it makes.
HEADER = (
    b'{"errand_id":"0199aa00-1111-7222-8333-444455557777","ok":true,"message":"","result":{"width":1920},'
    b'"content_type":"image/jpeg","bytes":4}'
)
BODY = len(HEADER).to_bytes(4, "big") + HEADER + b"jpeg"


def header(**changes: Any) -> ErrandHeader:
    return ErrandHeader.model_validate_json(json.dumps({**json.loads(HEADER), **changes}))


def test_the_recorded_body_is_understood_and_made_again() -> None:
    upload = unpack(BODY)
    assert (upload.header.result, upload.body) == ({"width": 1920}, b"jpeg")
    assert pack(upload.header, upload.body) == BODY


def test_a_body_cut_off_anywhere_or_too_long_is_refused() -> None:
    for end in range(len(BODY)):
        with pytest.raises(BadInput):
            unpack(BODY[:end])
    with pytest.raises(BadInput, match="does not hold"):
        unpack(BODY + b"x")


def test_a_header_that_claims_to_be_huge_is_refused_unread() -> None:
    with pytest.raises(BadInput, match="more than"):
        unpack((HEADER_MAX_BYTES + 1).to_bytes(4, "big") + b"{}")


@given(st.binary(max_size=300))
def test_noise_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        unpack(body)


@pytest.mark.parametrize(
    "changes",
    [
        {"content_type": ""},
        {"bytes": 0},
        {"content_type": "text/html"},
        {"bytes": OBJECT_MAX_BYTES + 1},
        {"errand_id": "../etc"},
        {"message": "x" * 256},
        {"ok": 1},
        {"surprise": 1},
    ],
)
def test_a_header_that_does_not_agree_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        header(**changes)


def test_a_header_and_bytes_that_differ_are_not_packed() -> None:
    with pytest.raises(BadInput, match="says 4 bytes but has 5"):
        pack(header(), b"12345")
    with pytest.raises(BadInput, match="more than"):
        pack(header(result={"text": "x" * HEADER_MAX_BYTES}), b"1234")


def test_answers_are_understood() -> None:
    recorded = parse_answer('{"result": "recorded", "repeat": true, "server_time": 5}')
    assert recorded == ErrandRecorded(repeat=True, server_time=5)
    refused = parse_answer('{"result": "refused", "reason": "it is over", "server_time": 5}')
    assert refused == ErrandRefused(reason="it is over", server_time=5)
    with pytest.raises(BadInput, match="not understood"):
        parse_answer('{"result": "perhaps"}')
