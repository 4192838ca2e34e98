"""Words are found in Japanese and English, whatever their width and case."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.domain.texts import (
    EXCERPT_CHARS,
    QUERY_MAX_CHARS,
    QUERY_TOKENS_MAX,
    TOKEN_MAX_CHARS,
    comparable,
    excerpt,
    matches,
    parse_query,
    tokens_of,
)

FOUND = [
    ("赤い服", "正面玄関に赤い服の男性がいる。"),
    ("服", "正面玄関に赤い服の男性がいる。"),
    ("玄関 男性", "正面玄関に赤い服の男性がいる。"),
    ("トラック", "白いﾄﾗｯｸが停車"),
    ("ﾄﾗｯｸ", "白いトラックが停車"),
    ("ガレージ", "ｶﾞﾚｰｼﾞの前"),
    ("RED", "A man in a red jacket."),
    ("ｒｅｄ　ｊａｃ", "A man in a red jacket."),
    ("jack", "A man in a red jacket."),
    ("deliver", "The delivery came."),
    ("deliveries", "Two deliveries."),
    ("2F廊下", "2Ｆの廊下に人"),
    ("2f", "２Ｆ"),
    ("straße", "STRASSE 5"),
    ("b", "Gate B is open"),
    ("cafe\u0301", "Café"),
    ("한국", "한국어"),
    ("𠮷野", "𠮷野家"),
    ("葛飾", "葛\U000e0100飾区"),
    ("葛\U000e0100飾", "葛飾区"),
    ("ガード", "ガ\u200bード"),
    ("防犯カメラ", "防犯\ufe0fカメラ"),
    ("jacket", "jac\u00adket"),
]
NOT_FOUND = [
    ("赤いトラック", "赤い服、白いトラック"),
    ("い服", "赤い、服"),
    ("acket", "A man in a red jacket."),
    ("b", "Gate Beta"),
    ("delivering", "The delivery came."),
    ("男性 犬", "赤い服の男性"),
    ("red truck", "A red jacket"),
]


@pytest.mark.parametrize(("query", "text"), FOUND)
def test_what_is_found(query: str, text: str) -> None:
    asked = parse_query(query)
    assert matches(asked, text)
    assert set(asked.tokens) <= tokens_of(text)


@pytest.mark.parametrize(("query", "text"), NOT_FOUND)
def test_what_is_not(query: str, text: str) -> None:
    assert not matches(parse_query(query), text)


def test_what_nobody_wrote_together_is_not_looked_for_in_all_that_was() -> None:
    """Each pair of its letters is in the text; that it does not match is known without reading the text."""
    text = "赤い靴、白いトラック"
    assert not set(parse_query("赤いトラック").tokens) <= tokens_of(text)


@pytest.mark.parametrize(("query", "tokens"), [("犬", ("犬",)), ("赤い", ("赤い",)), ("自転車", ("自転車",))])
def test_short_ones_are_looked_up_whole(query: str, tokens: tuple[str, ...]) -> None:
    assert parse_query(query).tokens == tokens


def test_of_a_long_query_some_tokens_are_looked_up_from_its_beginning_to_its_end() -> None:
    query = "".join(chr(ord("一") + number) for number in range(40))
    tokens = parse_query(query).tokens
    assert len(tokens) == QUERY_TOKENS_MAX
    places = [query.index(token) for token in tokens]
    assert places[0] == 0
    assert {after - before for before, after in pairwise(places)} == {3, 4}
    assert len(query) - places[-1] <= 6
    assert set(tokens) <= tokens_of(query)


@pytest.mark.parametrize("query", ["", "  ", "・、。", "---", "_"])
def test_a_query_without_a_letter_is_refused_by_the_name_of_its_field(query: str) -> None:
    with pytest.raises(BadInput, match="no letter") as caught:
        parse_query(query)
    assert caught.value.details["field"] == "text"


def test_too_many_words_are_refused() -> None:
    with pytest.raises(BadInput, match="at most 8"):
        parse_query(" ".join(f"w{number}" for number in range(9)))


WORDS = st.text(st.sampled_from("abAB ｂ犬猫いヌﾇﾞー。, 2²"), max_size=12)


@given(WORDS.filter(str.strip), WORDS, WORDS)
def test_tokens_never_hide_a_text_that_matches(query: str, before: str, after: str) -> None:
    try:
        asked = parse_query(query)
    except BadInput:
        return
    text = f"{before}{query}{after}"
    if matches(asked, text):
        assert set(asked.tokens) <= tokens_of(text)
    # Alone between spaces it is always found.
    assert matches(asked, f"{before} {query} {after}")


@given(st.text(max_size=60))
def test_tokens_fit_their_column_and_folding_twice_changes_nothing(text: str) -> None:
    assert all(0 < len(token) <= TOKEN_MAX_CHARS for token in tokens_of(text))
    assert comparable(comparable(text)) == comparable(text)


@given(st.text(max_size=400), st.text(st.characters(categories=["L"]), min_size=1, max_size=5))
def test_an_excerpt_is_one_bounded_line(text: str, word: str) -> None:
    shown = excerpt(parse_query(word[:QUERY_MAX_CHARS]), text + word)
    assert len(shown) <= EXCERPT_CHARS + 2
    assert "\n" not in shown


def test_an_excerpt_shows_what_was_found() -> None:
    text = "始め。" + "あ" * 400 + "、赤いﾄﾗｯｸ、" + "い" * 400
    shown = excerpt(parse_query("トラック"), text)
    assert "ﾄﾗｯｸ" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
