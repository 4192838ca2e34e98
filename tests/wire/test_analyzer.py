"""What an analyzer may answer: the contract, field by field, and nothing else."""

import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis, Box
from camserver.wire.analyzer import (
    BOXES_MAX,
    TAGS_MAX,
    WARNINGS_MAX,
    AnalyzeAnswer,
    BrokenAnswer,
    parse_answer,
    result_json,
    without_repeats,
)
from tests.domain.build import T0, shipped_vocabulary
from tests.fakes.analyzer import BREAKS
from tests.wire.liars import Lie, lies, truths, twice_told

VOCABULARY = shipped_vocabulary()
CAMERA_ID, REQUEST_ID = "cam_2f_19", "0198c0de-0000-7000-8000-000000000001"
BOX = {"x1": 0.1, "y1": 0.2, "x2": 0.3, "y2": 0.4, "label": "person", "conf": 0.9}
WHOLE: dict[str, Any] = {
    "schema_version": VOCABULARY.version,
    "camera_id": CAMERA_ID,
    "captured_at": "2026-01-01T00:00:00.000Z",
    "analyzed": True,
    "detected": True,
    "primary_event": "human",
    "tags": ["count.single", "behavior.loitering"],
    "severity": 2,
    "unknown_flag": False,
    "request_id": REQUEST_ID,
    "confidence": 0.75,
    "count_hint": 1,
    "bboxes": [BOX],
    "diff": {"used_prev_image": False, "diff_ratio": 1.0, "luma_delta": -255.0},
    "processing_ms": 12.6,
    "model_info": {"name": "yolo", "version": "11n"},
    "warnings": ["dark"],
}
REQUIRED = (
    "schema_version",
    "camera_id",
    "captured_at",
    "analyzed",
    "detected",
    "primary_event",
    "tags",
    "severity",
    "unknown_flag",
)
OPTIONAL = tuple(name for name in WHOLE if name not in REQUIRED)


def parse(document: object) -> Analysis:
    return parse_body(json.dumps(document).encode())


def parse_body(body: bytes) -> Analysis:
    return parse_answer(body, CAMERA_ID, T0, REQUEST_ID, VOCABULARY)


def with_values(**changes: object) -> dict[str, Any]:
    return {**copy.deepcopy(WHOLE), **changes}


def why_not(document: object) -> str:
    with pytest.raises(BrokenAnswer) as refused:
        parse(document)
    return refused.value.message


def test_a_whole_answer_is_understood() -> None:
    assert parse(WHOLE) == Analysis(
        schema_version=VOCABULARY.version,
        detected=True,
        primary_event="human",
        tags=("behavior.loitering", "count.single"),
        severity=2,
        unknown_flag=False,
        confidence=0.75,
        count_hint=1,
        boxes=(Box(0.1, 0.2, 0.3, 0.4, "person", 0.9),),
        model_name="yolo",
        model_version="11n",
        processing_ms=13,
        warnings=("dark",),
    )


def test_the_least_answer_is_understood() -> None:
    least = {name: WHOLE[name] for name in REQUIRED}
    assert parse(least) == Analysis(
        schema_version=VOCABULARY.version,
        detected=True,
        primary_event="human",
        tags=("behavior.loitering", "count.single"),
        severity=2,
        unknown_flag=False,
    )
    assert parse(least) == parse({**least, **dict.fromkeys(OPTIONAL)}), "null is the same as left out"


def test_these_tests_know_every_field_of_the_contract() -> None:
    assert set(WHOLE) == set(AnalyzeAnswer.model_fields)


# Every field, wrong in every way that its type has.

