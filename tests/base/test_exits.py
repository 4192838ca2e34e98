import pickle
import re
from pathlib import Path

import pytest

from camserver.base import errors
from camserver.base.errors import CamError
from camserver.base.exits import Exit, exit_of

PAGE = Path(__file__).parents[2] / "docs" / "ref" / "exit-codes.md"


def test_the_page_is_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (yes|no) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(str(code.value), code.meaning, "yes" if code.restart else "no") for code in Exit]


def test_numbers_stay_clear_of_those_that_shells_and_signals_use() -> None:
    assert [code.value for code in Exit] == list(range(len(Exit)))
    assert len(Exit) < 64


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.BadSettings("x"), Exit.BAD_SETTINGS),
        (errors.PortUnusable("x"), Exit.PORT_UNUSABLE),
        (errors.DataUnusable("x"), Exit.DATA_UNUSABLE),
        (errors.DataOwned("x"), Exit.DATA_OWNED),
        (errors.StoreTooNew("x"), Exit.STORE_TOO_NEW),
        (errors.StoreTooOld("x"), Exit.STORE_TOO_OLD),
        (errors.UpgradeFailed("x"), Exit.UPGRADE_FAILED),
        (errors.CheckFailed("x"), Exit.CHECK_FAILED),
        (errors.StoreUnavailable("x"), Exit.STORE_AWAY),
        (errors.StoreBusy("x"), Exit.STORE_AWAY),
        (errors.Unavailable("x"), Exit.SERVER_AWAY),
        (errors.NotFound("x"), Exit.REFUSED),
        (errors.VersionConflict("x"), Exit.REFUSED),
        (errors.Bug("x"), Exit.UNEXPECTED),
        (errors.Fatal("x"), Exit.UNEXPECTED),
    ],
)
def test_errors_lead_to_their_code(error: CamError, code: Exit) -> None:
    assert exit_of(error) is code


def test_every_code_is_found_by_its_number_and_no_other_number_is() -> None:
    assert [Exit.of(code.value) for code in Exit] == list(Exit)
    assert Exit.of(99) is None
    assert Exit.of(-9) is None


def kinds(root: type[CamError] = CamError) -> list[type[CamError]]:
    found = [root]
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            found += kinds(kind)
    return found


def test_the_drawn_tree_names_every_error_under_its_base() -> None:
    drawn: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^ {4}([│ ]*)(?:[├└]── )?([A-Z]\w+)\b", line):
            drawn.append((len(found[1]) + (4 if "──" in line else 0), found[2]))
    bases: list[tuple[int, str]] = []
    for depth, name in drawn:
        bases = [base for base in bases if base[0] < depth]
        if bases:
            assert getattr(errors, name).__base__.__name__ == bases[-1][1]
        bases.append((depth, name))
    assert {name for _, name in drawn} == {kind.__name__ for kind in kinds()}


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in kinds()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", kinds())
def test_errors_survive_the_way_between_processes(kind: type[CamError]) -> None:
    copy = pickle.loads(pickle.dumps(kind("the camera is gone", camera_id="cam_1")))
    assert type(copy) is kind
    assert (copy.message, dict(copy.details), str(copy)) == (
        "the camera is gone",
        {"camera_id": "cam_1"},
        "the camera is gone",
    )
