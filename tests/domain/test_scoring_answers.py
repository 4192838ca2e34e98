"""Reading what models say."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.scoring_answers import Next, after_bad_answer, is_valid, read_scores
from camserver.domain.sheet_layout import Category

TWO = (Category(0, "Red"), Category(1, "Green"))


@pytest.mark.parametrize(
    "text",
    [
        '{"scores": [0.25, 1.0]}',
        '```json\n{"scores": [0.25, 1]}\n```',
        'Sure! {"scores": [0.25, 1.0]} Anything else?',
        '{"scores": [0.25, 1.0,],}',
        '{"scores": ["0.25", "100%"]}',
        "[0.25, 1.0]",
        '{"red": 0.25, "GREEN": 1}',
        '{"1": 0.25, "2": 1}',
        '{"scores": {"Green": 1, "Red": 0.25}}',
        '{"scores": [{"category": "green", "score": 1}, {"category": "red", "score": 0.25}]}',
        '{"results": [{"score": 0.25}, {"score": 1}]}',
        '{"scores": [0.25, 1.0000001]}',
    ],
)
def test_what_is_clear_is_read(text: str) -> None:
    assert read_scores(text, TWO).scores == (0.25, 1.0)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("I'd say it is red.", "no JSON"),
        ("", "no JSON"),
        ('{"scores": [0.25]}', "1 scores, and there are 2"),
        ('{"scores": [0.25, 1, 0.5]}', "3 scores"),
        ('{"scores": [0.25, 1.7]}', "score 2 is not between"),
        ('{"scores": [-0.1, 1]}', "score 1 is not between"),
        ('{"scores": [85, 20]}', "not between"),
        ('{"scores": [0.25, NaN]}', "not between"),
        ('{"scores": [Infinity, 0.1]}', "not between"),
        ('{"scores": [0.25, null]}', "score 2 is missing"),
        ('{"scores": [true, 0.5]}', "no number"),
        ('{"scores": ["very", 0.5]}', "no score"),
        ('{"scores": "none"}', 'no list named "scores"'),
        ('{"verdict": 3}', 'no list named "scores"'),
        ('{"scores": [0.25, 0.', "no list"),
        ("7", 'no list named "scores"'),
        ('{"scores": [1' + "0" * 400 + ", 1]}", "not between"),
    ],
)
def test_nothing_is_guessed(text: str, wrong: str) -> None:
    read = read_scores(text, TWO)
    assert read.scores is None
    assert wrong in read.wrong or "no JSON" in read.wrong


def test_phrases_stand_for_scores() -> None:
    five = tuple(Category(number, str(number)) for number in range(5))
    said = json.dumps({"scores": ["Core", "strong", " Reasonable ", "WEAK", "None"]})
    assert read_scores(said, five).scores == (0.95, 0.80, 0.55, 0.25, 0.05)


@given(st.text() | st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
).map(lambda held: json.dumps({"scores": held})))  # fmt: skip
def test_whatever_is_said_there_are_valid_scores_or_a_reason(text: str) -> None:
    read = read_scores(text, TWO)
    if read.scores is None:
        assert read.wrong
    else:
        assert is_valid(read.scores, 2)
        assert all(math.isfinite(one) for one in read.scores)


@pytest.mark.parametrize("scores", [(), (0.1,), (0.1, 1.1), (0.1, math.nan), ("0.1", 0.2), (True, 0.2), (0.1, None)])
def test_what_the_cache_holds_is_checked_too(scores: tuple[object, ...]) -> None:
    assert not is_valid(scores, 2)
    assert is_valid((0, 1.0), 2)


def test_asked_again_then_the_next_model_then_given_up() -> None:
    assert [after_bad_answer(asked, 1, 2) for asked in (0, 1, 2)] == [Next.REASK, Next.REASK, Next.FALL_BACK]
    assert after_bad_answer(2, 0, 2) is Next.GIVE_UP
