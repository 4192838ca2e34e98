"""Rules about tenants."""

import pytest

from camserver.base.errors import BadInput, CamError, Conflict, Forbidden
from camserver.domain.people import Role, check_role_in_tenant
from camserver.domain.tenants import (
    Quota,
    Use,
    check_erasure,
    kept_bytes_max,
    name_of,
    refuse_home,
    require_home,
    require_room,
    short_of,
)


@pytest.mark.parametrize("role", list(Role))
def test_only_the_home_tenant_has_system_administrators(role: Role) -> None:
    check_role_in_tenant(role, is_home=True)
    if role is Role.SYSTEM_ADMIN:
        with pytest.raises(Forbidden):
            check_role_in_tenant(role, is_home=False)
    else:
        check_role_in_tenant(role, is_home=False)


@pytest.mark.parametrize(
    ("used", "most", "is_full", "is_short"),
    [(5, None, False, False), (0, 1, False, False), (1, 1, True, True), (9, 10, False, True), (0, 0, True, True)],
)
def test_a_quota_refuses_one_more_and_warns_before(
    used: int, most: int | None, is_full: bool, is_short: bool
) -> None:
    use = Use(used, most)
    assert (Quota.CAMERAS in short_of({Quota.CAMERAS: use})) == is_short
    if not is_full:
        require_room(Quota.CAMERAS, use)
        return
    with pytest.raises(Conflict) as refused:
        require_room(Quota.CAMERAS, use)
    assert refused.value.details["quota"] == "cameras_max"
    assert "cameras_max" in refused.value.message


@pytest.mark.parametrize(
    ("installation", "quota", "bound"),
    [(0, None, 0), (5, None, 5), (0, 7, 7), (5, 7, 5), (7, 5, 5), (0, 0, 1)],
)
def test_the_lesser_bound_of_bytes_holds(installation: int, quota: int | None, bound: int) -> None:
    assert kept_bytes_max(installation, quota) == bound


@pytest.mark.parametrize("written", ["", "  ", "a/b", "a\nb", "x" * 129])
def test_names_that_none_can_have(written: str) -> None:
    with pytest.raises(BadInput):
        name_of(written)


def test_a_name_is_kept_without_space_around_it() -> None:
    assert name_of(" アクメ 株式会社 ") == "アクメ 株式会社"


@pytest.mark.parametrize(
    ("confirmed", "held", "also_held", "reason"),
    [
        ("acme", [], False, None),
        ("acme", ["theft"], True, None),
        ("Acme", [], False, "not_confirmed"),
        ("", [], False, "not_confirmed"),
        ("acme", ["theft"], False, "cases_held"),
        ("other", ["theft"], True, "not_confirmed"),
    ],
)
def test_what_an_erasure_asks_for(confirmed: str, held: list[str], also_held: bool, reason: str | None) -> None:
    if reason is None:
        check_erasure("acme", confirmed, held, also_held)
        return
    with pytest.raises(CamError) as refused:
        check_erasure("acme", confirmed, held, also_held)
    assert refused.value.details["reason"] == reason


def test_home_looks_after_tenants_and_stays() -> None:
    require_home(1, 1)
    with pytest.raises(Forbidden):
        require_home(2, 1)
    refuse_home(False, "erased")
    with pytest.raises(Conflict):
        refuse_home(True, "erased")
