"""What a body or a query names, besides what the address does: another site's and another tenant's things are not
there for whoever names them, and a token does what is among its scopes and nothing else.

Which fields name things is read from the API document, so a new one fails until it is listed here.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from camserver.domain.people import PERMISSIONS, Permission, Role
from camserver.services.web.access import Gate
from camserver.services.web.app import build_api
from camserver.services.web.openapi import described
from camserver.store import Store
from tests.rig.clock import ManualClock
from tests.services.web.rig import PASSWORD, Reply, RunningWeb, running_web
from tests.services.web.test_matrix import (
    ENVIRON,
    NARROW,
    PEOPLE,
    ROUTES,
    SOURCE,
    STREAMS,
    Person,
    Town,
    belted_web,
    key_of,
    make_town,
)

__all__ = ["belted_web"]  # a fixture

# Fields that name a thing of a site or of a tenant.
NAMING_FIELDS = {"camera_id", "camera_ids", "case", "event", "errand_uuid", "frame_uuid", "grants", "incident"}
NAMING_FIELDS |= {"last_event_uuid", "lease_id", "parent", "receiver", "receiver_uuid", "receivers", "rule_uuids"}
NAMING_FIELDS |= {"session_id", "site", "sites", "user", "uuid", "who", "worker_id", "archive_file_id", "tenant"}

Named = tuple[str, str, str]  # method, path, field

EVENT_SHEET = {"name": "s", "form": "csv", "categories": [{"name": "a", "definition": "b"}]}
# How each is asked with somebody else's thing; `{}` is beyond or foreign.
BODIES: Mapping[Named, dict[str, Any]] = {
    ("POST", "/api/cameras", "site"): {"camera_id": "new", "name": "New", "site": "site-{}", "source": SOURCE},
    ("PATCH", "/api/cameras/cam-near", "site"): {"site": "site-{}"},
    ("POST", "/api/cameras/cam-near/move", "errand_uuid"): {"errand_uuid": "errand-{}"},
    ("POST", "/api/cameras/cam-near/pin", "worker_id"): {"worker_id": "worker-{}"},
    ("POST", "/api/cameras/cam-near/reassign", "worker_id"): {"worker_id": "worker-{}"},
    ("POST", "/api/cases/CASE/items", "uuid"): {"kind": "frame", "uuid": "frame-{}"},
    ("POST", "/api/deliveries/requeue", "receiver_uuid"): {"receiver_uuid": "RECEIVER"},
    ("POST", "/api/discovery", "site"): {"site": "site-{}"},
    ("POST", "/api/flags", "site"): {"name": "assignment.style", "value": "pack", "site": "site-{}"},
    ("POST", "/api/incidents/incident-near/review", "last_event_uuid"): {"last_event_uuid": "event-{}"},
    ("POST", "/api/leases/reclaim", "camera_id"): {"camera_id": "cam-{}"},
    ("POST", "/api/media/link", "frame_uuid"): {"frame_uuid": "frame-{}", "kind": "infer"},
    ("POST", "/api/media/link", "archive_file_id"): {"frame_uuid": "frame-{}", "archive_file_id": "a/b.jpg"},
    ("POST", "/api/modal/lease", "camera_id"): {"camera_id": "cam-{}"},
    ("POST", "/api/notify/rules", "camera_ids"): {"name": "r", "camera_ids": ["cam-{}"]},
    ("POST", "/api/notify/rules", "sites"): {"name": "r", "sites": ["site-{}"]},
    ("POST", "/api/notify/rules", "receivers"): {"name": "r", "receivers": ["RECEIVER"]},
    ("POST", "/api/notify/rules/order", "rule_uuids"): {"rule_uuids": ["RULE"]},
    ("PATCH", "/api/notify/rules/OWN", "camera_ids"): {"name": "r", "camera_ids": ["cam-{}"]},
    ("PATCH", "/api/notify/rules/OWN", "sites"): {"name": "r", "sites": ["site-{}"]},
    ("PATCH", "/api/notify/rules/OWN", "receivers"): {"name": "r", "receivers": ["RECEIVER"]},
    ("POST", "/api/probes", "site"): {"site": "site-{}", "source": SOURCE},
    ("POST", "/api/shares", "uuid"): {"kind": "event", "uuid": "event-{}"},
    ("POST", "/api/snoozes", "camera_id"): {"duration_sec": 60, "camera_id": "cam-{}"},
    ("POST", "/api/snoozes", "site"): {"duration_sec": 60, "site": "site-{}"},
    ("POST", "/api/snoozes", "receiver_uuid"): {"duration_sec": 60, "receiver_uuid": "RECEIVER"},
    ("POST", "/api/suggest/manual", "camera_id"): {"camera_id": "cam-{}", "duration_sec": 60},
    ("POST", "/api/tokens", "user"): {"name": "t", "user": "somebody-{}"},
    ("POST", "/api/users", "grants"): {"login": "n", "grants": {"sites": ["site-{}"]}},
    ("POST", "/api/users", "sites"): {"login": "n", "grants": {"sites": ["site-{}"]}},
    ("POST", "/api/users", "camera_ids"): {"login": "n", "grants": {"camera_ids": ["cam-{}"]}},
    ("PATCH", "/api/users/viewer", "grants"): {"grants": {"sites": ["site-{}"]}},
    ("PATCH", "/api/users/viewer", "sites"): {"grants": {"sites": ["site-{}"]}},
    ("PATCH", "/api/users/viewer", "camera_ids"): {"grants": {"camera_ids": ["cam-{}"]}},
    ("POST", "/api/workers/enrolments", "site"): {"site": "site-{}"},
    ("POST", "/api/workers/enrolments", "worker_id"): {"site": "site-near", "worker_id": "worker-{}"},
    ("POST", "/v1/streams/start", "camera_id"): {"camera_id": "cam-{}"},
}
# What is named there is of the whole tenant, so there is nothing beyond one's grants to name.
WITHOUT_BEYOND = {
    (method, path, field)
    for method, path, field in BODIES
    if field in ("receiver_uuid", "receivers", "rule_uuids", "user")
}
QUERIES: Mapping[Named, str] = {
    **{("GET", path, "camera_id"): "cam-{}" for path in ("/api/events", "/api/incidents", "/api/incidents/counts")},
    **{("GET", path, "camera_id"): "cam-{}" for path in ("/api/jobs", "/api/notifications", "/api/search")},
    **{("GET", path, "camera_id"): "cam-{}" for path in ("/api/search/facets", "/api/statistics", "/api/timeline")},
    **{("GET", path, "site"): "site-{}" for path in ("/api/cameras", "/api/events", "/api/incidents")},
    **{("GET", path, "site"): "site-{}" for path in ("/api/incidents/counts", "/api/search", "/api/search/facets")},
    **{("GET", path, "site"): "site-{}" for path in ("/api/statistics", "/api/summaries", "/api/timeline")},
    ("GET", "/api/workers", "site"): "site-{}",
    **{("GET", path, "event"): "event-{}" for path in ("/api/deliveries", "/api/notify/preview")},
    ("GET", "/api/deliveries", "parent"): "delivery-{}",
    ("GET", "/api/deliveries", "receiver"): "RECEIVER",
    ("GET", "/api/events", "incident"): "incident-{}",
    **{("GET", path, "case"): "CASE" for path in ("/api/search", "/api/search/facets")},
    ("GET", "/api/tokens", "user"): "somebody-{}",
}
# Judged elsewhere, with why.
ELSEWHERE: Mapping[Named, str] = {
    ("GET", "/api/audit", "who"): "names people in entries of one's own tenant, also of removed ones",
    ("POST", "/api/audit/verify", "tenant"): "the installation's chains are for system administrators (test_audit)",
    ("POST", "/api/cameras", "camera_id"): "what a new camera is called",
    **{("POST", path, "user"): "a camera's login" for path in ("/api/cameras", "/api/discovery", "/api/probes")},
    ("PATCH", "/api/cameras/{camera_id}", "user"): "a camera's login",
    ("POST", "/api/imports", "site"): "answers for each camera (test_matrix)",
    ("POST", "/api/jobs/requeue", "camera_ids"): "names several, and tells how many it found (below)",
    ("POST", "/api/tenants", "site"): "the name of a site that is made with it",
    ("POST", "/v1/streams/start", "lease_id"): "one's own only, by sign-in (test_viewings)",
    ("POST", "/v1/streams/stop", "session_id"): "one's own only, by sign-in (test_viewings)",
    **{
        ("POST", "/api/scoring/event-sheets", field): "a search in the caller's name (below)"
        for field in ("camera_ids", "case", "sites")
    },
}
# Of routes that name it in their address, too.
IN_ADDRESS = {"CASE": "{case_uuid}", "OWN": "{rule_uuid}", "cam-near": "{camera_id}", "viewer": "{user}"}
IN_ADDRESS |= {"incident-near": "{incident_uuid}"}


def _fields(schema: dict[str, Any], known: dict[str, Any], seen: tuple[str, ...] = ()) -> Iterator[str]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name not in seen:
            yield from _fields(known[name], known, (*seen, name))
        return
    for name, field in schema.get("properties", {}).items():
        yield name
        yield from _fields(field, known, seen)
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            yield from _fields(one, known, seen)
    if isinstance(schema.get("items"), dict):
        yield from _fields(schema["items"], known, seen)


def _asked_for() -> set[Named]:
    """Every field of a body or a query that names a thing."""
    document = described(build_api())
    found: set[Named] = set()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            names = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
            for content in operation.get("requestBody", {}).get("content", {}).values():
                names |= set(_fields(content.get("schema", {}), document["components"]["schemas"]))
            found |= {(method.upper(), path, name) for name in names & NAMING_FIELDS}
    return found


def _template(path: str) -> str:
    for name, part in IN_ADDRESS.items():
        path = path.replace(name, part)
    return path


def test_whatever_names_a_thing_is_listed() -> None:
    listed = {(method, _template(path), field) for method, path, field in (*BODIES, *QUERIES)} | set(ELSEWHERE)
    assert _asked_for() == listed


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    async with running_web(sqlite_store, clock, tmp_path, ENVIRON) as running:
        yield running


def _named(town: Town, text: str, where: str) -> str:
    """With the things of a place; those of a whole tenant are the other tenant's."""
    text = text.replace("{}", where)
    for word, part in (("CASE", "case_uuid"), ("RECEIVER", "receiver_uuid"), ("RULE", "rule_uuid")):
        text = text.replace(word, town.uuids[part, "foreign"])
    return text


