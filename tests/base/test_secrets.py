import json
import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.secrets import MASK, SCRUB_MIN_CHARS, Secret, load_or_make, scrub


@given(st.text(min_size=SCRUB_MIN_CHARS, max_size=40).filter(lambda text: text not in MASK))
def test_a_secret_shows_itself_to_nobody_but_reveal(value: str) -> None:
    secret = Secret(value)
    shown = f"{secret} {secret!r} {secret!s} {secret:>10} {[secret]}"
    assert shown.replace(MASK, "").strip(" []") == ""
    assert secret.reveal() == value


@given(st.text(min_size=SCRUB_MIN_CHARS, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_scrub_removes_a_secret_as_it_is_written(value: str, before: str, after: str) -> None:
    secret = Secret(value)
    for written in (value, json.dumps(value)[1:-1], repr(value)[1:-1]):
        assert written not in scrub(before + written + after).replace(MASK, "")
    assert secret.reveal() == value


def test_a_secret_that_begins_with_another_is_hidden_whole() -> None:
    Secret("prefix-secret")
    Secret("prefix-secret-and-more")
    assert scrub("x prefix-secret-and-more y") == f"x {MASK} y"


@pytest.mark.parametrize("others", [0, 5_000], ids=["few", "many"])
def test_a_secret_is_found_among_few_and_many_others(others: int) -> None:
    for number in range(others):
        Secret(f"pass of cam_{number}")
    Secret("pass of the attic")
    assert scrub("pass of the att") == "pass of the att"
    assert scrub("xpass of the atticpass of the attic, pass of t") == f"x{MASK}{MASK}, pass of t"
    assert scrub("p/w: pass%20of%20the%20attic") == f"p/w: {MASK}"
    if others:
        assert scrub("pass of cam_1 and pass of cam_4999") == f"{MASK} and {MASK}"


def test_short_values_are_not_scrubbed() -> None:
    Secret("abc")
    assert scrub("abc") == "abc"


def test_secrets_are_equal_by_value_and_never_pickled() -> None:
    assert Secret("same-value") == Secret("same-value")
    assert Secret("same-value") != Secret("other-value")
    assert Secret("same-value") != "same-value"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Secret("same-value"))


def test_scrubbing_while_another_thread_adds() -> None:
    done = threading.Event()
    failures: list[BaseException] = []

    def add() -> None:
        for number in range(300):
            Secret(f"added-secret-{number}")
        done.set()

    def watch() -> None:
        try:
            while not done.is_set():
                scrub("some text without any")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=watch), threading.Thread(target=add)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_file_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "secrets" / "token"
    made = load_or_make(path)
    assert load_or_make(path) == made
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["token"]
    assert len(made.reveal()) >= 43


def test_of_many_that_make_it_at_once_all_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(load_or_make(path).reveal())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 8
