"""Which earlier look a picture is compared with, where things shall not vanish."""

import pytest

from camserver.domain.earlier_looks import EarlierLook, undisturbed


def seen(primary_event: str, *tags: str, has_picture: bool = True) -> EarlierLook:
    return EarlierLook(has_picture, is_quiet=False, is_analyzed=True, primary_event=primary_event, tags=tags)


QUIET = EarlierLook(True, is_quiet=True, is_analyzed=False)
WAITING = EarlierLook(True, is_quiet=False, is_analyzed=False)  # something changed; nobody knows what
FAILED = EarlierLook(False, is_quiet=True, is_analyzed=False)
NOBODY = seen("none")
GONE_FILE = seen("none", has_picture=False)
SOMEBODY = seen("human", "count.single")
DOG = seen("animal", "animal.dog")
CAR = seen("vehicle")
FIRE_AND_PEOPLE = seen("hazard", "hazard.flame_like", "count.multiple")
DARK = seen("camera_issue", "camera.dark")
MOVED = seen("camera_issue", "camera.moved")
MOVED_BY_SOMEBODY = seen("camera_issue", "camera.moved", "count.single")
COVERED_BY_SOMEBODY = seen("camera_issue", "camera.occluded", "count.single")
MISSED_BESIDE_SOMEBODY = seen("human", "count.single", "object_missing.suspected")


@pytest.mark.parametrize(
    ("looks", "chosen"),
    [
        ([], None),
        ([NOBODY, NOBODY], 0),
        ([CAR], 0),
        ([DARK], 0),
        ([QUIET, QUIET], 0),
        # The taker stands there in the looks before.
        ([SOMEBODY, NOBODY], 1),
        ([SOMEBODY, DOG, SOMEBODY, QUIET, QUIET], 3),
        ([FIRE_AND_PEOPLE, NOBODY], 1),
        ([SOMEBODY, SOMEBODY], None),
        # Quiet looks show what the look before them showed.
        ([QUIET, SOMEBODY, QUIET, NOBODY], 2),
        ([QUIET, QUIET, SOMEBODY], None),
        ([QUIET, NOBODY], 0),
        ([QUIET, GONE_FILE], 0),
        # Of what is not analyzed yet, nobody knows; nor of what looks like it.
        ([WAITING, NOBODY], 1),
        ([QUIET, WAITING, NOBODY], 2),
        ([WAITING, WAITING], None),
        # Looks without a picture are passed over.
        ([FAILED, QUIET, NOBODY], 1),
        ([FAILED, FAILED], None),
        ([GONE_FILE, NOBODY], 1),
        # What was said to be gone is not said again.
        ([MISSED_BESIDE_SOMEBODY, NOBODY], 0),
        # Looks from before the camera was turned or covered show another view: that is said once.
        ([MOVED, NOBODY], 0),
        ([QUIET, MOVED, NOBODY], 0),
        ([MOVED_BY_SOMEBODY, NOBODY], None),
        ([SOMEBODY, MOVED_BY_SOMEBODY, NOBODY], None),
        ([QUIET, COVERED_BY_SOMEBODY, NOBODY], None),
        ([SOMEBODY, NOBODY, MOVED_BY_SOMEBODY], 1),
    ],
)
def test_the_newest_look_with_neither_human_nor_animal(looks: list[EarlierLook], chosen: int | None) -> None:
    assert undisturbed(looks) == chosen
