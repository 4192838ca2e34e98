"""From detections to tags, events and doubt: the contract's rules as tables, and what holds for anything found."""

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.detections import (
    ALL_EVENTS,
    CARRIED,
    MEANINGS,
    Category,
    Detection,
    DetectionPolicy,
    Hints,
    Measured,
    Quality,
    events_of,
    interpret,
    people,
    quality_tags,
    unknown_names,
)
from camserver.domain.vocabulary import SHIPPED_FILE, Vocabulary, parse_vocabulary

DOCUMENT = json.loads(resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text("utf-8"))
VOCABULARY = parse_vocabulary(DOCUMENT)
POLICY = DetectionPolicy()
GOOD = Quality(blur_score=5, mean_luma=120, bright_share=0.0)
DARK = Quality(blur_score=5, mean_luma=10, bright_share=0.0)

NO_HINTS = Hints()

LEFT = (0.1, 0.1, 0.3, 0.8)
MIDDLE = (0.4, 0.2, 0.6, 0.9)
RIGHT = (0.7, 0.1, 0.9, 0.8)


def seen(label: str, score: float = 0.8, place: tuple[float, float, float, float] = LEFT) -> Detection:
    return Detection(label, score, *place)


def said(
    *found: Detection, quality: Quality = GOOD, hints: Hints = NO_HINTS
) -> tuple[str, tuple[str, ...], int, bool]:
    analysis = interpret(found, quality, hints, VOCABULARY, POLICY)
    return analysis.primary_event, analysis.tags, analysis.severity, analysis.unknown_flag


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], ("none", (), 0, False)),
        ([seen("chair"), seen("tv", 0.99, RIGHT)], ("none", (), 0, False)),
        ([seen("person")], ("human", ("count.single",), 0, False)),
        ([seen("person"), seen("person", 0.5, RIGHT)], ("human", ("count.multiple",), 1, False)),
        ([seen("person"), seen("person", 0.39, RIGHT)], ("human", ("count.single",), 0, False)),
        ([seen("dog")], ("animal", ("animal.dog",), 1, False)),
        ([seen("cat"), seen("bird", 0.6, RIGHT)], ("animal", ("animal.bird", "animal.cat"), 1, False)),
        ([seen("bird")], ("animal", ("animal.bird",), 0, False)),
        ([seen("horse")], ("animal", ("animal.unknown",), 1, False)),
        ([seen("deer")], ("animal", ("animal.deer",), 2, False)),
        ([seen("car")], ("vehicle", (), 0, False)),
        ([seen("smoke", 0.9)], ("hazard", ("hazard.smoke_like",), 3, False)),
        # The order of primary events.
        ([seen("car", 0.9), seen("person", 0.6, RIGHT)], ("human", ("count.single",), 0, False)),
        ([seen("car", 0.9), seen("dog", 0.6, RIGHT)], ("animal", ("animal.dog",), 1, False)),
        ([seen("dog", 0.9), seen("person", 0.6, RIGHT)], ("human", ("animal.dog", "count.single"), 1, False)),
        (
            [seen("person", 0.9), seen("fire", 0.8, RIGHT)],
            ("hazard", ("count.single", "hazard.flame_like"), 3, False),
        ),
        # Doubt: low confidence, two names for one place, a hazard that is not sure.
        ([seen("person", 0.45)], ("human", ("count.single", "reason.low_confidence"), 0, True)),
        ([seen("person", 0.5)], ("human", ("count.single",), 0, False)),
        ([seen("person", 0.45), seen("person", 0.7, RIGHT)], ("human", ("count.multiple",), 1, False)),
        ([seen("person", 0.7), seen("dog", 0.65)], ("human", ("animal.dog", "count.single"), 1, True)),
        ([seen("dog", 0.7), seen("person", 0.65)], ("human", ("animal.dog", "count.single"), 1, True)),
        ([seen("person", 0.8), seen("dog", 0.6)], ("human", ("count.single",), 0, False)),
        ([seen("dog", 0.8), seen("person", 0.6)], ("animal", ("animal.dog",), 1, False)),
        ([seen("person", 0.7), seen("dog", 0.65, RIGHT)], ("human", ("animal.dog", "count.single"), 1, False)),
        ([seen("smoke", 0.69)], ("hazard", ("hazard.smoke_like",), 3, True)),
    ],
)
def test_what_is_said(found: list[Detection], expected: tuple[str, tuple[str, ...], int, bool]) -> None:
    assert said(*found) == expected


def test_one_thing_with_two_names_is_counted_once() -> None:
    analysis = interpret([seen("car", 0.6), seen("truck", 0.56)], GOOD, Hints(), VOCABULARY, POLICY)
    assert (analysis.count_hint, [box.label for box in analysis.boxes]) == (1, ["car"])
    assert not analysis.unknown_flag


