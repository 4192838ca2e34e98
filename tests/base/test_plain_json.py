import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from camserver.base.plain_json import TEXT_MAX_CHARS, plain_json

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=5), anything, max_size=5))
def test_what_is_plain_comes_back_as_it_was_and_can_be_written_anywhere(held: dict[str, Any]) -> None:
    text = plain_json(held)
    if text is not None:
        assert json.loads(text) == held
        assert b"\0" not in text.encode("utf-8")
        assert "\\u0000" not in text.replace("\\\\", "")


def test_ordinary_results_are_plain() -> None:
    assert plain_json({"ts": "17.5", "n": [1, 2.5, None, True], "題": {"a": ("b",)}}) is not None


def test_there_is_a_bound() -> None:
    assert plain_json({"a": "x" * TEXT_MAX_CHARS}) is None
    assert plain_json({"a": "x" * (TEXT_MAX_CHARS - 10)}) is not None