async def _ask(town: Town, who: Person, named: Named, where: str) -> Reply:
    method, path, field = named
    for word, part in (("CASE", "case_uuid"), ("OWN", "rule_uuid")):
        path = path.replace(word, town.uuids[part, "near"])
    browser = town.browsers[who.login]
    if named in QUERIES:
        days = "&day=2026-01-01" if path == "/api/timeline" else ""
        return await browser.get(f"{path}?{field}={_named(town, QUERIES[named], where)}{days}")
    body = json.loads(_named(town, json.dumps(BODIES[named]), where))
    return await browser.ask(method, path, body)


def _needs(named: Named) -> Permission | Gate:
    method, path, _ = named
    [route] = [route for route in ROUTES if key_of(route) == (method, _template(path))]
    return route.needs


def _may(who: Person, named: Named) -> bool:
    needs = _needs(named)
    return not isinstance(needs, Permission) or needs in PERMISSIONS[who.role]


def _is_silent(reply: Reply, named: Named) -> bool:
    """Refused, or told nothing of it: a filter that fits nothing finds nothing."""
    if reply.status >= 400:
        return reply.status in (400, 403, 404, 409, 422)
    if named not in QUERIES:
        return False
    told = reply.content.decode()
    return not any(name in told for name in ("event-beyond", "event-foreign", "cam-beyond", "cam-foreign"))