@pytest.mark.parametrize(
    ("label", "tag"),
    [
        ("backpack", "carry.backpack"),
        ("handbag", "carry.bag"),
        ("suitcase", "carry.bag"),
        ("umbrella", "carry.umbrella"),
    ],
)
def test_carried_is_what_touches_a_person(label: str, tag: str) -> None:
    person = seen("person", 0.8, MIDDLE)
    worn = seen(label, 0.5, (0.55, 0.3, 0.65, 0.5))
    analysis = interpret([person, worn], GOOD, Hints(), VOCABULARY, POLICY)
    assert tag in analysis.tags
    assert [box.label for box in analysis.boxes] == ["person", label]
    assert analysis.count_hint == 1
    assert said(person, seen(label, 0.5, RIGHT)) == ("human", ("count.single",), 0, False)
    assert said(worn) == ("none", (), 0, False)


@pytest.mark.parametrize(
    ("quality", "tags"),
    [
        (GOOD, ()),
        (Quality(50.0, 120, 0), ()),
        (Quality(50.1, 120, 0), ("camera.blur",)),
        (Quality(5, 30.0, 0), ()),
        (Quality(5, 29.9, 0), ("camera.dark",)),
        (Quality(5, 240, 0.8), ()),
        (Quality(5, 240, 0.81), ("camera.glare",)),
        (Quality(100, 5, 0), ("camera.blur", "camera.dark")),
    ],
)
def test_quality_by_the_contracts_numbers(quality: Quality, tags: tuple[str, ...]) -> None:
    assert quality_tags(quality) == tags
    if tags:
        assert said(quality=quality) == ("camera_issue", tags, 1, False)


def test_whoever_is_recognized_in_the_dark_is_a_person_first() -> None:
    assert said(seen("person"), quality=DARK) == ("human", ("camera.dark", "count.single"), 1, False)


def test_a_camera_issue_has_neither_confidence_nor_count() -> None:
    analysis = interpret([], DARK, Hints(), VOCABULARY, POLICY)
    assert (analysis.detected, analysis.confidence, analysis.count_hint, analysis.boxes) == (True, None, None, ())


def test_a_person_at_night_is_severe_and_nothing_else_is() -> None:
    night = Hints(night=True)
    assert said(seen("person"), hints=night)[2] == 2
    assert said(seen("fire", 0.9), seen("person", 0.8, RIGHT), hints=night)[2] == 3
    assert said(seen("car"), hints=night)[2] == 0


@pytest.mark.parametrize("name", ["bird", "animal", "animal.bird"])
def test_what_is_excluded_is_not_there(name: str) -> None:
    assert said(seen("bird"), seen("car", 0.7, RIGHT), hints=Hints(excluded=frozenset({name})))[0] == "vehicle"


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        ({"person": 0.9}, "none"),
        ({"human": 0.9}, "none"),
        ({"human": 0.9, "person": 0.5}, "human"),  # the label is the more special name
        ({"vehicle": 0.9}, "human"),
    ],
)
def test_a_threshold_of_the_caller_counts(thresholds: dict[str, float], expected: str) -> None:
    assert said(seen("person", 0.6), hints=Hints(thresholds=thresholds))[0] == expected


@pytest.mark.parametrize("name", ["car", "vehicle"])
def test_what_is_expected_is_no_event_by_itself(name: str) -> None:
    hints = Hints(expected=frozenset({name}))
    assert said(seen("car", 0.45), hints=hints) == ("none", (), 0, False)
    analysis = interpret([seen("car", 0.9), seen("dog", 0.6, RIGHT)], GOOD, hints, VOCABULARY, POLICY)
    assert (analysis.primary_event, analysis.tags, analysis.count_hint) == ("animal", ("animal.dog",), 1)
    assert [box.label for box in analysis.boxes] == ["car", "dog"], "what else is there is shown"


def test_an_expected_person_has_neither_tags_nor_severity() -> None:
    hints = Hints(night=True, expected=frozenset({"human"}))
    worn = seen("backpack", 0.5, (0.15, 0.3, 0.25, 0.5))
    more = Measured(people_tags=frozenset({"top_color.red"}))
    analysis = interpret([seen("person"), worn, seen("dog", 0.6, RIGHT)], GOOD, hints, VOCABULARY, POLICY, more)
    assert (analysis.primary_event, analysis.tags, analysis.severity) == ("animal", ("animal.dog",), 1)
    assert people([seen("person"), seen("person", 0.3, RIGHT)], Hints(), POLICY) == (seen("person"),)
    assert people([seen("person")], hints, POLICY) == ()


