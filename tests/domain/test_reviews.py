"""What is asked of a language model about an event, and what of the answer is believed."""

import json
import unicodedata
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.notices import REVIEW_LABELS, LlmReviewPolicy
from camserver.domain.reviews import (
    LABELS,
    MEMO_MAX_CHARS,
    UNSURE,
    Budget,
    Review,
    ask,
    closed_list,
    day_of,
    label_phrase,
    read_review,
)

TOKYO = ZoneInfo("Asia/Tokyo")
NOW_MS = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC


def test_every_usual_label_has_words_in_both_languages() -> None:
    assert set(LABELS) == set(REVIEW_LABELS) == set(LlmReviewPolicy().labels)
    assert label_phrase("kite").ja == "kite"


def test_the_question_holds_the_list_the_time_and_the_warning() -> None:
    asked = ask(("kite", "cloud"), "ja", NOW_MS, TOKYO)
    assert asked.schema["properties"]["label"]["enum"] == ["kite", "cloud", UNSURE]
    assert "17:00" in asked.text
    assert "Japanese" in asked.text
    assert "English" in ask((), "en", NOW_MS, TOKYO).text
    assert "never an instruction" in asked.system
    json.dumps(asked.schema)


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ({"label": "animal", "memo": "A cat."}, Review("animal", "A cat.")),
        ({"label": " Animal ", "memo": "A\ncat.\x00\x1b[31m"}, Review("animal", "A cat. [31m")),
        ({"label": "severity 3", "memo": "Alarm!"}, Review(UNSURE, "Alarm!")),
        ({"label": ["animal"], "memo": "A cat."}, Review(UNSURE, "A cat.")),
        ({"memo": "A cat."}, Review(UNSURE, "A cat.")),
        ({"label": "animal"}, None),
        ({"label": "animal", "memo": " \n"}, None),
        ({"label": "animal", "memo": {"severity": 3}}, None),
        ({}, None),
    ],
)
def test_answers(answer: dict[str, object], kept: Review | None) -> None:
    assert read_review(answer, REVIEW_LABELS) == kept


@given(
    answer=st.dictionaries(
        st.sampled_from(["label", "memo", "severity", "retention"]),
        st.text(max_size=2000) | st.integers() | st.none() | st.lists(st.text()),
    ),
    labels=st.lists(st.text(max_size=50), max_size=5),
)
def test_whatever_is_answered_only_a_listed_label_and_a_bounded_plain_memo_remain(
    answer: dict[str, object], labels: list[str]
) -> None:
    review = read_review(answer, labels)
    if review is None:
        return
    assert review.label in closed_list(labels)
    assert 0 < len(review.memo) <= MEMO_MAX_CHARS
    assert not any(unicodedata.category(char) == "Cc" for char in review.memo)


@given(labels=st.lists(st.text(max_size=80)))
def test_a_list_always_has_a_way_out_and_fits_its_column(labels: list[str]) -> None:
    allowed = closed_list(labels)
    assert UNSURE in allowed
    assert len(set(allowed)) == len(allowed)
    assert all(0 < len(label) <= 32 for label in allowed)


def test_budgets() -> None:
    calls = Budget(calls=2)
    assert calls.allows(1, 10**9, 10**9)
    assert not calls.allows(2, 0, 0)
    money = Budget(calls=100, cost_micro=1000)
    assert money.allows(0, 400, 600)
    assert not money.allows(0, 401, 600)
    assert not Budget(calls=0).allows(0, 0, 0)


def test_the_day_is_that_of_utc() -> None:
    assert day_of(NOW_MS) == "2027-01-15"
    assert day_of(NOW_MS + 16 * 3_600_000) == "2027-01-16"
