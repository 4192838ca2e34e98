"""The contract, call by call and status by status, against the service over HTTP."""

import asyncio
import io
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from PIL import Image

from camserver.clients.analyzer import AnalyzerClient, Question
from camserver.domain.detections import Detection
from camserver.domain.vocabulary import SHIPPED_VERSION
from camserver.services.analyzer import app
from camserver.services.analyzer.detector import Model
from camserver.wire.analyzer import IMAGE_BYTES_MAX, parse_answer
from tests.rig.pictures import jpeg, jpeg_of_bytes, png
from tests.services.analyzer.rig import (
    CAPTURED_AT,
    CAPTURED_AT_MS,
    DOCUMENT,
    PERSON,
    SHARP,
    RunningAnalyzer,
    ScriptedDetector,
    form,
    running_analyzer,
    shipped,
)

CAR = Detection("car", 0.7, 0.5, 0.5, 0.9, 0.9)


# --- the small calls ---


async def test_health_and_capabilities(empty: RunningAnalyzer) -> None:
    status, said, _ = await empty.ask("GET", "/healthz")
    assert (status, said["status"]) == (200, "ok")
    assert said["uptime_sec"] >= 0
    status, said, _ = await empty.ask("GET", "/v1/capabilities")
    assert status == 200
    assert said == {
        "api_version": "v1",
        "runtime": "scripted",
        "model": {"name": "script", "version": "1"},
        "supported_primary_events": [
            "none",
            "hazard",
            "camera_issue",
            "human",
            "animal",
            "object_missing",
            "vehicle",
            "unknown",
        ],
        "max_image_bytes": IMAGE_BYTES_MAX,
        "recommended_infer_widths": [640, 960],
    }
    assert set(said["supported_primary_events"]) <= set(DOCUMENT["primary_events"])


async def test_the_vocabulary_is_put_and_given_back(empty: RunningAnalyzer) -> None:
    status, said, _ = await empty.ask("GET", "/v1/schema")
    assert (status, said["error"]) == (404, "not_found")
    body = {"schema_version": SHIPPED_VERSION, "schema": DOCUMENT}
    status, said, _ = await empty.ask("PUT", "/v1/schema", json=body)
    assert (status, said) == (200, {"schema_version": SHIPPED_VERSION, "status": "accepted"})
    status, said, _ = await empty.ask("GET", "/v1/schema")
    assert status == 200
    assert said["schema"] == DOCUMENT
    assert said["schema_version"] == SHIPPED_VERSION
    assert said["received_at"].endswith("+00:00")


def changed(**changes: Any) -> dict[str, Any]:
    return {"schema_version": SHIPPED_VERSION, "schema": DOCUMENT} | changes


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"no json", "JSON"),
        (b"[]", "dictionary"),
        (b"[" * 100_000, "nested"),
        ({"schema": DOCUMENT}, "schema_version"),
        ({"schema_version": SHIPPED_VERSION}, "schema"),
        (changed(schema=[]), "schema"),
        (changed(schema_version="other"), "other"),
        (changed(schema=DOCUMENT | {"tags": []}), "tags"),
        (changed(schema=DOCUMENT | {"primary_events": ["human"]}), "primary_events"),
        (changed(schema=DOCUMENT | {"owner": "half \ud800"}), "half a character"),
        (changed(schema=DOCUMENT | {"owner": float("nan")}), "NaN"),
        (b" " * 5_000_000, "bytes"),
    ],
)
async def test_a_wrong_vocabulary_is_refused_and_the_old_one_stays(
    analyzer: RunningAnalyzer, body: Any, word: str
) -> None:
    request = {"data": io.BytesIO(body)} if isinstance(body, bytes) else {"json": body}
    status, said, _ = await analyzer.ask("PUT", "/v1/schema", **request)
    assert (status, said["error"]) == (400, "bad_request")
    assert word in said["message"]
    assert (await analyzer.analyze())[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("GET", "/nowhere", (404, "not_found")), ("GET", "/v1/analyze", (405, "method_not_allowed"))],
)
async def test_other_paths_answer_in_the_contracts_form(
    empty: RunningAnalyzer, method: str, path: str, expected: tuple[int, str]
) -> None:
    status, said, _ = await empty.ask(method, path)
    assert (status, said["error"]) == expected
    assert said["message"]