@pytest.mark.parametrize("name", ["camera.dark", "camera_issue"])
@pytest.mark.parametrize("kind", ["expected", "excluded"])
def test_a_picture_that_may_be_dark_is_neither_event_nor_tag(kind: str, name: str) -> None:
    hints = Hints(**{kind: frozenset({name})})
    assert said(quality=DARK) == ("camera_issue", ("camera.dark",), 1, False)
    assert said(quality=DARK, hints=hints) == ("none", (), 0, False)
    assert said(seen("person"), quality=DARK, hints=hints) == ("human", ("count.single",), 0, False)


def test_another_fault_of_the_picture_is_told_all_the_same() -> None:
    poor = Quality(blur_score=80, mean_luma=10, bright_share=0.0)
    assert said(quality=poor, hints=Hints(expected=frozenset({"camera.dark"})))[:2] == (
        "camera_issue",
        ("camera.blur",),
    )


@pytest.mark.parametrize("name", ["camera.moved", "camera_issue"])
def test_a_camera_that_is_expected_to_turn(name: str) -> None:
    moved = Measured(tampering_tags=frozenset({"camera.moved"}))
    analysis = interpret([], GOOD, Hints(expected=frozenset({name})), VOCABULARY, POLICY, moved)
    assert (analysis.detected, analysis.tags) == (False, ())


@pytest.mark.parametrize("kind", ["expected", "excluded"])
@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("count.multiple", ("carry.umbrella", "reason.low_confidence", "top_color.red")),
        ("top_color.red", ("carry.umbrella", "count.multiple", "reason.low_confidence")),
        ("carry.umbrella", ("count.multiple", "reason.low_confidence", "top_color.red")),
        ("umbrella", ("count.multiple", "reason.low_confidence", "top_color.red")),
        ("reason.low_confidence", ("carry.umbrella", "count.multiple", "top_color.red")),
    ],
)
def test_a_tag_of_people_can_be_left_out_by_name(kind: str, name: str, tags: tuple[str, ...]) -> None:
    found = [seen("person", 0.45), seen("person", 0.45, RIGHT), seen("umbrella", 0.8, LEFT)]
    measured = Measured(people_tags=frozenset({"top_color.red"}))
    hints = Hints(**{kind: frozenset({name})})
    analysis = interpret(found, GOOD, hints, VOCABULARY, POLICY, measured)
    assert (analysis.primary_event, analysis.tags, analysis.unknown_flag) == ("human", tags, True)
    assert len(analysis.boxes) == (2 if kind == "excluded" and "umbrella" in name else 3)


def test_what_is_expected_of_a_picture_is_nothing_on_a_shelf() -> None:
    hints = Hints(expected=frozenset({"camera.dark", "camera_issue", "bottle", "animal.bird"}))
    assert hints.expected_things == {"bottle", "animal.bird"}


def test_a_doubt_about_what_is_expected_is_none() -> None:
    hints = Hints(expected=frozenset({"animal", "human"}))
    analysis = interpret(
        [seen("person", 0.7), seen("dog", 0.65), seen("car", 0.9, RIGHT)], GOOD, hints, VOCABULARY, POLICY
    )
    assert (analysis.primary_event, analysis.unknown_flag) == ("vehicle", False)


@pytest.mark.parametrize(
    ("found", "measured", "expected"),
    [
        # A covered or moved camera is an issue whatever is found.
        (
            [],
            Measured(tampering_tags=frozenset({"camera.occluded"})),
            ("camera_issue", ("camera.occluded",), 2, False),
        ),
        (
            [seen("person")],
            Measured(tampering_tags=frozenset({"camera.moved"})),
            ("camera_issue", ("camera.moved", "count.single"), 2, False),
        ),
        # Something gone stands behind people and before vehicles.
        ([], Measured(is_missing=True), ("object_missing", ("object_missing.suspected",), 2, False)),
        ([seen("car")], Measured(is_missing=True), ("object_missing", ("object_missing.suspected",), 2, False)),
        (
            [seen("person")],
            Measured(is_missing=True),
            ("human", ("count.single", "object_missing.suspected"), 2, False),
        ),
        # What is said of people needs people.
        (
            [seen("person")],
            Measured(people_tags=frozenset({"behavior.running", "top_color.blue"})),
            ("human", ("behavior.running", "count.single", "top_color.blue"), 1, False),
        ),
        ([seen("car")], Measured(people_tags=frozenset({"top_color.blue"})), ("vehicle", (), 0, False)),
    ],
)
def test_what_was_measured_counts(
    found: list[Detection], measured: Measured, expected: tuple[str, tuple[str, ...], int, bool]
) -> None:
    analysis = interpret(found, GOOD, Hints(), VOCABULARY, POLICY, measured)
    assert (analysis.primary_event, analysis.tags, analysis.severity, analysis.unknown_flag) == expected


@pytest.mark.parametrize("name", ["camera.moved", "camera_issue"])
def test_a_camera_that_turns_by_itself_can_be_left_alone(name: str) -> None:
    moved = Measured(tampering_tags=frozenset({"camera.moved"}))
    analysis = interpret([], GOOD, Hints(excluded=frozenset({name})), VOCABULARY, POLICY, moved)
    assert not analysis.detected


