"""The analyzer's side of the contract: what it makes, its caller accepts; what it is asked, it checks."""

import contextlib
import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.analysis import Analysis, Box
from camserver.domain.vocabulary import SHIPPED_FILE, SHIPPED_VERSION, parse_vocabulary
from camserver.wire.analyzer import DiffInfo, parse_answer
from camserver.wire.analyzer_service import VOCABULARY_BYTES_MAX, make_answer, parse_fields, parse_vocabulary_put

TEXT = resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text("utf-8")
VOCABULARY = parse_vocabulary(json.loads(TEXT))
FIELDS = {"camera_id": "cam_1", "captured_at": "2026-01-01T00:00:00Z", "schema_version": SHIPPED_VERSION}
CAPTURED_AT_MS = 1_767_225_600_000

_shares = st.floats(0, 1)
_boxes = st.builds(
    lambda x, y, label, conf: Box(x * 0.9, y * 0.9, x * 0.9 + 0.1, y * 0.9 + 0.1, label, conf),
    _shares,
    _shares,
    st.sampled_from(["person", "car", None]),
    st.none() | _shares,
)
_analyses = st.builds(
    Analysis,
    st.just(SHIPPED_VERSION),
    st.booleans(),
    st.sampled_from(VOCABULARY.primary_events),
    st.sets(st.sampled_from([tag.id for tag in VOCABULARY.tags])).map(lambda tags: tuple(sorted(tags))),
    st.integers(0, 3),
    st.booleans(),
    st.none() | _shares,
    st.none() | st.integers(0, 100),
    st.lists(_boxes, max_size=25).map(tuple),
    st.just("model"),
    st.just("1"),
    st.integers(0, 10_000),
    st.lists(st.just("a warning"), max_size=2).map(tuple),
)


@given(_analyses)
def test_what_an_analyzer_says_its_caller_hears(analysis: Analysis) -> None:
    asked = parse_fields(FIELDS | {"request_id": "r"})
    body = make_answer(asked, analysis, DiffInfo(used_prev_image=False)).model_dump_json(exclude_none=True)
    assert parse_answer(body.encode(), "cam_1", CAPTURED_AT_MS, "r", VOCABULARY) == analysis


def test_defaults_of_a_request() -> None:
    asked = parse_fields(FIELDS)
    assert (asked.profile, asked.return_bboxes, asked.request_id) == ("standard", True, None)
    assert not asked.hints.known().night


def test_hints_that_are_used() -> None:
    hints = {"time_band": "night", "excluded_objects": ["car"], "thresholds": {"person": 0.7}, "network_zone": "vpn"}
    known = parse_fields(FIELDS | {"hints_json": json.dumps(hints)}).hints.known()
    assert (known.night, known.excluded, dict(known.thresholds)) == (True, {"car"}, {"person": 0.7})


def test_hints_beside_the_contract() -> None:
    mask, shelf = [[0, 0], [0.5, 0], [0.5, 0.12344]], [[0.1, 0.1], [0.2, 0.1], [0.2, 0.2]]
    hints = {
        "expected_objects": ["car"],
        "privacy_masks": [mask],
        "shelf_roi": shelf,
        "prev_captured_at": FIELDS["captured_at"],
    }
    asked = parse_fields(FIELDS | {"hints_json": json.dumps(hints)})
    known = asked.hints.known()
    assert known.expected == frozenset({"car"})
    assert known.masks == (((0, 0), (0.5, 0), (0.5, 0.1234)),)
    assert known.shelf == ((0.1, 0.1), (0.2, 0.1), (0.2, 0.2))
    assert asked.since_previous_ms == 0
    assert parse_fields(FIELDS).since_previous_ms is None


@pytest.mark.parametrize(
    "hints",
    [
        {"prev_captured_at": "yesterday"},
        {"privacy_masks": [[[0, 0], [1, 1]]]},
        {"shelf_roi": [[0, 0], [1, 1], [2, 0]]},
        {"shelf_roi": [[0, 0, 0]] * 3},
    ],
)
def test_hints_that_make_no_sense_are_refused(hints: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        parse_fields(FIELDS | {"hints_json": json.dumps(hints)})


@pytest.mark.parametrize(
    ("before", "since_ms"),
    [("2025-12-31T23:59:58.500Z", 1500), ("2025-12-31T23:59:59", 1000), ("2026-01-01T00:00:00.250+00:00", -250)],
)
def test_the_time_since_the_picture_before(before: str, since_ms: int) -> None:
    fields = FIELDS | {"captured_at": "2026-01-01T00:00:00.000Z"}
    assert (
        parse_fields(fields | {"hints_json": json.dumps({"prev_captured_at": before})}).since_previous_ms == since_ms
    )


@given(st.dictionaries(st.sampled_from([*FIELDS, "hints_json", "profile", "return_bboxes", "x"]), st.text()))
def test_any_fields_are_read_or_refused(fields: dict[str, str]) -> None:
    # Any other error fails the test.
    with contextlib.suppress(BadInput):
        parse_fields(FIELDS | fields)


@given(st.binary(max_size=200))
def test_any_body_is_a_vocabulary_or_refused(body: bytes) -> None:
    with pytest.raises(BadInput):
        parse_vocabulary_put(body)


def test_the_shipped_vocabulary_is_well_below_the_bound() -> None:
    assert len(TEXT.encode()) * 10 < VOCABULARY_BYTES_MAX


def test_capitals_in_hints_do_not_matter() -> None:
    hints = {"excluded_objects": ["Cat"], "expected_objects": ["CAR"], "thresholds": {"Person": 0.6}}
    known = parse_fields(FIELDS | {"hints_json": json.dumps(hints)}).hints.known()
    assert (known.excluded, known.expected, known.thresholds) == ({"cat"}, {"car"}, {"person": 0.6})
