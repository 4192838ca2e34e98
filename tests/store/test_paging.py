"""Cursors: they come back as they were given out, and only to the list that gave them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor

PLACES = st.integers(0, BEYOND)


@given(st.sampled_from(Listed), PLACES, PLACES)
def test_a_cursor_comes_back_as_it_was_given_out(listed: Listed, at_ms: int, key: int) -> None:
    assert parse_cursor(listed, make_cursor(listed, at_ms, key)) == (at_ms, key)


def test_a_cursor_of_another_list_is_refused() -> None:
    for made in Listed:
        for read in set(Listed) - {made}:
            with pytest.raises(BadInput, match="cursor"):
                parse_cursor(read, make_cursor(made, 1, 2))


@given(st.sampled_from(Listed), st.text(max_size=60))
def test_nothing_else_is_one(listed: Listed, text: str) -> None:
    try:
        at_ms, key = parse_cursor(listed, text)
    except BadInput:
        return
    assert 0 <= at_ms <= BEYOND
    assert 0 <= key <= BEYOND
    assert text.startswith(listed)
