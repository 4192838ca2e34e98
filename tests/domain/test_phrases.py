import re
from pathlib import Path

import pytest

from camserver.domain.health import ISSUES, STALLED, Issue, Standing
from camserver.domain.leases import Fault
from camserver.domain.phrases import (
    CAMERA_CAUSES,
    CAMERA_ISSUES,
    CAMERA_ISSUES_OVER,
    OWN_TAGS,
    PRIMARY_EVENTS,
    SEVERITIES,
    Phrase,
    camera_cause_phrase,
    camera_issue_phrase,
    primary_event_phrase,
    severity_phrase,
)
from tests.domain.build import shipped_vocabulary

WORDS_OF_PAGES = Path(__file__).parents[2] / "ui" / "src" / "i18n"


@pytest.mark.parametrize("language", ["ja", "en"])
def test_severities_are_called_as_on_the_pages(language: str) -> None:
    source = (WORDS_OF_PAGES / f"{language}.ts").read_text()
    written = re.findall(r"\bs([0-3]): \"(.*?)\"", source[source.index(" severity: {") :])[:4]
    assert written == [(str(step), getattr(phrase, language)) for step, phrase in enumerate(SEVERITIES)]
    assert severity_phrase(9) == SEVERITIES[3]


def test_every_primary_event_that_ships_has_its_words() -> None:
    assert set(PRIMARY_EVENTS) == set(shipped_vocabulary().primary_events)


def test_every_issue_and_its_tag_have_their_words() -> None:
    assert set(CAMERA_ISSUES) == set(CAMERA_ISSUES_OVER) == set(Issue) == set(ISSUES)
    for kind in ISSUES.values():
        tag = shipped_vocabulary().tag(kind.tag_id)
        assert (tag is None) == (kind.tag_id in OWN_TAGS)
        assert tag is None or tag.severity_default == kind.severity


def test_every_cause_has_its_words() -> None:
    assert {*Fault, STALLED, "timeout", "error", Standing.UNATTENDED, Standing.OFF} <= set(CAMERA_CAUSES)


def test_what_is_not_known_is_shown_by_its_name() -> None:
    assert primary_event_phrase("drone") == Phrase("drone", "drone")
    assert camera_issue_phrase("melted") == Phrase("melted", "melted")
    assert camera_cause_phrase("eaten") == Phrase("eaten", "eaten")