async def _wrong(town: Town, who: Person, where: str) -> list[tuple[Named, int]]:
    found = []
    for named in (*BODIES, *QUERIES):
        if not _may(who, named) or (where == "beyond" and named in WITHOUT_BEYOND):
            continue
        reply = await _ask(town, who, named, where)
        if not _is_silent(reply, named):
            found.append((named, reply.status))
    return found


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_what_is_another_tenants_can_not_be_named(web: RunningWeb, who: Person) -> None:
    town = await make_town(web)
    # A worker's name is free where another tenant has one of it.
    free = ("POST", "/api/workers/enrolments", "worker_id")
    assert [one for one in await _wrong(town, who, "foreign") if one[0] != free] == []


@pytest.mark.parametrize("who", NARROW, ids=lambda one: one.login)
async def test_what_is_beyond_ones_grants_can_not_be_named(web: RunningWeb, who: Person) -> None:
    town = await make_town(web)
    assert await _wrong(town, who, "beyond") == []


async def test_nothing_beyond_is_named_behind_row_level_security(belted_web: RunningWeb) -> None:
    town = await make_town(belted_web)
    [manager] = [one for one in PEOPLE if one.login == "site-manager"]
    assert await _wrong(town, manager, "beyond") == []


async def test_many_that_are_named_at_once_are_only_ones_own(web: RunningWeb) -> None:
    town = await make_town(web)
    body = {"camera_ids": ["cam-beyond", "cam-foreign"]}
    reply = await town.browsers["site-manager"].post("/api/jobs/requeue", body)
    assert reply.status == 404 or reply.body["requeued"] == 0, reply.content


