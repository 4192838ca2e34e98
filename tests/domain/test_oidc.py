"""Who a token names, and whether they may come in."""

from typing import Any

import pytest

from camserver.base.errors import BadInput
from camserver.domain.oidc import (
    Claimed,
    Entry,
    EntryRules,
    Failure,
    Known,
    OidcRefused,
    Way,
    claimed,
    decide,
    is_meant_for,
    parse_roles,
    role_of,
    safe_target,
)
from camserver.domain.people import Role


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        ("/events?camera=gate#now", "/events?camera=gate#now"),
        ("/", "/"),
        ("", "/"),
        ("events", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/a\\b", "/"),
        ("/\t/evil.example", "/"),
        ("/\n//evil.example", "/"),
        ("/a b", "/"),
        ("/é", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/" + "a" * 1024, "/"),
    ],
)
def test_the_way_on_stays_within_this_site(wanted: str, target: str) -> None:
    assert safe_target(wanted) == target


@pytest.mark.parametrize(
    ("claims", "fits"),
    [
        ({"aud": "me"}, True),
        ({"aud": ["me"]}, True),
        ({"aud": "me", "azp": "me"}, True),
        ({"aud": ["me", "you"], "azp": "me"}, True),
        ({"aud": ["me", "you"]}, False),
        ({"aud": ["me", "you"], "azp": "you"}, False),
        ({"aud": "me", "azp": "you"}, False),
        ({"aud": "you", "azp": "me"}, False),
        ({"aud": "men"}, False),
        ({"aud": ["you"]}, False),
        ({}, False),
    ],
)
def test_a_token_is_for_whom_it_was_made(claims: dict[str, Any], fits: bool) -> None:
    assert is_meant_for("me", claims) is fits


@pytest.mark.parametrize(
    ("claims", "login_claim", "login"),
    [
        ({"preferred_username": " Kato "}, "preferred_username", "kato"),
        ({"preferred_username": "加藤"}, "preferred_username", None),
        ({"preferred_username": 7}, "preferred_username", None),
        ({}, "preferred_username", None),
        ({"email": "kato@site.example", "email_verified": True}, "email", "kato@site.example"),
        ({"email": "kato@site.example"}, "email", None),
        ({"email": "kato@site.example", "email_verified": "true"}, "email", None),
    ],
)
def test_a_login_is_told_in_a_form_that_can_be_one(
    claims: dict[str, Any], login_claim: str, login: str | None
) -> None:
    assert claimed({"sub": "1", **claims}, "i", login_claim, None).login == login


@pytest.mark.parametrize(
    ("claims", "name", "groups"),
    [
        ({"groups": ["a", 7, "*", "b"]}, "groups", {"a", "b"}),
        ({"groups": "a"}, "groups", {"a"}),
        ({"groups": {"a": 1}}, "groups", set()),
        ({"realm": {"roles": ["a"]}}, "realm.roles", {"a"}),
        ({"realm.roles": ["b"], "realm": {"roles": ["a"]}}, "realm.roles", {"b"}),
        ({"realm": "a"}, "realm.roles", set()),
        ({"groups": ["a"]}, None, set()),
    ],
)
def test_groups_are_found(claims: dict[str, Any], name: str | None, groups: set[str]) -> None:
    assert claimed({"sub": "1", **claims}, "i", "x", name).groups == groups


@pytest.mark.parametrize("subject", [None, 7, "", " ", "a ", " a", "a\n", "é", "a" * 256])
def test_a_subject_that_could_be_taken_for_another_is_refused(subject: object) -> None:
    with pytest.raises(OidcRefused) as caught:
        claimed({"sub": subject}, "i", "x", None)
    assert caught.value.failure is Failure.TOKEN


