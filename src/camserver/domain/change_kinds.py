"""What the change feed tells of. The table of kinds in docs/ref/api.md says what each means."""

from collections.abc import Mapping
from typing import Literal, get_args

from camserver.domain.people import Permission, Principal

ChangeKind = Literal[
    "camera",
    "case",
    "delivery",
    "event",
    "frame",
    "incident",
    "look",
    "receiver",
    "retention",
    "session",
    "site",
    "suggestion",
    "summary",
]
# What whoever is told of changes of a kind must be allowed to do; others are for everybody who reaches the place.
NEEDED: Mapping[str, Permission] = {"case": Permission.INVESTIGATE}


def concerns(kind: str, site_id: int | None, camera_key: int | None, principal: Principal) -> bool:
    """Whether somebody is told of a change. One without a site is of the whole tenant."""
    needed = NEEDED.get(kind)
    if needed is not None and not principal.may(needed):
        return False
    return site_id is None or principal.reaches(site_id, camera_key)


CHANGE_KINDS: frozenset[str] = frozenset(get_args(ChangeKind))
