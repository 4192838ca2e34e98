"""What a repeat is answered with, over every route that changes something (services/web/unkeyed.py has the rule)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from camserver.base.errors import Bug
from camserver.services.web.access import Gate
from camserver.services.web.once import HEADER, REPLAYED, Repeat
from camserver.services.web.routing import REPEAT, REPEAT_WHY, WRITES, GuardedRoute
from camserver.services.web.unkeyed import UNKEYED
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, Browser, Reply, RunningWeb, running_web
from tests.services.web.test_matrix import BODIES, ENVIRON, NAMING, ROUTES, Town, belted_web, key_of, make_town

__all__ = ["belted_web"]  # a fixture

WRITING = [route for route in ROUTES if WRITES & (route.methods or set())]
KEYED = [route for route in WRITING if route.repeat in (Repeat.ANSWER, Repeat.SECRET)]
SECRETS = {
    "/api/tokens",
    "/api/shares",
    "/api/tenants",
    "/api/tenants/{tenant}/admin-link",
    "/api/users",
    "/api/users/{user}/password-link",
    "/api/workers/enrolments",
}


def test_each_route_that_writes_takes_a_key_or_says_why_not() -> None:
    assert len(WRITING) > 80
    unkeyed = {key_of(route) for route in WRITING} - {key_of(route) for route in KEYED}
    assert unkeyed == set(UNKEYED)
    assert {route.path for route in KEYED if route.repeat is Repeat.SECRET} == SECRETS
    for route in WRITING:
        extra = route.openapi_extra or {}
        named = [one["name"] for one in extra.get("parameters", ())]
        assert (HEADER in named, REPEAT_WHY in extra) == (route in KEYED, route not in KEYED), route.path
    # Keys are a caller's: who is not signed in has none.
    assert not any(route.needs is Gate.PUBLIC for route in KEYED)


def test_a_route_that_says_nothing_of_repeats_is_not_built() -> None:
    async def write() -> None: ...

    with pytest.raises(Bug, match="what a repeat is answered with"):
        GuardedRoute("/api/new", write, methods=["POST"], openapi_extra={"x-permission": "read"})
    GuardedRoute("/api/new", write, methods=["GET"], openapi_extra={"x-permission": "read"})
    GuardedRoute("/api/new", write, methods=["POST"], openapi_extra={"x-permission": "read", REPEAT: "same"})


# What makes a request work that the matrix only asks for permission.
ASKED: dict[tuple[str, str], dict[str, Any]] = {
    **NAMING,
    **BODIES,
    ("POST", "/api/cases"): {"title": "A case"},
    ("POST", "/api/cameras/{camera_id}/probe"): {},
    ("POST", "/api/jobs/requeue"): {},
    ("POST", "/api/deliveries/requeue"): {},
    ("POST", "/api/notify/rules"): {"name": "another"},
    ("POST", "/api/receivers"): {"name": "h2", "kind": "webhook", "secrets": {"url": "https://hook.example/y"}},
    ("POST", "/api/flags"): {"name": "assignment.style", "value": "pack"},
    ("POST", "/api/quota"): {"cameras_running_max": 3},
    ("POST", "/api/sites"): {"name": "another"},
    ("POST", "/api/tokens"): {"name": "robot"},
    ("POST", "/api/users"): {"login": "another"},
    ("POST", "/api/tenants"): {"name": "acme", "admin": "kato"},
    ("POST", "/api/tenants/{tenant}/admin-link"): {"login": "kato"},
    ("POST", "/api/session/password"): {"password": PASSWORD, "new_password": PASSWORD + "2"},
    ("POST", "/api/incidents/{incident_uuid}/review"): {"severity_max": 2, "last_event_uuid": "event-near"},
    ("POST", "/api/vocabulary/active"): {"schema_version": "2025-12-28.1"},
    ("PATCH", "/api/tenants/{tenant}"): {"disabled": False},
    ("PATCH", "/api/scoring/sheets/{sheet_uuid}"): {},
    ("DELETE", "/api/tenants/{tenant}"): {"confirm": "acme"},
}
# Refused in this town, whose things are not in the state for it.
NOT_DONE = {
    ("POST", "/api/workers/{worker_id}/revoke"),
    ("POST", "/api/cameras/{camera_id}/move"),
    ("POST", "/api/cameras/{camera_id}/rediscover"),
    ("POST", "/api/jobs/{frame_uuid}/requeue"),
    ("POST", "/api/scoring/sheets"),
    ("POST", "/api/scoring/event-sheets"),
    ("POST", "/api/scoring/sheets/{sheet_uuid}/runs"),
    ("POST", "/api/vocabulary"),
    ("POST", "/api/notify/rules/order"),
    ("POST", "/api/deliveries/{delivery_uuid}/requeue"),
    ("DELETE", "/api/push/subscriptions/{subscription_uuid}"),
    ("DELETE", "/api/sites/{site}"),
}


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(sqlite_store, clock, tmp_path, ENVIRON) as running:
        yield running


def _turn(route: GuardedRoute) -> tuple[int, bool, int]:
    """Things are made, then changed, then removed: parts before the whole; people with what is theirs, and
    what cases hold, which ends shares of it, last."""
    method, path = key_of(route)
    is_last = "/users/" in path or "{case_uuid}" in path
    return ("POST", "PATCH", "DELETE").index(method), is_last, -path.count("/") if method == "DELETE" else 0


async def send(town: Town, who: Browser, route: GuardedRoute, key: str) -> Reply:
    method, path = key_of(route)
    body = ASKED.get((method, path))
    if body is not None:
        body = {
            name: value.replace("{}", "near") if isinstance(value, str) else value for name, value in body.items()
        }
    address = town.address(path.replace("{tenant}", "acme"), "near")
    return await who.ask(method, address, body, {HEADER: key})


async def test_a_repeat_of_each_is_told_what_the_first_was_told(web: RunningWeb) -> None:
    town = await make_town(web)
    who = town.browsers["installation"]
    not_done = set()
    for number, route in enumerate(sorted(KEYED, key=_turn)):
        first = await send(town, who, route, f"key-{number}")
        if first.status >= 400:
            not_done.add(key_of(route))
            continue
        again = await send(town, who, route, f"key-{number}")
        if route.repeat is Repeat.SECRET:
            assert (again.status, again.body["details"]["reason"]) == (409, "repeat_secret"), route.path
            continue
        told = (again.status, again.content, again.headers.get(REPLAYED))
        assert told == (first.status, first.content, "true"), key_of(route)
    assert not_done == NOT_DONE


async def test_the_same_behind_row_level_security(belted_web: RunningWeb) -> None:
    """Where each of them must also get through the role that is held to the caller's tenant."""
    await test_a_repeat_of_each_is_told_what_the_first_was_told(belted_web)


async def test_a_key_that_can_not_be_kept_is_refused(web: RunningWeb) -> None:
    town = await make_town(web)
    who = town.browsers["installation"]
    for route in WRITING:
        if route.repeat is Repeat.REFUSED:
            reply = await send(town, who, route, "k1")
            assert (reply.status, reply.body["details"]["reason"]) == (400, "request_key_refused"), route.path
    assert (await who.post("/api/audit/verify", {}, {HEADER: "k1"})).status == 200


async def test_a_late_repeat_undoes_nobody_elses_change(web: RunningWeb) -> None:
    """A change of name that is sent again after another one does not bring the old name back."""
    town = await make_town(web)
    mine, others = town.browsers["installation"], town.browsers["tenant"]
    address, key = "/api/cameras/cam-near", {HEADER: "k1"}
    assert (await mine.ask("PATCH", address, {"name": "Mine"}, key)).status == 200
    assert (await others.ask("PATCH", address, {"name": "Others"})).status == 200
    assert (await mine.ask("PATCH", address, {"name": "Mine"}, key)).body["name"] == "Mine"
    assert (await mine.get(address)).body["name"] == "Others"
