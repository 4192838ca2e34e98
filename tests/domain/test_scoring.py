"""Chunks, waits and keys of a run."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.scoring import (
    RunSpec,
    ScoringPolicy,
    is_chunk_tried_again,
    plan_chunks,
    question_key,
    retry_delay_sec,
)
from camserver.domain.scoring_costs import tokens_of
from camserver.domain.scoring_prompts import ANCHORS, BlockQuestion, answer_schema, user_prompt
from camserver.domain.sheet_layout import Category, SheetLayout

CATEGORIES = (Category(0, "red", "is red", "like a rose"), Category(1, "緑"))
SPEC = RunSpec("openai", None, "m", ("n",), "numeric", 0.0, 100, "", SheetLayout(), CATEGORIES)


@given(st.integers(1, 50), st.integers(0, 5000), st.integers(1, 700))
def test_chunks_cover_every_row_once(first: int, count: int, rows: int) -> None:
    chunks = plan_chunks(first, first + count - 1, rows)
    covered = [row for one in chunks for row in range(one.row_start, one.row_end + 1)]
    assert covered == list(range(first, first + count))
    assert [one.number for one in chunks] == list(range(1, len(chunks) + 1))
    assert all(one.row_end - one.row_start < rows for one in chunks)


def test_a_chunk_has_the_name_that_others_know() -> None:
    assert plan_chunks(5, 1000, 500)[1].name == "chunk-0002"


def test_waits_double_up_to_a_minute() -> None:
    assert [retry_delay_sec(failures) for failures in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]


def test_a_chunk_is_tried_again_three_times() -> None:
    assert [is_chunk_tried_again(count, ScoringPolicy()) for count in (0, 2, 3)] == [True, True, False]


def test_a_spec_is_the_same_after_it_was_stored() -> None:
    assert RunSpec.from_json(SPEC.as_json()) == SPEC
    assert RunSpec.from_json(SPEC.as_json()).digest == SPEC.digest


@pytest.mark.parametrize("changes", [
    {"model": "other"}, {"temperature": 0.5}, {"form": "anchors"}, {"instructions": "be kind"},
    {"categories": CATEGORIES[::-1]}, {"provider": "gemini"},
])  # fmt: skip
def test_another_question_is_another_run_and_another_key(changes: dict[str, object]) -> None:
    other = replace(SPEC, **changes)  # type: ignore[arg-type]
    assert other.digest != SPEC.digest

    def key(spec: RunSpec) -> str:
        question = BlockQuestion(0, 0, spec.categories, spec.form, spec.instructions)
        return question.key("a text", spec.provider, spec.model, spec.temperature)

    assert key(other) != key(SPEC)


@given(st.text(), st.lists(st.text(alphabet="abcdef0123456789", max_size=8), max_size=2))
def test_the_quick_key_is_the_key(text: str, pictures: list[str]) -> None:
    question = BlockQuestion(0, 0, CATEGORIES, "numeric", "be kind")
    assert question.key(text, "openai", "m", 0.0, pictures) == question_key(
        utterance=text,
        categories=CATEGORIES,
        system=question.system,
        provider="openai",
        model="m",
        temperature=0.0,
        schema=answer_schema("numeric"),
        pictures=pictures,
    )


def test_a_question_names_its_categories_and_says_where_the_text_ends() -> None:
    question = BlockQuestion(0, 0, CATEGORIES, "anchors", "Be kind.")
    assert "1. red | is red | like a rose\n2. 緑" in question.system
    assert all(phrase in question.system for phrase in ANCHORS)
    assert "Be kind." in question.system
    assert user_prompt('say "no"\nthen') == 'Text: "say \\"no\\"\\nthen"'
    assert "it has 1 scores" in user_prompt("a", "it has 1 scores")


def test_tokens_are_guessed_by_script() -> None:
    assert tokens_of("four") == 1
    assert tokens_of("日本語") == 3
    assert tokens_of("") == 0
