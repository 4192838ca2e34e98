import pytest

from camserver.base.errors import Bug
from camserver.base.ready import CHECKS_MAX, WHY_MAX_CHARS, Ready
from camserver.base.secrets import MASK, Secret


def test_a_board_without_checks_is_not_ready() -> None:
    assert not Ready().is_ready


def test_ready_when_every_expected_check_is_set() -> None:
    board = Ready()
    board.expect("control")
    board.expect("web")
    board.set("web")
    assert not board.is_ready
    assert board.checks() == {"control": "starting", "web": None}
    board.set("control")
    assert board.is_ready
    board.clear("control", "the database is away")
    assert not board.is_ready
    assert board.checks()["control"] == "the database is away"


def test_expecting_again_does_not_undo() -> None:
    board = Ready()
    board.set("web")
    board.expect("web")
    assert board.is_ready


def test_reasons_are_scrubbed_bounded_and_never_empty() -> None:
    Secret("board-secret")
    board = Ready()
    board.clear("a", "can't open board-secret")
    board.clear("b", "x" * 10_000)
    board.clear("c", "")
    assert board.checks() == {"a": f"can't open {MASK}", "b": "x" * WHY_MAX_CHARS, "c": "not ready"}


def test_the_number_of_checks_is_bounded() -> None:
    board = Ready()
    for number in range(CHECKS_MAX):
        board.set(str(number))
    board.clear("0", "known names still change")
    with pytest.raises(Bug):
        board.set("one more")


def test_checks_are_a_copy() -> None:
    board = Ready()
    board.set("web")
    checks = board.checks()
    board.clear("web", "gone")
    assert checks == {"web": None}
