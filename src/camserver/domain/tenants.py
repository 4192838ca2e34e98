"""Tenants: their names, their quotas, and what may be done to one. Rules only."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from camserver.base.errors import BadInput, Conflict, Forbidden
from camserver.domain.names import is_name

NAME_MAX_CHARS = 128
# People are warned from here on.
WARN_SHARE = 0.9


class Quota(StrEnum):
    """What a tenant can be bounded in. Named as the columns that hold the bounds; no bound: any number."""

    CAMERAS_RUNNING = "cameras_running_max"
    CAMERAS = "cameras_max"
    PEOPLE = "people_max"
    SITES = "sites_max"
    KEPT_BYTES = "kept_bytes_max"


# What counts against a quota, in words.
_COUNTED = {
    Quota.CAMERAS_RUNNING: "running cameras",
    Quota.CAMERAS: "cameras",
    Quota.PEOPLE: "people",
    Quota.SITES: "sites",
    Quota.KEPT_BYTES: "bytes of pictures and clips",
}


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a quota is taken."""

    used: int
    most: int | None


def require_room(quota: Quota, use: Use) -> None:
    """Conflict when one more would be too many."""
    if use.most is not None and use.used >= use.most:
        raise Conflict(
            f"the tenant's quota {quota} is reached: {use.used} of {use.most} {_COUNTED[quota]}; remove some, or ask "
            "whoever runs this server for more",
            reason="quota",
            quota=quota.value,
            used=use.used,
            most=use.most,
        )


def short_of(uses: Mapping[Quota, Use]) -> tuple[Quota, ...]:
    """Quotas that are reached or nearly so."""
    return tuple(quota for quota, use in uses.items() if use.most is not None and use.used >= use.most * WARN_SHARE)


def kept_bytes_max(installation_max: int, quota: int | None) -> int:
    """The bound that holds of the installation's (0: none) and the tenant's own; 0: none."""
    bounds = [bound for bound in (installation_max or None, quota) if bound is not None]
    # A quota of 0 means that nothing ordinary is kept, where 0 of the setting means that there is no bound.
    return max(min(bounds), 1) if bounds else 0


def name_of(written: str) -> str:
    """A tenant's name as it is kept; BadInput when it can't be one."""
    name = written.strip()
    if len(name) > NAME_MAX_CHARS or not is_name(name) or "/" in name:
        raise BadInput(
            f"a tenant's name has 1 to {NAME_MAX_CHARS} characters that can be shown, and no slash; change it",
            reason="tenant_name",
        )
    return name


def require_home(tenant_id: int, home_id: int) -> None:
    """Forbidden unless somebody belongs to the tenant that the installation began with."""
    if tenant_id != home_id:
        raise Forbidden("only the tenant that the installation began with looks after tenants", reason="not_home")


def refuse_home(is_home: bool, deed: str) -> None:
    if is_home:
        raise Conflict(
            f"the tenant that the installation began with can't be {deed}; everything else hangs on it",
            reason="tenant_is_home",
            deed=deed,
        )


def check_erasure(name: str, confirmed: str, held_cases: Collection[str], also_held: bool) -> None:
    """Raises, saying why, unless the tenant may be erased now."""
    if confirmed != name:
        raise BadInput(
            f"erasing can't be undone: to confirm, repeat the tenant's name {name!r} exactly", reason="not_confirmed"
        )
    if held_cases and not also_held:
        raise Conflict(
            f"the tenant has {len(held_cases)} cases on hold (such as {min(held_cases)!r}); end the holds, or say "
            "that these are to be erased too",
            reason="cases_held",
            cases=len(held_cases),
        )