async def test_what_nobody_expected_is_told_in_the_contracts_form(
    analyzer: RunningAnalyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(app, "parse_fields", broken)
    status, said, response = await analyzer.ask("POST", "/v1/analyze", data=form())
    assert (status, said["error"]) == (500, "internal")
    assert "log" in said["message"]
    assert "secret" not in str(said)
    assert response.content_type == "application/json"
    monkeypatch.undo()
    assert (await analyzer.analyze())[0] == 200


# --- 200 ---


async def test_an_answer_has_every_field_and_passes_the_callers_check(analyzer: RunningAnalyzer) -> None:
    analyzer.detector.finds = [PERSON, CAR]
    status, said = await analyzer.analyze(request_id="r-1")
    assert status == 200
    body = json.dumps(said).encode()
    assert said.pop("processing_ms") >= 0
    assert said == {
        "schema_version": SHIPPED_VERSION,
        "camera_id": "cam_1",
        "captured_at": CAPTURED_AT,
        "request_id": "r-1",
        "analyzed": True,
        "detected": True,
        "primary_event": "human",
        "tags": ["count.single"],
        "severity": 0,
        "unknown_flag": False,
        "confidence": 0.9,
        "count_hint": 1,
        "bboxes": [
            {"x1": 0.1, "y1": 0.1, "x2": 0.3, "y2": 0.8, "label": "person", "conf": 0.9},
            {"x1": 0.5, "y1": 0.5, "x2": 0.9, "y2": 0.9, "label": "car", "conf": 0.7},
        ],
        "diff": {"used_prev_image": False, "diff_ratio": 1.0, "luma_delta": 255.0},
        "model_info": {"name": "script", "version": "1"},
    }
    analysis = parse_answer(body, "cam_1", CAPTURED_AT_MS, "r-1", shipped())
    assert analysis.primary_event == "human"


async def test_nothing_found(analyzer: RunningAnalyzer) -> None:
    status, said = await analyzer.analyze()
    assert status == 200
    assert (said["detected"], said["primary_event"], said["tags"], said["severity"]) == (False, "none", [], 0)
    assert said["bboxes"] == []
    assert "request_id" not in said


async def test_the_servers_own_client_is_served(empty: RunningAnalyzer) -> None:
    client = AnalyzerClient(empty.url, analyze_timeout_sec=60, schema_timeout_sec=60, health_timeout_sec=60)
    try:
        await client.check_health()
        await client.put_vocabulary(SHIPPED_VERSION, DOCUMENT)
        empty.detector.finds = [PERSON]
        hints = {"time_band": "night", "network_zone": "local"}
        question = Question("cam_1", CAPTURED_AT_MS, "r-1", SHARP, previous=SHARP, hints=hints)
        analysis = await client.analyze(question, shipped())
        assert (analysis.tags, analysis.severity) == (("count.single",), 2)
        assert analysis.model_name == "script"
        assert (await client.capabilities()).api_version == "v1"
    finally:
        await client.close()


async def test_boxes_can_be_left_out(analyzer: RunningAnalyzer) -> None:
    analyzer.detector.finds = [PERSON]
    for said_so in ("false", "0", "False"):
        status, said = await analyzer.analyze(return_bboxes=said_so)
        assert status == 200
        assert "bboxes" not in said
        assert said["count_hint"] == 1


async def test_the_fast_profile_is_the_smaller_models(tmp_path: Path) -> None:
    smaller = ScriptedDetector([CAR], model=Model("scripted", "small", "1"))
    async with running_analyzer(tmp_path, [ScriptedDetector([PERSON])], [smaller]) as analyzer:
        await analyzer.put_vocabulary()
        for profile, name, event in (("fast", "small", "vehicle"), ("standard", "script", "human")):
            status, said = await analyzer.analyze(profile=profile)
            assert (status, said["model_info"]["name"], said["primary_event"]) == (200, name, event)


async def test_hints_count(analyzer: RunningAnalyzer) -> None:
    analyzer.detector.finds = [PERSON, CAR]
    status, said = await analyzer.analyze(hints_json='{"time_band": "night", "location_type": "yard", "new": 1}')
    assert (status, said["severity"]) == (200, 2)
    status, said = await analyzer.analyze(hints_json='{"excluded_objects": ["person"]}')
    assert (status, said["primary_event"]) == (200, "vehicle")
    status, said = await analyzer.analyze(hints_json='{"thresholds": {"human": 0.95, "vehicle": 0.1}}')
    assert (status, said["primary_event"]) == (200, "vehicle")


async def test_the_previous_picture_is_compared(analyzer: RunningAnalyzer) -> None:
    dark, light = (jpeg(shade=shade, size=(320, 200)) for shade in (100, 140))
    status, said = await analyzer.analyze(light, prev_infer_image=dark)
    assert status == 200
    assert said["diff"] == {"used_prev_image": True, "diff_ratio": 1.0, "luma_delta": 40.0}
    # Of another size it can't be compared.
    status, said = await analyzer.analyze(light, prev_infer_image=jpeg(shade=100, size=(320, 100)))
    assert said["diff"]["used_prev_image"] is False


@pytest.mark.parametrize(
    ("picture", "tags"),
    [
        (jpeg(shade=10), ["camera.blur", "camera.dark"]),
        (jpeg(shade=255), ["camera.blur", "camera.glare"]),
        (jpeg(shade=128), ["camera.blur"]),
    ],
    ids=["dark", "glare", "blur"],
)
async def test_a_poor_picture_is_a_camera_issue(analyzer: RunningAnalyzer, picture: bytes, tags: list[str]) -> None:
    status, said = await analyzer.analyze(picture)
    assert status == 200
    assert (said["detected"], said["primary_event"], said["tags"]) == (True, "camera_issue", tags)
    assert said["severity"] == 1


@pytest.mark.parametrize(
    "picture",
    [png(scene=5), jpeg(scene=5), jpeg_of_bytes(IMAGE_BYTES_MAX), png(size=(1, 1)), jpeg(size=(4000, 3))],
    ids=["png", "jpeg", "5 MB", "one pixel", "thin"],
)
async def test_pictures_within_the_contract_are_analyzed(analyzer: RunningAnalyzer, picture: bytes) -> None:
    assert (await analyzer.analyze(picture))[0] == 200


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "LA", "1", "I;16"])
async def test_every_kind_of_png_is_read(analyzer: RunningAnalyzer, mode: str) -> None:
    out = io.BytesIO()
    Image.new(mode, (40, 30)).save(out, "PNG")
    assert (await analyzer.analyze(out.getvalue()))[0] == 200


