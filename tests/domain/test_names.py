import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.names import is_name, is_plain, plain


@pytest.mark.parametrize(
    "name", ["Gate", "東京　本社", "玄関 1", "👩‍💻", "Пост", "שער", "a\u200fb", "\U0001fae8", "x'y/z"]
)
def test_what_people_write_is_a_name(name: str) -> None:
    assert is_name(name)
    assert plain(name).split() == name.split()


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\r\nBcc: x", "a\x1b[31m", "a\x07", "a\x85b", "a\u2028b", "gpj.\u202eexe", "a\u2066b", "a\tb", "\0"],
)
def test_what_does_more_than_show_itself_is_none(name: str) -> None:
    assert not is_plain(name)
    assert not is_name(name)
    assert is_plain(plain(name))


@pytest.mark.parametrize("name", ["", " ", "　", "\u200b", "\ufeff\u200d", "\u0301"])
def test_what_nobody_sees_is_none(name: str) -> None:
    assert is_plain(name)
    assert not is_name(name)


@given(st.text())
def test_made_plain_it_is_plain(text: str) -> None:
    assert is_plain(plain(text))
    assert plain(plain(text)) == plain(text)