def test_a_display_name_is_printable_and_bounded() -> None:
    assert claimed({"sub": "1", "name": " 加藤\u202e\n "}, "i", "x", None).display_name == "加藤"
    assert len(claimed({"sub": "1", "name": "a" * 999}, "i", "x", None).display_name) == 128
    assert claimed({"sub": "1"}, "i", "x", None).display_name == "1"


ROLES = parse_roles(["guards=viewer", "a=b=tenant_admin", "chiefs = site_manager"])


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ({"guards"}, Role.VIEWER),
        ({"guards", "chiefs"}, Role.SITE_MANAGER),
        ({"a=b", "guards"}, Role.TENANT_ADMIN),
        ({"Guards"}, None),
        (set(), None),
    ],
)
def test_the_highest_role_of_the_groups_counts(groups: set[str], role: Role | None) -> None:
    assert role_of(groups, ROLES) is role


def test_everybody_is_in_one_group() -> None:
    assert role_of(set(), parse_roles(["*=viewer"])) is Role.VIEWER


@pytest.mark.parametrize("written", ["guards", "guards=", "=viewer", "guards=worker", "guards=boss"])
def test_what_is_no_role_of_a_group_is_refused(written: str) -> None:
    with pytest.raises(BadInput):
        parse_roles([written])


def known(**changes: Any) -> Known:
    return Known(**{"user_id": 1, "tenant_id": 1, "login": "kato", "role": Role.VIEWER, "disabled": False,
                    "is_linked": False, **changes})  # fmt: skip


WHO = Claimed("i", "s", "kato", "Kato", frozenset({"guards"}))
NAMELESS = Claimed("i", "s", None, "Kato", frozenset())
LINK, CREATE = EntryRules(link_by_login=True), EntryRules(create=True, create_role=Role.SITE_MANAGER)
BOTH = EntryRules(link_by_login=True, create=True)
MAPPED = EntryRules(create=True, roles=ROLES)


@pytest.mark.parametrize(
    ("who", "rules", "linked", "namesake", "outcome"),
    [
        (WHO, EntryRules(), known(is_linked=True), None, Entry(Way.COME_IN, None)),
        (WHO, MAPPED, known(is_linked=True), None, Entry(Way.COME_IN, Role.VIEWER)),
        (WHO, EntryRules(), known(disabled=True), None, Failure.DISABLED),
        (NAMELESS, MAPPED, known(is_linked=True), None, Failure.NO_GROUP),
        (NAMELESS, MAPPED, known(disabled=True), None, Failure.DISABLED),
        (WHO, EntryRules(), None, known(), Failure.UNKNOWN),
        (WHO, EntryRules(), None, None, Failure.UNKNOWN),
        (WHO, LINK, None, known(), Entry(Way.LINK, None)),
        (WHO, LINK, None, known(is_linked=True), Failure.LOGIN_TAKEN),
        (WHO, LINK, None, known(disabled=True), Failure.DISABLED),
        (WHO, LINK, None, None, Failure.UNKNOWN),
        (WHO, CREATE, None, None, Entry(Way.CREATE, Role.SITE_MANAGER)),
        (WHO, CREATE, None, known(), Failure.LOGIN_TAKEN),
        (WHO, BOTH, None, known(), Entry(Way.LINK, None)),
        (WHO, BOTH, None, None, Entry(Way.CREATE, Role.VIEWER)),
        (NAMELESS, CREATE, None, None, Failure.NO_LOGIN),
        (WHO, MAPPED, None, None, Entry(Way.CREATE, Role.VIEWER)),
        (NAMELESS, MAPPED, None, None, Failure.NO_GROUP),
    ],
)
def test_who_may_come_in(
    who: Claimed, rules: EntryRules, linked: Known | None, namesake: Known | None, outcome: Entry | Failure
) -> None:
    if isinstance(outcome, Entry):
        assert decide(who, rules, linked, namesake) == outcome
        return
    with pytest.raises(OidcRefused) as caught:
        decide(who, rules, linked, namesake)
    assert caught.value.failure is outcome