WRONG_TEXT = [7, True, [], {}, 1.5, "x" * 129, "a\x00b", "half \ud800 of one"]
WRONG_FLAG = ["true", 1, 0, [], {}, 1.0]
WRONG_SHARE = ["0.5", True, [], {}, -0.01, 1.01, 10**400, float("nan"), float("inf"), -float("inf")]
WRONG_COUNT = ["1", True, [], {}, 1.5, -1, 2**63]
WRONG: dict[str, list[Any]] = {
    "schema_version": [*WRONG_TEXT, "1999-01-01.1", ""],
    "camera_id": [*WRONG_TEXT, "cam_of_somebody_else", ""],
    "captured_at": [*WRONG_TEXT, "1999-01-01T00:00:00Z", "yesterday", "", "2026-01-01T00:00:02Z"],
    "analyzed": [*WRONG_FLAG, False],
    "detected": WRONG_FLAG,
    "primary_event": [*WRONG_TEXT, "ghost", "HUMAN", ""],
    "tags": [
        "count.single",
        {},
        7,
        [7],
        [None],
        [["count.single"]],
        ["ghost.friendly"],
        ["count.single"] * (TAGS_MAX + 1),
    ],
    "severity": [*WRONG_COUNT, 4, 2.0],
    "unknown_flag": WRONG_FLAG,
    "request_id": [*WRONG_TEXT, "of_somebody_else", ""],
    "confidence": WRONG_SHARE,
    "count_hint": [*WRONG_COUNT, 100_001],
    "bboxes": ["person", {}, 7, ["person"], [None], [[]], [{}], [BOX] * (BOXES_MAX + 1)],
    "diff": [
        "much",
        7,
        [],
        {"used_prev_image": "no"},
        {"diff_ratio": 2},
        {"luma_delta": 256},
        {"luma_delta": "dark"},
    ],
    "processing_ms": ["5 ms", True, [], {}, -1, float("nan"), float("inf"), 86_400_001],
    "model_info": ["yolo", 7, [], {"name": 7}, {"version": 1.1}, {"name": "x" * 129}, {"version": "\x1b[2J"}],
    "warnings": ["dark", {}, 7, [7], [None], ["x" * 1001], ["\x00"], ["dark"] * (WARNINGS_MAX + 1)],
}
WRONG_IN_BOX: dict[str, list[Any]] = {
    **{corner: [*WRONG_SHARE, None] for corner in ("x1", "y1", "x2", "y2")},
    "label": WRONG_TEXT,
    "conf": WRONG_SHARE,
}


def shown(value: object) -> str:
    return f"{type(value).__name__}-{str(value)[:20]}".encode("unicode_escape").decode()


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, id=f"{name}-{shown(value)}") for name, values in WRONG.items() for value in values],
)
def test_a_wrong_field_is_refused_by_name(name: str, value: object) -> None:
    assert name in why_not(with_values(**{name: value}))


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_field_is_refused_by_name(name: str) -> None:
    document = with_values()
    del document[name]
    assert name in why_not(document)
    assert name in why_not(with_values(**{name: None}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}-{shown(value)}")
        for name, values in WRONG_IN_BOX.items()
        for value in values
    ],
)
def test_a_wrong_value_in_a_box_is_refused_with_its_place(name: str, value: object) -> None:
    assert f"bboxes.1.{name}" in why_not(with_values(bboxes=[BOX, {**BOX, name: value}]))


@pytest.mark.parametrize("change", [{"x1": 0.3}, {"x1": 0.31}, {"y1": 0.4}, {"y2": 0.1}])
def test_a_box_that_is_turned_or_flat_is_refused(change: dict[str, float]) -> None:
    assert "bboxes.0" in why_not(with_values(bboxes=[{**BOX, **change}]))


@pytest.mark.parametrize("breach", sorted(BREAKS))
def test_each_breach_of_the_fake_analyzer_is_caught(breach: str) -> None:
    message = why_not(BREAKS[breach](copy.deepcopy(WHOLE)))
    name = breach.partition(":")[0]
    assert name in message or name == "answer"


@given(st.data())
def test_whatever_is_put_in_a_fields_place_is_understood_or_refused_by_name(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    anything = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    )
    document = with_values(**{name: data.draw(anything)})
    reason, analysis = None, None
    try:
        analysis = parse(document)
    except BrokenAnswer as refused:
        reason = refused.message
    if analysis is None:
        assert name in str(reason)
    else:
        assert json.loads(result_json(analysis))["schema_version"] == VOCABULARY.version


# Bodies that are no answer at all.


@given(st.binary(max_size=200))
@example(b"")
@example(b"\xff\xfe{}")
@example(b'{"schema_version": ')
@example(b"null")
def test_any_bytes_are_refused_and_never_crash(body: bytes) -> None:
    with pytest.raises(BrokenAnswer):
        parse_body(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        json.dumps(WHOLE).encode()[:-1] + b', "extra": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["lists", "objects", "in an unknown field"],
)
def test_nesting_without_end_is_refused(body: bytes) -> None:
    with pytest.raises(BrokenAnswer, match="nested too deeply"):
        parse_body(body)


def test_a_number_without_end_is_refused() -> None:
    digits = b"9" * 100_000
    with pytest.raises(BrokenAnswer):
        parse_body(json.dumps(WHOLE).encode().replace(b'"severity": 2', b'"severity": ' + digits))


