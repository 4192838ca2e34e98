"""Messages of the worker protocol against recorded samples: what they say is fixed, nothing else is understood."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput, Bug
from camserver.domain.workers import WorkerState
from camserver.wire.message import Message
from camserver.wire.worker import (
    CAMERAS_MAX,
    MESSAGE_MAX_BYTES,
    VERDICTS_MAX,
    CameraVerdict,
    Heartbeat,
    Held,
    Lost,
    Refused,
    Renewed,
    Report,
    Start,
    encode,
    parse_fault,
    parse_from_server,
    parse_from_worker,
)

SAMPLES = Path(__file__).parent / "samples"
PARSERS: dict[str, Callable[[str | bytes], Message]] = {
    "worker": parse_from_worker,
    "server": parse_from_server,
}
SAMPLE_FILES = sorted(path for side in PARSERS for path in (SAMPLES / side).glob("*.json"))
sample = pytest.mark.parametrize("path", SAMPLE_FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")


def parse(path: Path, text: str) -> Message:
    return PARSERS[path.parent.name](text)


def test_every_type_has_a_sample() -> None:
    types = {json.loads(path.read_text())["type"] for path in SAMPLE_FILES}
    assert types == {
        *("REGISTER", "HEARTBEAT", "ACK", "EVENT"),
        *("REGISTERED", "RENEWED", "START", "STOP", "RELOAD", "DRAIN", "LIVE_START", "LIVE_STOP"),
        *("ERRAND", "REFUSED"),
    }


@sample
def test_samples_round_trip(path: Path) -> None:
    message = parse(path, path.read_text())
    assert json.loads(encode(message)) == json.loads(path.read_text())
    assert parse(path, encode(message)) == message


@sample
def test_a_cut_off_message_is_refused(path: Path) -> None:
    text = path.read_text().rstrip()
    for end in range(0, len(text), 7):
        with pytest.raises(BadInput):
            parse(path, text[:end])


@sample
def test_an_unknown_field_or_type_is_refused(path: Path) -> None:
    value = json.loads(path.read_text())
    with pytest.raises(BadInput, match="Extra inputs"):
        parse(path, json.dumps({**value, "surprise": 1}))
    for kind in ("START" if path.parent.name == "worker" else "REGISTER", "start", None, 3):
        with pytest.raises(BadInput):
            parse(path, json.dumps({**value, "type": kind}))


def wrong_values(value: dict[str, Any]) -> list[dict[str, Any]]:
    """The message with each field in turn of a type it never has."""
    wrong: list[dict[str, Any]] = []
    for name, given_value in value.items():
        if name == "type":
            continue
        wrong.append({**value, name: {"not": ["this"]} if not isinstance(given_value, dict) else 7})
        if isinstance(given_value, int) and not isinstance(given_value, bool):
            wrong.append({**value, name: str(given_value)})
    return wrong


@sample
def test_a_field_of_the_wrong_type_is_refused(path: Path) -> None:
    for value in wrong_values(json.loads(path.read_text())):
        with pytest.raises(BadInput):
            parse(path, json.dumps(value))


@pytest.mark.parametrize("side", PARSERS)
@given(text=st.one_of(st.text(max_size=200), st.binary(max_size=200)))
def test_noise_is_refused_and_nothing_else_happens(side: str, text: str | bytes) -> None:
    with pytest.raises(BadInput):
        PARSERS[side](text)


def test_a_message_that_is_too_long_is_refused_unread() -> None:
    with pytest.raises(BadInput, match="longer than"):
        parse_from_worker(" " * (MESSAGE_MAX_BYTES + 1))
    with pytest.raises(BadInput, match="longer than"):
        parse_from_worker("あ" * (MESSAGE_MAX_BYTES // 2))
    huge = Report(event_type="spool_full", ts=1, boot_ms=1, payload={"text": "x" * MESSAGE_MAX_BYTES})
    with pytest.raises(Bug, match="EVENT message"):
        encode(huge)


def test_as_many_cameras_as_allowed_fit_into_a_heartbeat_and_its_answer() -> None:
    cameras = [f"{index:064d}" for index in range(CAMERAS_MAX)]
    generation = 10**9
    held = tuple(Held(camera_id=camera, generation=generation) for camera in cameras)
    lost = tuple(Lost(camera_id=camera, generation=generation, reason="unknown_camera") for camera in cameras)
    verdicts = tuple(
        CameraVerdict(camera_id=camera, captured_at=2 * 10**12, detected=False) for camera in cameras[:VERDICTS_MAX]
    )
    metrics = {f"metric_{index:03d}": 1e6 / 3 for index in range(64)}
    heartbeat = Heartbeat(
        worker_id="w" * 64,
        heartbeat_seq=10**9,
        boot_ms=10**12,
        state=WorkerState.RECONNECTING,
        metrics=metrics,
        renew=held,
    )
    assert parse_from_worker(encode(heartbeat)) == heartbeat
    common: dict[str, Any] = {"heartbeat_seq": 10**9, "ttl_ms": 10**6, "server_time": 2 * 10**12}
    for answer in (
        Renewed(renewed=held, verdicts=verdicts, **common),
        Renewed(lost=lost, **common),
    ):
        assert parse_from_server(encode(answer)) == answer
    with pytest.raises(BadInput, match="at most"):
        parse_from_worker(heartbeat.model_copy(update={"renew": held + held[:1]}).model_dump_json())


@pytest.mark.parametrize("camera_id", ["", "a b", "あ", "../x", "x" * 65, "cam\n", "~", ".x"])
def test_odd_camera_ids_are_refused(camera_id: str) -> None:
    value = json.loads((SAMPLES / "worker/event_pipeline_ready.json").read_text())
    with pytest.raises(BadInput):
        parse_from_worker(json.dumps({**value, "camera_id": camera_id}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    text = (SAMPLES / "worker/heartbeat.json").read_text().replace("3.5", number)
    with pytest.raises(BadInput):
        parse_from_worker(text)


def test_a_password_shows_itself_only_in_what_is_sent() -> None:
    text = (SAMPLES / "server/start.json").read_text()
    start = parse_from_server(text)
    assert isinstance(start, Start)
    assert start.source.password is not None
    assert start.source.password.reveal() == "sample-password"
    for shown in (repr(start), str(start), f"{start}", str(start.model_dump())):
        assert "sample-password" not in shown
        assert "viewer" not in repr(start)
    assert "sample-password" in encode(start)


def test_a_ticket_shows_itself_only_in_what_is_sent() -> None:
    start = parse_from_server((SAMPLES / "server/live_start.json").read_text())
    assert "sample-ticket" not in f"{start!r} {start}"
    assert "sample-ticket" in encode(start)


@pytest.mark.parametrize("url", ["http://server/x", "wss://", "wss://a b/", "file:///etc/passwd", ""])
def test_a_streamer_is_a_websocket(url: str) -> None:
    value = json.loads((SAMPLES / "server/live_start.json").read_text())
    with pytest.raises(BadInput, match="streamer_url"):
        parse_from_server(json.dumps({**value, "streamer_url": url}))


# What a worker must not say: recorded, and why each is refused.
REFUSED_SAMPLES = {
    "truncated": "Invalid JSON",
    "unknown_type": "does not match any of the expected tags",
    "unknown_field": "Extra inputs",
    "wrong_type": "valid integer",
    "not_an_object": "should be an object",
    "two_messages": "trailing characters",
}


def test_every_refused_sample_is_named() -> None:
    assert {path.stem for path in (SAMPLES / "refused").iterdir()} == set(REFUSED_SAMPLES)


@pytest.mark.parametrize(("name", "words"), REFUSED_SAMPLES.items())
def test_recorded_nonsense_is_refused_for_what_it_is(name: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        parse_from_worker((SAMPLES / "refused" / f"{name}.txt").read_bytes())


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    value = json.loads((SAMPLES / "server/start.json").read_text())
    value["source"]["password"] = {"oops": "sample-password"}
    value["source"]["url"] = ["sample-password"]
    with pytest.raises(BadInput) as refused:
        parse_from_server(json.dumps(value))
    assert "sample-password" not in refused.value.message


def test_a_refusal_does_not_grow_with_the_message() -> None:
    many = {"type": "ACK", **{f"field_{index}": 1 for index in range(2000)}}
    with pytest.raises(BadInput) as refused:
        parse_from_worker(json.dumps(many))
    Refused(error_code=refused.value.code, message=refused.value.message)


def test_the_payload_of_a_fault_is_checked() -> None:
    report = parse_from_worker((SAMPLES / "worker/event_camera_fault.json").read_text())
    assert isinstance(report, Report)
    fault = parse_fault(report.payload)
    assert (fault.fault, fault.failures, fault.message) == ("unauthorized", 2, "401")
    for wrong in ({}, {**report.payload, "fault": "sunshine"}, {**report.payload, "extra": 1}):
        with pytest.raises(BadInput, match="camera fault"):
            parse_fault(wrong)
