import itertools
import pickle

import pytest

from camserver.base.errors import BadInput, Forbidden
from camserver.domain.people import (
    PERMISSIONS,
    Permission,
    Principal,
    Role,
    check_password,
    session_expires_at,
    session_needs_touch,
    setup_link_works,
)

from .build import SEC, T0

HOUR = 3600 * SEC


def principal(role: Role, **changes: object) -> Principal:
    return Principal(**{"tenant_id": 1, "user_id": 2, "role": role, **changes})  # type: ignore[arg-type]


def test_every_role_has_its_permissions_and_people_only_grow_in_them() -> None:
    assert set(PERMISSIONS) == set(Role)
    ladder = [Role.VIEWER, Role.SITE_MANAGER, Role.TENANT_ADMIN, Role.SYSTEM_ADMIN]
    for lower, higher in itertools.pairwise(ladder):
        assert PERMISSIONS[lower] < PERMISSIONS[higher]
    assert set().union(*PERMISSIONS.values()) == set(Permission)


def test_a_machine_captures_and_nothing_else_and_no_person_captures() -> None:
    assert PERMISSIONS[Role.WORKER] == {Permission.CAPTURE}
    assert [role for role in Role if Permission.CAPTURE in PERMISSIONS[role]] == [Role.WORKER]


@pytest.mark.parametrize(
    ("role", "permission", "allowed"),
    [
        (Role.VIEWER, Permission.READ, True),
        (Role.VIEWER, Permission.MANAGE_CAMERAS, False),
        (Role.VIEWER, Permission.INVESTIGATE, False),
        (Role.SITE_MANAGER, Permission.MANAGE_CAMERAS, True),
        (Role.SITE_MANAGER, Permission.MANAGE_PEOPLE, False),
        (Role.SITE_MANAGER, Permission.INVESTIGATE, False),
        (Role.TENANT_ADMIN, Permission.MANAGE_PEOPLE, True),
        (Role.TENANT_ADMIN, Permission.MANAGE_SYSTEM, False),
        (Role.SYSTEM_ADMIN, Permission.MANAGE_SYSTEM, True),
        (Role.WORKER, Permission.READ, False),
    ],
)
def test_the_permission_table(role: Role, permission: Permission, allowed: bool) -> None:
    who = principal(role)
    assert who.may(permission) is allowed
    if allowed:
        who.require(permission)
    else:
        with pytest.raises(Forbidden, match=permission.value):
            who.require(permission)


def test_a_principal_reaches_all_sites_or_those_named() -> None:
    assert principal(Role.TENANT_ADMIN).reaches(9)
    limited = principal(Role.VIEWER, site_ids=frozenset({3}))
    assert limited.reaches(3)
    assert not limited.reaches(4)
    assert not principal(Role.VIEWER, site_ids=frozenset()).reaches(3)


def test_a_principal_crosses_processes() -> None:
    who = principal(Role.VIEWER, site_ids=frozenset({3}), session_id=8)
    assert pickle.loads(pickle.dumps(who)) == who


@pytest.mark.parametrize("password", ["correct horse", "0123456789", "あいうえおかきくけこ", "x" * 200 + "abcd"])
def test_good_passwords(password: str) -> None:
    check_password(password, "admin")


@pytest.mark.parametrize(
    ("password", "says"),
    [
        ("", "too short"),
        ("012345678", "too short"),
        ("abcd" * 65, "too long"),
        ("administrator", "login"),
        ("Administrator ", "login"),
        ("aaaaaaaaaaaa", "same few"),
        ("abababababab", "same few"),
    ],
)
def test_refused_passwords_say_why_and_are_not_repeated(password: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as refusal:
        check_password(password, "Administrator")
    assert not password or password not in refusal.value.message


@pytest.mark.parametrize(
    ("age_ms", "used", "works"),
    [(0, False, True), (HOUR - 1, False, True), (HOUR, False, False), (0, True, False), (-1, False, False)],
)
def test_a_set_up_link_works_once_within_its_hour(age_ms: int, used: bool, works: bool) -> None:
    assert setup_link_works(T0, T0 if used else None, T0 + age_ms) is works


@pytest.mark.parametrize(
    ("used_after_ms", "ends_after_ms"),
    [(0, 2 * HOUR), (HOUR, 3 * HOUR), (10 * HOUR, 12 * HOUR), (11 * HOUR, 12 * HOUR)],
)
def test_use_keeps_a_sign_in_alive_but_never_past_its_hours(used_after_ms: int, ends_after_ms: int) -> None:
    assert session_expires_at(T0, T0 + used_after_ms, 12) == T0 + ends_after_ms


def test_a_sign_in_of_one_hour_ends_after_it() -> None:
    assert session_expires_at(T0, T0, 1) == T0 + HOUR


def test_a_sign_ins_use_is_written_once_a_minute() -> None:
    assert not session_needs_touch(T0, T0 + 59 * SEC)
    assert session_needs_touch(T0, T0 + 60 * SEC)