def test_every_word_is_in_the_shipped_vocabulary() -> None:
    tags = {meaning.tag for meaning in MEANINGS.values() if meaning.tag} | set(CARRIED.values())
    assert not [tag for tag in tags if not VOCABULARY.has(tag)]
    assert {str(category) for category in Category} <= set(VOCABULARY.primary_events)


def test_no_label_or_tag_speaks_of_origin() -> None:
    words = " ".join([*MEANINGS, *CARRIED, *(meaning.tag or "" for meaning in MEANINGS.values())])
    assert not [word for word in ("race", "ethnic", "nation", "skin") if word in words]


_places = st.tuples(*[st.floats(0, 1)] * 4).filter(lambda p: p[0] < p[2] and p[1] < p[3])
_found = st.lists(
    st.builds(
        lambda label, score, place: Detection(label, score, *place),
        st.sampled_from([*MEANINGS, *CARRIED, "chair"]),
        st.floats(0, 1),
        _places,
    ),
    max_size=12,
)
_quality = st.builds(Quality, st.floats(0, 100), st.floats(0, 255), st.floats(0, 1))
_hints = st.builds(
    Hints,
    st.booleans(),
    st.frozensets(st.sampled_from([*MEANINGS, *Category]), max_size=3),
    st.dictionaries(st.sampled_from([*MEANINGS, *Category]), st.floats(0, 1), max_size=3),
    st.frozensets(st.sampled_from([*MEANINGS, *Category]), max_size=3),
)
_measured = st.builds(
    Measured,
    st.frozensets(st.sampled_from(["top_color.red", "behavior.running"])),
    st.frozensets(st.sampled_from(["camera.moved", "camera.occluded"])),
    st.booleans(),
)
_vocabularies = st.sets(st.sampled_from(VOCABULARY.tags)).map(
    lambda tags: Vocabulary("some", ("none", "unknown", "human", "vehicle"), tuple(tags))
)


@given(_found, _quality, _hints, st.one_of(st.just(VOCABULARY), _vocabularies), _measured)
def test_whatever_is_found_the_answer_is_coherent(
    found: list[Detection], quality: Quality, hints: Hints, vocabulary: Vocabulary, measured: Measured
) -> None:
    analysis = interpret(found, quality, hints, vocabulary, POLICY, measured)
    assert analysis.primary_event in vocabulary.primary_events
    assert all(vocabulary.has(tag) for tag in analysis.tags)
    assert list(analysis.tags) == sorted(set(analysis.tags))
    assert analysis.detected == (analysis.primary_event != "none")
    assert analysis.detected or not (analysis.unknown_flag or analysis.tags or analysis.severity or analysis.boxes)
    defaults = [tag.severity_default for tag in map(vocabulary.tag, analysis.tags) if tag is not None]
    assert analysis.severity >= max(defaults, default=0)
    assert not {"count.single", "count.multiple"} <= set(analysis.tags)
    labels = [box.label for box in analysis.boxes]
    assert analysis.count_hint is None or 0 < analysis.count_hint <= len(labels)
    assert not hints.excluded & set(labels)
    if analysis.confidence is not None and analysis.confidence < 0.5:
        assert analysis.unknown_flag


@given(_found, _quality, st.randoms(use_true_random=False))
def test_the_order_of_detections_means_nothing(found: list[Detection], quality: Quality, random: object) -> None:
    # Equal scores in one place have no better one, so each score comes once here.
    once = list({one.score: one for one in found}.values())
    shuffled = list(once)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own Random
    assert interpret(once, quality, Hints(), VOCABULARY, POLICY) == interpret(
        shuffled, quality, Hints(), VOCABULARY, POLICY
    )


def test_a_model_is_credited_with_what_its_labels_can_lead_to_and_no_more() -> None:
    assert events_of(()) == ("none", "camera_issue", "object_missing", "unknown")
    assert events_of(["chair", "smoke", "person"]) == (
        "none",
        "hazard",
        "camera_issue",
        "human",
        "object_missing",
        "unknown",
    )
    assert events_of(MEANINGS) == ALL_EVENTS


def test_names_that_nothing_is_called_by_are_found() -> None:
    hints = Hints(
        excluded=frozenset({"person", "human", "camera.dark", "persno"}),
        thresholds={"helmet": 0.5, "of the model": 0.5, "vehicles": 0.5},
        expected=frozenset({"animal.bird", "car", "animal.birds"}),
    )
    assert unknown_names(hints, {"of the model"}, VOCABULARY) == ("animal.birds", "persno", "vehicles")
    assert unknown_names(NO_HINTS, (), VOCABULARY) == ()
