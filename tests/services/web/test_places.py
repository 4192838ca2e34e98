"""Places for long answers: so many, and half of them for one person."""

import contextlib

import pytest

from camserver.base.errors import Unavailable
from camserver.domain.people import Principal, Role
from camserver.services.web.places import Places

ANNA = Principal(1, 1, Role.TENANT_ADMIN, session_id=1)
ANNA_ELSEWHERE = Principal(1, 1, Role.TENANT_ADMIN, session_id=2)
BERT = Principal(1, 2, Role.TENANT_ADMIN, session_id=3)
PROGRAM = Principal(1, None, Role.TENANT_ADMIN, token_id=1)
OTHER_PROGRAM = Principal(1, None, Role.TENANT_ADMIN, token_id=2)


def refused(places: Places, who: Principal) -> str | None:
    try:
        with places.one(who):
            return None
    except Unavailable as error:
        return str(error.details["reason"])


@pytest.mark.parametrize("places_max", [1, 2, 3, 4, 5])
def test_nobody_has_more_than_half_of_the_places(places_max: int) -> None:
    places = Places(places_max)
    with contextlib.ExitStack() as held:
        for _ in range((places_max + 1) // 2):
            held.enter_context(places.one(ANNA))
        assert refused(places, ANNA_ELSEWHERE) == ("exports_full" if places_max == 1 else "own_exports_full")
        for _ in range(places_max // 2):
            held.enter_context(places.one(BERT))
        assert refused(places, PROGRAM) == "exports_full"
    assert [refused(places, who) for who in (ANNA, BERT, PROGRAM)] == [None] * 3


def test_programs_are_told_apart_and_a_failure_frees_the_place() -> None:
    places = Places(2)
    with places.one(PROGRAM):
        assert refused(places, PROGRAM) == "own_exports_full"
        assert refused(places, OTHER_PROGRAM) is None
    with pytest.raises(KeyError), places.one(PROGRAM):
        raise KeyError
    assert refused(places, PROGRAM) is None
