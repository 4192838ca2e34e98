"""A duty is held by one at a time, whatever the order of asking."""

from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.duties import HOLD_MS, Duty, taken

MOMENT = st.integers(0, 5 * HOLD_MS)


@given(asked=st.lists(st.tuples(MOMENT, st.sampled_from("abc"), st.integers(0, 2)), max_size=40))
def test_never_two_at_once(asked: list[tuple[int, str, int]]) -> None:
    found: Duty | None = None
    holds: list[tuple[int, int, str]] = []  # from, until, token
    for now_ms, owner, turn in sorted(asked):
        token = f"{owner}{turn}"
        answer = taken(found, "x", owner, token, now_ms)
        if answer is None:
            assert found is not None
            continue
        assert answer.is_held_by(token, now_ms)
        for begin, until, other in holds:
            assert other == token or not begin <= now_ms < until
        holds.append((now_ms, answer.until, token))
        found = answer


def test_who_lost_it_does_not_get_it_back_under_the_same_token() -> None:
    mine = taken(None, "x", "a", "t", 0)
    assert mine is not None
    assert taken(mine, "x", "a", "t", HOLD_MS) is None
    assert taken(mine, "x", "a", "new", HOLD_MS) is not None
