from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.analysis import Analysis
from camserver.domain.retention import Retention, RetentionPolicy, classify, strongest

from .build import analysis, nothing, shipped_vocabulary

VOCABULARY = shipped_vocabulary()
NORMAL, QUARANTINE, CASE = Retention.NORMAL, Retention.QUARANTINE, Retention.CASE


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        # The table of section 8.1, row by row; severity 1 so that no row is right by its severity.
        (analysis("hazard", tags=("hazard.smoke_like",)), QUARANTINE),
        (analysis("hazard", tags=("hazard.of_another_vocabulary",)), QUARANTINE),
        (analysis("camera_issue", tags=("camera.offline",)), QUARANTINE),
        (analysis("camera_issue", tags=("camera.moved",)), QUARANTINE),
        (analysis("camera_issue", tags=("camera.occluded",)), QUARANTINE),
        (analysis("human", tags=("behavior.loitering",)), QUARANTINE),
        (analysis("object_missing", tags=("object_missing.suspected",)), QUARANTINE),
        (analysis("animal", tags=("animal.deer",)), QUARANTINE),
        (analysis("animal", tags=("animal.boar",)), QUARANTINE),
        (analysis("unknown", unknown_flag=True), QUARANTINE),
        (analysis("none", detected=False, unknown_flag=True), QUARANTINE),
        (analysis("human", severity=2), QUARANTINE),
        (analysis("human", severity=3), QUARANTINE),
        (analysis("human"), NORMAL),
        (analysis("animal", tags=("animal.dog",)), NORMAL),
        (analysis("camera_issue", tags=("camera.blur",)), NORMAL),
        (nothing(), NORMAL),
    ],
)
def test_table_8_1(result: Analysis, wanted: Retention) -> None:
    assert classify(result, VOCABULARY) is wanted


def test_a_frame_in_a_case_is_kept_as_case_whatever_it_shows() -> None:
    assert classify(nothing(), VOCABULARY, in_case=True) is CASE
    assert classify(analysis(severity=3), VOCABULARY, in_case=True) is CASE


def test_a_vocabulary_can_ask_for_quarantine() -> None:
    assert classify(analysis(tags=("reason.unknown_activity",)), VOCABULARY) is QUARANTINE


def test_a_vocabulary_without_hints_takes_no_row_away() -> None:
    bare = replace(VOCABULARY, tags=tuple(replace(tag, retention_hint="normal") for tag in VOCABULARY.tags))
    assert classify(analysis(tags=("animal.deer",)), bare) is QUARANTINE
    assert classify(analysis(tags=("reason.unknown_activity",)), bare) is NORMAL


def test_the_strongest_class_wins() -> None:
    assert strongest([NORMAL, CASE, QUARANTINE]) is CASE
    assert strongest([NORMAL, QUARANTINE]) is QUARANTINE
    assert strongest([]) is NORMAL


@given(st.lists(st.sampled_from(Retention), min_size=1), st.sampled_from(Retention))
def test_more_frames_never_weaken(classes: list[Retention], more: Retention) -> None:
    before, after = strongest(classes), strongest([*classes, more])
    assert strongest([before, after]) is after


def test_defaults_are_the_decided_days() -> None:
    policy = RetentionPolicy()
    assert (policy.frames_days, policy.detected_days, policy.quarantine_days) == (14, 30, 60)
    assert (policy.events_days, policy.notifications_days, policy.statistics_days) == (180, 30, 365)