# --- 400 ---


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_bomb(width: int, height: int) -> bytes:
    """A few bytes that announce that many pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def gif() -> bytes:
    out = io.BytesIO()
    Image.new("L", (8, 8)).save(out, "GIF")
    return out.getvalue()


NO_PICTURES = {
    "empty": b"",
    "text": b"not a picture",
    "half": SHARP[: len(SHARP) // 2],
    "head": SHARP[:20],
    "half png": png(scene=5)[:-30],
    "gif": gif(),
    "25 Mpx": png_bomb(5001, 5000),
    "225 Mpx": png_bomb(15_000, 15_000),
    "3600 Mpx": png_bomb(60_000, 60_000),
}
TOO_LARGE = {"5 MB + 1": jpeg_of_bytes(IMAGE_BYTES_MAX + 1), "20 MB": bytes(20_000_000)}


@pytest.mark.parametrize("picture", [*NO_PICTURES.values(), *TOO_LARGE.values()], ids=[*NO_PICTURES, *TOO_LARGE])
async def test_what_is_no_picture_is_a_bad_request(analyzer: RunningAnalyzer, picture: bytes) -> None:
    status, said = await analyzer.analyze(picture)
    assert (status, said["error"]) == (400, "bad_request")
    assert "infer_image" in said["message"]
    assert (await analyzer.analyze())[0] == 200


@pytest.mark.parametrize("picture", NO_PICTURES.values(), ids=NO_PICTURES)
async def test_a_previous_picture_that_is_none_is_done_without(analyzer: RunningAnalyzer, picture: bytes) -> None:
    status, said = await analyzer.analyze(SHARP, prev_infer_image=picture)
    assert (status, said["diff"]["used_prev_image"]) == (200, False)
    (warning,) = said["warnings"]
    assert warning.startswith("prev_infer_image")
    assert warning.endswith("it was done without")


async def test_a_previous_picture_that_is_too_large_is_a_bad_request(analyzer: RunningAnalyzer) -> None:
    status, said = await analyzer.analyze(SHARP, prev_infer_image=jpeg_of_bytes(IMAGE_BYTES_MAX + 1))
    assert (status, said["error"]) == (400, "bad_request")


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"camera_id": ""}, "camera_id"),
        ({"camera_id": "x" * 129}, "camera_id"),
        ({"camera_id": "a\0b"}, "camera_id"),
        ({"captured_at": ""}, "captured_at"),
        ({"captured_at": "yesterday"}, "captured_at"),
        ({"captured_at": "2026-01-01T00:00:00+09:00"}, "captured_at"),
        ({"schema_version": ""}, "schema_version"),
        ({"profile": "slow"}, "profile"),
        ({"return_bboxes": "perhaps"}, "return_bboxes"),
        ({"hints_json": "{"}, "hints_json"),
        ({"hints_json": "[]"}, "hints"),
        ({"hints_json": '{"excluded_objects": "car"}'}, "excluded_objects"),
        ({"hints_json": '{"thresholds": {"car": 2}}'}, "thresholds"),
        ({"hints_json": '{"thresholds": {"\\ud800": 2}}'}, "thresholds"),
        ({"hints_json": "[" * 20_000}, "nested"),
        ({"request_id": "x" * 100_000}, "request_id"),
    ],
)
async def test_a_wrong_field_is_named(analyzer: RunningAnalyzer, fields: dict[str, str], word: str) -> None:
    status, said = await analyzer.analyze(**fields)
    assert (status, said["error"]) == (400, "bad_request")
    assert word in said["message"]


@pytest.mark.parametrize(
    "captured_at", ["2026-01-01T00:00:00", "2026-01-01T00:00:00.123456+00:00", "20260101T000000Z"]
)
async def test_a_time_is_echoed_as_it_came(analyzer: RunningAnalyzer, captured_at: str) -> None:
    status, said = await analyzer.analyze(captured_at=captured_at)
    assert (status, said["captured_at"]) == (200, captured_at)


async def test_fields_the_contract_does_not_name_are_left_alone(analyzer: RunningAnalyzer) -> None:
    assert (await analyzer.analyze(new_field="x", hints="y", another=b"bytes"))[0] == 200


async def test_a_body_that_is_no_form(analyzer: RunningAnalyzer) -> None:
    for request in (
        {"json": {"camera_id": "cam_1"}},
        {"data": b"x", "headers": {"Content-Type": "multipart/form-data"}},
        {"data": b"x", "headers": {"Content-Type": "multipart/form-data; boundary=b"}},
        {"data": b"--b\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=b"}},
        {"data": b"--b\r\n\r\nx\r\n--b--\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=b"}},
        {"data": b"", "headers": {"Content-Type": f"multipart/form-data; boundary={'b' * 5000}"}},
    ):
        status, said, _ = await analyzer.ask("POST", "/v1/analyze", **request)
        assert (status, said["error"]) == (400, "bad_request"), request


async def test_a_picture_is_missing_or_comes_twice(analyzer: RunningAnalyzer) -> None:
    status, said = await analyzer.analyze(None, prev_infer_image=SHARP)
    assert (status, said["message"]) == (400, "infer_image is missing")
    twice = form()
    twice.add_field("infer_image", SHARP, filename="b.jpg")
    status, said, _ = await analyzer.ask("POST", "/v1/analyze", data=twice)
    assert (status, said["message"]) == (400, "infer_image is in the form twice")


async def test_too_many_parts(analyzer: RunningAnalyzer) -> None:
    status, said = await analyzer.analyze(**{f"field_{number}": "x" for number in range(40)})
    assert status == 400
    assert "parts" in said["message"]


async def test_an_endless_body_costs_its_connection(analyzer: RunningAnalyzer) -> None:
    _, writer = await asyncio.open_connection(*analyzer.url.removeprefix("http://").split(":"))
    head = b"POST /v1/analyze HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    writer.write(head + b"Content-Type: multipart/form-data; boundary=b\r\n\r\n")
    piece = b"100000\r\n" + bytes(0x100000) + b"\r\n"

    async def send() -> None:
        while True:
            writer.write(piece)
            await writer.drain()

    with pytest.raises(ConnectionError):
        await asyncio.wait_for(send(), 60)
    writer.transport.abort()
    assert (await analyzer.analyze())[0] == 200


# --- 409 ---


async def test_without_a_vocabulary_and_with_another(empty: RunningAnalyzer) -> None:
    status, said = await empty.analyze()
    assert (status, said["error"]) == (409, "schema_mismatch")
    await empty.put_vocabulary()
    assert (await empty.analyze())[0] == 200
    status, said = await empty.analyze(schema_version="2031-01-01.1")
    assert (status, said["error"]) == (409, "schema_mismatch")
    assert "2031-01-01.1" in said["message"]
    assert SHIPPED_VERSION in said["message"]


async def test_a_vocabulary_with_fewer_words_is_kept_to(empty: RunningAnalyzer) -> None:
    smaller = DOCUMENT | {
        "schema_version": "small",
        "primary_events": ["none", "unknown"],
        "tags": [tag for tag in DOCUMENT["tags"] if tag["id"] != "count.single"],
    }
    await empty.put_vocabulary(smaller)
    empty.detector.finds = [PERSON]
    status, said = await empty.analyze(schema_version="small")
    assert status == 200
    assert (said["primary_event"], said["tags"]) == ("unknown", [])


async def test_a_restart_keeps_the_vocabulary(tmp_path: Path) -> None:
    async with running_analyzer(tmp_path) as first:
        await first.put_vocabulary()
        _, before, _ = await first.ask("GET", "/v1/schema")
    async with running_analyzer(tmp_path) as second:
        _, after, _ = await second.ask("GET", "/v1/schema")
        assert after == before
        assert (await second.analyze())[0] == 200


# --- 500 ---


async def test_a_failing_detector_is_our_fault_and_tells_nothing(analyzer: RunningAnalyzer) -> None:
    analyzer.detector.error = RuntimeError("the device at /dev/secret fell off")
    status, said = await analyzer.analyze()
    assert (status, said["error"]) == (500, "internal")
    assert "secret" not in said["message"]
    analyzer.detector.error = None
    assert (await analyzer.analyze())[0] == 200


async def test_a_cut_off_body_leaves_its_place(analyzer: RunningAnalyzer) -> None:
    for _ in range(40):  # more than there are places
        host, port = analyzer.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, port)
        writer.write(b"POST /v1/analyze HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n")
        writer.write(b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b")
        await writer.drain()
        writer.transport.abort()
    async with aiohttp.ClientSession() as session:
        for _ in range(100):
            async with session.post(analyzer.url + "/v1/analyze", data=form()) as answer:
                if answer.status == 200:
                    return
    raise AssertionError("places of requests that were cut off stay taken")