@pytest.mark.parametrize(
    ("twice", "name"),
    [('"severity": 2, "severity": 0', "severity"), ('"severity": 2, "extra": {"a": 1, "a": 2}', "a")],
)
def test_a_name_that_comes_twice_is_refused(twice: str, name: str) -> None:
    body = json.dumps(WHOLE).replace('"severity": 2', twice)
    with pytest.raises(BrokenAnswer, match=f"'{name}' twice"):
        parse_body(body.encode())


class CountedName(str):
    """A name that counts how often names are compared or hashed."""

    work = 0
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        CountedName.work += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        CountedName.work += 1
        return str.__hash__(self)


def test_finding_the_name_among_a_hundred_thousand_takes_one_pass() -> None:
    """A liar that repeats its last name must not hold the loop up for minutes."""
    names = [CountedName(f"n{number}") for number in range(100_000)]
    CountedName.work = 0
    with pytest.raises(BrokenAnswer, match="'n99999' twice"):
        without_repeats([(name, 0) for name in (*names, CountedName("n99999"))])
    assert CountedName.work < 10 * len(names)


def test_fields_beyond_the_contract_are_left_out() -> None:
    more: dict[str, Any] = {"track_id": 7, "masks": [[0.5] * 40], "note": "\x00", "nested": {"deep": [None]}}
    document = with_values(**more)
    document["bboxes"][0].update(more)
    document["model_info"].update(more)
    document["diff"].update(more)
    assert parse(document) == parse(WHOLE)


# What is tolerated on purpose.


@pytest.mark.parametrize(
    "echo",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T09:00:00+09:00",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.000000Z",
        "2025-12-31T23:59:59.999Z",
    ],
)
def test_an_echoed_time_may_be_written_in_another_way(echo: str) -> None:
    assert parse(with_values(captured_at=echo)) == parse(WHOLE)


def test_whole_numbers_are_numbers_and_repeated_tags_count_once() -> None:
    analysis = parse(
        with_values(confidence=1, tags=["count.single"] * 3, bboxes=[{"x1": 0, "y1": 0, "x2": 1, "y2": 1}])
    )
    assert analysis.confidence == 1.0
    assert analysis.tags == ("count.single",)
    assert analysis.boxes == (Box(0, 0, 1, 1),)


def test_what_is_kept_of_an_answer_fits_every_database() -> None:
    kept = result_json(parse(with_values(warnings=["暗い", "emoji 🙂", "line\nbreak"])))
    assert kept.isascii()
    assert "\\u0000" not in kept
    assert json.loads(kept) == {
        "schema_version": VOCABULARY.version,
        "bboxes": [BOX],
        "model_info": {"name": "yolo", "version": "11n"},
        "processing_ms": 13,
        "warnings": ["暗い", "emoji 🙂", "line\nbreak"],
    }


# Liars.

FIXED = {name: WHOLE[name] for name in ("schema_version", "camera_id", "captured_at", "request_id")}


@given(truths(VOCABULARY, FIXED))
def test_whoever_tells_the_truth_is_understood(document: dict[str, Any]) -> None:
    analysis = parse(document)
    assert set(analysis.tags) == set(document["tags"])
    assert len(analysis.boxes) == len(document.get("bboxes", ()))
    json.loads(result_json(analysis))


@given(lies(VOCABULARY, FIXED))
def test_every_liar_is_refused_by_the_name_of_the_lie(lie: Lie) -> None:
    message = why_not(lie.document)
    assert lie.about in message
    assert len(message) < 1000


@given(twice_told(VOCABULARY, FIXED))
def test_whoever_says_two_things_says_none(told: tuple[str, bytes]) -> None:
    name, body = told
    with pytest.raises(BrokenAnswer, match="twice") as refused:
        parse_body(body)
    assert name in refused.value.message


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "shift_jis"])
def test_another_encoding_than_utf_8_is_refused(encoding: str) -> None:
    body = json.dumps(with_values(warnings=["暗い"]), ensure_ascii=False).encode(encoding)
    with pytest.raises(BrokenAnswer, match="not JSON"):
        parse_body(body)


def test_detected_without_an_event_opens_none_and_is_no_lie() -> None:
    """Decision 18 names it: only a primary event, or something unknown, opens an event."""
    for detected in (True, False):
        assert parse(with_values(primary_event="none", detected=detected)).detected is detected