# ---------------------------------------------------------------------------------------------------------------
# Scopes
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", sorted(PERMISSIONS[Role.SYSTEM_ADMIN]))
async def test_a_token_does_what_is_among_its_scopes_and_nothing_else(web: RunningWeb, scope: Permission) -> None:
    """Of somebody who may do everything: over every route that needs something else it is refused as lacking it."""
    town = await make_town(web)
    made = await town.browsers["installation"].post("/api/tokens", {"name": "narrow", "scopes": [scope.value]})
    program, headers = web.browser(), {"Authorization": f"Bearer {made.body['secret']}"}
    wrong = []
    for route in ROUTES:
        method, path = key_of(route)
        if route.needs is Gate.PUBLIC or (method, path) in STREAMS:
            continue
        body: dict[str, str] | None = None if method in ("GET", "DELETE") else {}
        reply = await program.ask(method, town.address(path, "foreign"), body, headers)
        details = reply.body.get("details", {}) if reply.status == 403 else {}
        if isinstance(route.needs, Permission) and route.needs is not scope:
            expected = {"reason": "lacks_scope", "permission": route.needs.value}
            is_right = (reply.status, details) == (403, expected)
        elif route.needs is Gate.SESSION:
            is_right = (reply.status, details.get("reason")) == (403, "needs_session")
        else:
            is_right = reply.status != 401 and details.get("reason") != "lacks_scope"
        if not is_right:
            wrong.append((method, path, reply.status, details))
    assert wrong == []
    refused = 101 if scope is Permission.READ else 403
    async with asyncio.timeout(60):
        assert await _handshake(web, headers) == refused


async def _handshake(web: RunningWeb, headers: dict[str, str]) -> int:
    """The status that the feed's socket answers with."""
    asked = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    asked["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    async with web.browser().http.get(f"{web.url}/api/feed", headers={**asked, **headers}) as response:
        return response.status


async def test_what_a_role_lost_is_refused_to_its_tokens(web: RunningWeb) -> None:
    town = await make_town(web)
    owner = town.browsers["installation"]
    made = await town.browsers["manager"].post("/api/tokens", {"name": "t", "scopes": ["read", "manage_cameras"]})
    headers = {"Authorization": f"Bearer {made.body['secret']}"}
    change = ("PATCH", "/api/cameras/cam-near", {"name": "new"}, headers)
    assert (await web.browser().ask(*change)).status == 200
    assert (await owner.ask("PATCH", "/api/users/manager", {"grants": {"sites": ["site-beyond"]}})).status == 200
    assert (await web.browser().ask(*change)).status == 404
    assert (await owner.ask("PATCH", "/api/users/manager", {"role": "viewer"})).status == 200
    assert (await web.browser().ask(*change)).status == 403
    assert (await web.browser().sign_in("manager", PASSWORD)).status == 201
