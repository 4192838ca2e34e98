"""The upload's body and its answers against recorded samples."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from camserver.base.errors import BadInput
from camserver.wire.looks import (
    FULL_MAX_BYTES,
    HEADER_MAX_BYTES,
    INFER_MAX_BYTES,
    ErrorBody,
    LookHeader,
    LookRefused,
    Recorded,
    pack,
    parse_answer,
    parse_header,
    unpack,
)

SAMPLES = Path(__file__).parent / "samples" / "look"
HEADERS = [SAMPLES / "header_ok.json", SAMPLES / "header_timeout.json"]


def header(**changes: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(HEADERS[0].read_text())
    return {**value, **changes}


@pytest.mark.parametrize("path", HEADERS, ids=lambda path: path.stem)
def test_headers_round_trip(path: Path) -> None:
    parsed = parse_header(path.read_text())
    assert json.loads(parsed.model_dump_json()) == json.loads(path.read_text())


def test_the_recorded_body_is_understood_and_made_again() -> None:
    body = (SAMPLES / "upload.bin").read_bytes()
    upload = unpack(body)
    assert (upload.infer, upload.full) == (b"infer-jpeg--", b"full-jpeg--")
    assert upload.header == parse_header(HEADERS[0].read_text())
    assert unpack(pack(upload.header, upload.infer, upload.full)) == upload


def test_a_body_cut_off_anywhere_or_too_long_is_refused() -> None:
    body = (SAMPLES / "upload.bin").read_bytes()
    for end in range(len(body)):
        with pytest.raises(BadInput):
            unpack(body[:end])
    with pytest.raises(BadInput, match="does not hold"):
        unpack(body + b"x")


def test_a_header_that_claims_to_be_huge_is_refused_unread() -> None:
    with pytest.raises(BadInput, match="more than"):
        unpack((HEADER_MAX_BYTES + 1).to_bytes(4, "big") + b"{}")
    with pytest.raises(BadInput, match="cut off"):
        unpack(HEADER_MAX_BYTES.to_bytes(4, "big") + b"{}")


@given(st.binary(max_size=300))
def test_noise_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        unpack(body)


@given(infer=st.binary(min_size=1, max_size=200), full=st.binary(max_size=200))
def test_any_pictures_come_back_as_they_were(infer: bytes, full: bytes) -> None:
    made = LookHeader.model_validate_json(json.dumps(header(infer_bytes=len(infer), full_bytes=len(full))))
    upload = unpack(pack(made, infer, full))
    assert (upload.header, upload.infer, upload.full) == (made, infer, full)


def test_a_header_that_disagrees_with_its_pictures_is_not_sent() -> None:
    with pytest.raises(BadInput, match="bytes of pictures"):
        pack(parse_header(HEADERS[0].read_text()), b"infer", b"full")


@pytest.mark.parametrize(
    "changes",
    [
        {"seq": 0},
        {"generation": 0},
        {"seq": "1"},
        {"camera_id": "no such/name"},
        {"status": "fine"},
        {"verdict": "maybe"},
        {"status": "error", "verdict": "skip"},  # without an error_code
        {"status": "error", "error_code": "x"},  # but to be analyzed
        {"infer_bytes": 0, "full_bytes": 0},  # to be analyzed without a picture
        {"infer_bytes": -1},
        {"infer_bytes": INFER_MAX_BYTES + 1},
        {"full_bytes": FULL_MAX_BYTES + 1},
        {"diff_ratio": 1.5},
        {"luma_delta": 300},
        {"blur_score": -1},
        {"infer_hash64_hex": "xyz"},
        {"boot_id": ""},
        {"error_message": "x" * 256},
        {"tenant_id": 3},
    ],
    ids=str,
)
def test_headers_that_can_not_be_true_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="not understood"):
        parse_header(json.dumps(header(**changes)))


def test_answers_round_trip() -> None:
    recorded = parse_answer((SAMPLES / "recorded.json").read_text())
    refused = parse_answer((SAMPLES / "refused.json").read_text())
    assert isinstance(recorded, Recorded)
    assert isinstance(refused, LookRefused)
    for answer, name in ((recorded, "recorded"), (refused, "refused")):
        assert json.loads(answer.model_dump_json()) == json.loads((SAMPLES / f"{name}.json").read_text())
    error = ErrorBody.model_validate_json((SAMPLES / "error.json").read_text())
    assert error.error_code == "store_unavailable"


@pytest.mark.parametrize("text", ["", "{}", '{"result": "fine"}', "[]", '{"result": "recorded"}', "<html>"])
def test_an_answer_that_is_none_is_no_acknowledgement(text: str) -> None:
    with pytest.raises(BadInput, match="answer to an upload"):
        parse_answer(text)


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError):
        parse_header(HEADERS[0].read_text()).seq = 2
