"""Places for answers that take long to send: so many at once, and half of them for one person.

A place is taken before anything is done for the answer and is free again when that is over, however it ends.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from camserver.base.errors import Unavailable
from camserver.base.log import get_logger
from camserver.domain.people import Principal

log = get_logger(__name__)

# Whoever it is: a person, by any of their sign-ins; a token; the local admin token of a tenant.
Who = tuple[int, int | None, int | None]


class Places:
    def __init__(self, places_max: int) -> None:
        self._places_max = places_max
        self._taken: Counter[Who] = Counter()

    @contextmanager
    def one(self, principal: Principal) -> Iterator[None]:
        """A place, for as long as this lasts. Unavailable when there is none."""
        who = _who(principal)
        if self._taken.total() >= self._places_max:
            log.warning("too many exports are under way at once", taken=self._taken.total())
            raise Unavailable("too many exports are under way at once; try again later", reason="exports_full")
        # One at least, where there is one only.
        own_max = (self._places_max + 1) // 2
        if self._taken[who] >= own_max:
            raise Unavailable(
                f"you have {own_max} exports under way, and others need places, too; wait for one to end",
                reason="own_exports_full",
                exports_max=own_max,
            )
        self._taken[who] += 1
        try:
            yield
        finally:
            self._taken[who] -= 1
            self._taken += Counter()  # forgets those that are at zero


def _who(principal: Principal) -> Who:
    return principal.tenant_id, principal.user_id, None if principal.user_id is not None else principal.token_id
