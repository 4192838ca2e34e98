"""Who may do what to whose: every route x every role x one's own, another site's and another tenant's things.

The routes come from the application itself. A route whose address names a thing that this page does not know, or that
names things in its body and is listed nowhere here, fails the build.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher

from camserver.domain.facts import DeliveryKind
from camserver.domain.people import PERMISSIONS, Permission, Role
from camserver.services.web.access import Gate
from camserver.services.web.routing import GuardedRoute
from camserver.store import Store, Tx, deliveries, errands, open_store, row_security, tenants
from camserver.store.belt import belted
from camserver.store.deliveries import NewDelivery
from camserver.store.errands import NewErrand
from tests.rig.clock import ManualClock
from tests.rig.databases import PostgresServer
from tests.rig.templates import PostgresTemplate
from tests.services.web.rig import PASSWORD, Browser, RunningWeb, api_routes, running_web
from tests.services.web.scoring_rows import add_run, add_sheet
from tests.store.people_rows import EventRow, FrameRow, add_event, add_frame, add_incident, add_user
from tests.store.test_row_security import ROLE, make_role, of_web

ROUTES = [route for route in api_routes() if isinstance(route, GuardedRoute)]
SOURCE = {"url": "rtsp://10.0.0.9/stream"}
# Of the clock of tests.
DAY = "2026-01-01"

# What an address names, by the name of its part; of the installation as a whole, or of whoever asks.
OF_SITE = {"camera_id", "event_uuid", "frame_uuid", "incident_uuid", "errand_uuid", "delivery_uuid", "snooze_uuid"}
OF_SITE |= {"site", "worker_id", "share_uuid"}
OF_TENANT = {"case_uuid", "receiver_uuid", "rule_uuid", "user", "token_uuid", "run_uuid", "sheet_uuid"}
OF_ALL = {"schema_version", "address", "subscription_uuid", "kind", "object_uuid", "token", "n", "tenant", "table"}
OF_ALL |= {"lease_id", "number", "document"}
# Bodies without which a request is refused before anybody looks whose thing it is about.
BODIES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/cameras/{camera_id}/move"): {"errand_uuid": "x1"},
    ("POST", "/api/cameras/{camera_id}/pin"): {"worker_id": "worker-near"},
    ("POST", "/api/cameras/{camera_id}/reassign"): {"worker_id": "worker-near"},
    ("POST", "/api/cases/{case_uuid}/items"): {"kind": "frame", "uuid": "frame-near"},
    ("POST", "/api/cases/{case_uuid}/notes"): {"body": "seen"},
    ("POST", "/api/scoring/runs/{run_uuid}/control"): {"wanted": "pause"},
    ("POST", "/api/tenants/{tenant}/admin-link"): {"login": "new-admin"},
    ("PATCH", "/api/notify/rules/{rule_uuid}"): {"name": "new"},
    ("PATCH", "/api/cameras/{camera_id}"): {"name": "new"},
    ("PATCH", "/api/sites/{site}"): {"timezone": "UTC"},
    ("PATCH", "/api/users/{user}"): {"display_name": "new"},
    ("PATCH", "/api/cases/{case_uuid}"): {"title": "new"},
    ("PATCH", "/api/receivers/{receiver_uuid}"): {"name": "new"},
}
# Routes that name things in body or query: with what, where `{}` is near, beyond or foreign.
NAMING: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", "/api/cameras"): {"camera_id": "new", "name": "New", "site": "site-{}", "source": SOURCE},
    ("POST", "/api/probes"): {"site": "site-{}", "source": SOURCE},
    ("POST", "/api/discovery"): {"site": "site-{}"},
    ("POST", "/api/snoozes"): {"duration_sec": 60, "camera_id": "cam-{}"},
    ("POST", "/api/leases/reclaim"): {"camera_id": "cam-{}"},
    ("POST", "/api/media/link"): {"frame_uuid": "frame-{}", "kind": "infer"},
    ("POST", "/api/shares"): {"kind": "event", "uuid": "event-{}"},
    ("POST", "/api/workers/enrolments"): {"site": "site-{}"},
    ("GET", "/api/notify/preview"): {"event": "event-{}"},
    ("POST", "/api/modal/lease"): {"camera_id": "cam-{}"},
    ("POST", "/v1/streams/start"): {"camera_id": "cam-{}"},
    ("POST", "/api/suggest/manual"): {"camera_id": "cam-{}", "duration_sec": 60},
}
# Lists and things of the caller's own or of the whole tenant: what they hold is judged by the lists' own tests.
WHOLE = {
    *(("GET", path) for path in ("/api/cameras", "/api/cases", "/api/changes", "/api/deliveries", "/api/flags")),
    *(("GET", path) for path in ("/api/events", "/api/incidents", "/api/search", "/api/search/facets")),
    *(("GET", path) for path in ("/api/timeline", "/api/incidents/counts")),
    *(("GET", path) for path in ("/api/audit", "/api/audit/seals", "/api/audit/chains", "/api/audit/export")),
    ("POST", "/api/audit/verify"),
    *(("GET", path) for path in ("/api/jobs", "/api/jobs/counts", "/api/jobs/status", "/api/leases")),
    *(("GET", path) for path in ("/api/llm/budget", "/api/notifications", "/api/notify/rules", "/api/push/key")),
    *(("GET", path) for path in ("/api/push/subscriptions", "/api/quota", "/api/receivers", "/api/retention")),
    *(("GET", path) for path in ("/api/retention/preview", "/api/session", "/api/sessions", "/api/sites")),
    ("GET", "/api/shares"),
    ("GET", "/api/feed/events"),
    *(("GET", path) for path in ("/api/snoozes", "/api/statistics", "/api/summaries", "/api/system/status")),
    *(("GET", path) for path in ("/api/scoring", "/api/scoring/runs", "/api/scoring/sheets")),
    *(("POST", path) for path in ("/api/scoring/sheets", "/api/scoring/event-sheets")),
    *(("GET", path) for path in ("/api/tokens", "/api/users", "/api/vocabulary", "/api/vocabulary/versions")),
    *(
        ("GET", path)
        for path in ("/api/settings", "/api/workers", "/healthz", "/readyz", "/metrics", "/api/openapi.json")
    ),
    *(("GET", path) for path in ("/api/oidc", "/api/oidc/start", "/api/oidc/callback", "/api/tenants")),
    *(("POST", path) for path in ("/api/cases", "/api/credentials/rotate", "/api/deliveries/requeue", "/api/flags")),
    ("POST", "/api/imports"),
    ("GET", "/api/suggest"),
    ("DELETE", "/api/suggest"),
    ("POST", "/v1/streams/stop"),
    *(("POST", path) for path in ("/api/jobs/requeue", "/api/notify/rules", "/api/notify/rules/order")),
    *(("POST", path) for path in ("/api/password-links/look", "/api/password-links/use", "/api/push/subscriptions")),
    *(("POST", path) for path in ("/api/quota", "/api/receivers", "/api/retention/run", "/api/session")),
    *(("POST", path) for path in ("/api/session/password", "/api/setup", "/api/setup/link", "/api/sites")),
    *(("POST", path) for path in ("/api/tokens", "/api/users", "/api/vocabulary", "/api/vocabulary/active")),
    ("POST", "/api/tenants"),
    *(("DELETE", path) for path in ("/api/session", "/api/sessions")),
}

# The things near have no picture, clip, result, certificate, job or found address to answer with.
NOTHING_THERE = {
    *(("GET", path) for path in ("/api/cameras/{camera_id}/latest.jpg", "/api/frames/{frame_uuid}/picture")),
    *(("GET", path) for path in ("/api/errands/{errand_uuid}/picture", "/api/events/{event_uuid}/clip")),
    ("GET", "/api/scoring/runs/{run_uuid}/result"),
    *(("POST", path) for path in ("/api/workers/{worker_id}/revoke", "/api/cameras/{camera_id}/rediscover")),
    ("POST", "/api/jobs/{frame_uuid}/requeue"),
}
# About a site or its workers: whoever was granted a camera of it does not reach them.
OF_WHOLE_SITE = {
    ("PATCH", "/api/sites/{site}"),
    *(("POST", path) for path in ("/api/cameras", "/api/probes", "/api/discovery", "/api/workers/enrolments")),
    *(("POST", path) for path in ("/api/workers/{worker_id}/drain", "/api/workers/{worker_id}/undrain")),
    *(("POST", path) for path in ("/api/cameras/{camera_id}/reassign", "/api/cameras/{camera_id}/pin")),
}
# Only who manages cameras shares what is seen (`media.shares`), and ends what others share.
OF_SHARERS = {("POST", "/api/shares"): 403, ("DELETE", "/api/shares/{share_uuid}"): 404}


# Answers without an end: only how they begin is asked for.
STREAMS = {("GET", "/api/feed/events")}


def key_of(route: GuardedRoute) -> tuple[str, str]:
    [method] = route.methods or set()
    return method, route.path


def parts_of(path: str) -> set[str]:
    return {part.partition(":")[0] for part in re.findall(r"\{([\w:]+)\}", path)}


def test_every_route_is_in_the_matrix() -> None:
    unknown = {part for route in ROUTES for part in parts_of(route.path)} - OF_SITE - OF_TENANT - OF_ALL
    assert not unknown, f"say here whose these are: {sorted(unknown)}"
    plain = {key_of(route) for route in ROUTES if not parts_of(route.path)}
    assert plain == set(NAMING) | WHOLE


@dataclass(frozen=True, slots=True)
class Person:
    login: str
    role: Role
    grants: dict[str, list[str]] | None = None


PEOPLE = (
    Person("installation", Role.SYSTEM_ADMIN),
    Person("tenant", Role.TENANT_ADMIN),
    Person("manager", Role.SITE_MANAGER),
    Person("viewer", Role.VIEWER),
    Person("site-manager", Role.SITE_MANAGER, {"sites": ["site-near"]}),
    Person("site-viewer", Role.VIEWER, {"sites": ["site-near"]}),
    Person("camera-manager", Role.SITE_MANAGER, {"camera_ids": ["cam-near"]}),
    Person("camera-viewer", Role.VIEWER, {"camera_ids": ["cam-near"]}),
)
NARROW = [one for one in PEOPLE if one.grants is not None]


@dataclass(frozen=True, slots=True)
class Town:
    """A place whose things are near, one of the same tenant that is beyond, and one of another tenant."""

    web: RunningWeb
    uuids: dict[tuple[str, str], str]  # of what the server names by itself, by part and place
    browsers: dict[str, Browser]

    def address(self, path: str, where: str) -> str:
        for part in parts_of(path):
            path = re.sub(rf"\{{{part}(:\w+)?\}}", self.named(part, where), path)
        return path

    def named(self, part: str, where: str) -> str:
        plain = {"camera_id": "cam", "event_uuid": "event", "frame_uuid": "frame", "incident_uuid": "incident"}
        plain |= {"errand_uuid": "errand", "delivery_uuid": "delivery", "snooze_uuid": "snooze", "site": "site"}
        plain |= {"worker_id": "worker", "share_uuid": "share"}
        if part in plain:
            return f"{plain[part]}-{where}"
        if part in OF_ALL:
            named = {"kind": "frame", "object_uuid": f"frame-{where}", "n": "0", "number": "0"}
            return {**named, "document": "run_report.json"}.get(part, "x1")
        # There is no "beyond" of what is the whole tenant's.
        return self.uuids[part, "foreign" if where == "foreign" else "near"]


async def _rows_of(tx: Tx, tenant_id: int, where: str, now_ms: int) -> None:
    """Rows about the camera of a place."""
    camera_id = f"cam-{where}"
    camera = await tx.one("SELECT camera_key, site_id FROM cameras WHERE camera_id = :camera_id", camera_id=camera_id)
    assert camera is not None
    place = {"site_id": camera["site_id"], "camera_key": camera["camera_key"]}
    incident_id = await add_incident(tx, tenant_id, camera_id, f"incident-{where}", now_ms, 2)
    event = EventRow(severity_max=2, incident_id=incident_id)
    event_id = await add_event(tx, tenant_id, camera_id, f"event-{where}", now_ms, (), event)
    await add_frame(tx, FrameRow(tenant_id, camera_id, now_ms, f"frame-{where}", event_id=event_id))
    errand = NewErrand(f"errand-{where}", "look", "{}", now_ms + 600_000)
    await errands.add(tx, tenant_id, errand=errand, now_ms=now_ms, **place)
    delivery = NewDelivery(f"delivery-{where}", tenant_id, DeliveryKind.NOTIFY, "opens", {}, **place)
    await deliveries.add(tx, (delivery,), now_ms)
    await tx.run(
        "INSERT INTO snoozes (snooze_uuid, tenant_id, site_id, camera_key, until, reason, created_at) "
        "VALUES (:snooze_uuid, :tenant_id, :site_id, :camera_key, :until, '', :now_ms)",
        snooze_uuid=f"snooze-{where}",
        tenant_id=tenant_id,
        until=now_ms + 600_000,
        now_ms=now_ms,
        **place,
    )
    await tx.run(
        "INSERT INTO shares (tenant_id, share_uuid, token_hash, kind, object_uuid, site_id, camera_key, created_at) "
        "VALUES (:tenant_id, :share_uuid, :share_uuid, 'event', :event_uuid, :site_id, :camera_key, :now_ms)",
        tenant_id=tenant_id,
        share_uuid=f"share-{where}",
        event_uuid=f"event-{where}",
        now_ms=now_ms,
        **place,
    )
    await tx.run(
        "INSERT INTO workers (tenant_id, site_id, worker_id, capacity, created_at) "
        "VALUES (:tenant_id, :site_id, :worker_id, '{\"slots\": 1}', :now_ms)",
        tenant_id=tenant_id,
        site_id=place["site_id"],
        worker_id=f"worker-{where}",
        now_ms=now_ms,
    )


async def _foreign(tx: Tx, password_hash: str, now_ms: int) -> int:
    tenant_id = await tenants.ensure(tx, "other", now_ms)
    await tenants.ensure_site(tx, tenant_id, "site-foreign", now_ms)
    await add_user(tx, tenant_id, "foreign-admin", "tenant_admin", password_hash, now_ms)
    return tenant_id


async def _made(browser: Browser, path: str, body: dict[str, Any]) -> Any:
    reply = await browser.post(path, body)
    assert reply.status == 201, (path, reply.content)
    return reply.body


async def _things_of(admin: Browser, where: str) -> dict[tuple[str, str], str]:
    """One of each that belongs to the tenant as a whole."""
    hook = {"name": "hook", "kind": "webhook", "secrets": {"url": "https://hook.example/x"}}
    user = await _made(admin, "/api/users", {"login": f"somebody-{where}", "password": PASSWORD})
    token = await _made(admin, "/api/tokens", {"name": "t", "user": f"somebody-{where}"})
    return {
        ("case_uuid", where): (await _made(admin, "/api/cases", {"title": "case"}))["case_uuid"],
        ("receiver_uuid", where): (await _made(admin, "/api/receivers", hook))["receiver_uuid"],
        ("rule_uuid", where): (await _made(admin, "/api/notify/rules", {"name": "rule"}))["rule_uuid"],
        ("user", where): user["user"]["user_uuid"],
        ("token_uuid", where): token["token"]["token_uuid"],
    }


ENVIRON = {"CAMSERVER_CONTROL_TLS_PORT": "8443", "CAMSERVER_CONTROL_TLS_NAMES": '["cameras.example"]'}


@pytest.fixture
async def web(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[RunningWeb]:
    """One that workers may connect to from elsewhere."""
    async with running_web(sqlite_store, clock, tmp_path, ENVIRON) as running:
        yield running


@pytest.fixture
async def belted_web(
    postgres: PostgresServer, postgres_template: PostgresTemplate, clock: ManualClock, tmp_path: Path
) -> AsyncIterator[RunningWeb]:
    """The same on PostgreSQL with row-level security."""
    make_role(postgres)
    url = postgres_template.fresh()
    main = await open_store(url)
    await main.write(row_security.enable, ROLE)
    async with (
        belted(main, of_web(url), pool_size=4, acquire_timeout_sec=5) as store,
        running_web(store, clock, tmp_path, ENVIRON) as running,
    ):
        yield running
    await main.close()
    postgres_template.discard(url)


@pytest.fixture
async def town(web: RunningWeb) -> Town:
    return await make_town(web)


async def make_town(web: RunningWeb) -> Town:
    owner, now_ms = await web.owner(), web.clock.now_ms()
    home = (await web.store.read(tenants.home)) or 0
    password_hash = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    other = await web.store.write(_foreign, password_hash, now_ms)
    stranger = web.browser()
    assert (await stranger.sign_in("foreign-admin")).status == 201
    uuids: dict[tuple[str, str], str] = {}
    for where, admin, tenant_id in (("near", owner, home), ("beyond", owner, home), ("foreign", stranger, other)):
        if where != "foreign":
            await _made(admin, "/api/sites", {"name": f"site-{where}"})
        camera = {"camera_id": f"cam-{where}", "name": where, "site": f"site-{where}", "source": SOURCE}
        await _made(admin, "/api/cameras", camera)
        await web.store.write(_rows_of, tenant_id, where, now_ms)
        if where != "beyond":
            uuids |= await _things_of(admin, where)
            uuids["run_uuid", where] = await add_run(web.store, tenant_id, now_ms)
            uuids["sheet_uuid", where] = await add_sheet(web.store, tenant_id, now_ms)
    browsers = {}
    for one in PEOPLE:
        body = {"login": one.login, "role": one.role.value, "password": PASSWORD, "grants": one.grants}
        await _made(owner, "/api/users", body)
        browsers[one.login] = web.browser()
        assert (await browsers[one.login].sign_in(one.login)).status == 201
    return Town(web, uuids, browsers)


async def ask(town: Town, who: Person, route: GuardedRoute, where: str) -> tuple[int, str | None]:
    """The status, and which permission is said to be missing."""
    method, path = key_of(route)
    body = BODIES.get((method, path), {})
    address = town.address(path, where)
    if named := NAMING.get((method, path)):
        filled = {
            name: value.replace("{}", where) if isinstance(value, str) else value for name, value in named.items()
        }
        body = filled
        if method == "GET":
            address += "?" + "&".join(f"{name}={value}" for name, value in filled.items())
    if (method, path) in STREAMS:
        method = "HEAD"
    reply = await town.browsers[who.login].ask(method, address, None if method in ("GET", "HEAD", "DELETE") else body)
    return reply.status, reply.body.get("details", {}).get("permission") if reply.status == 403 else None


def lacks(who: Person, route: GuardedRoute) -> bool:
    return isinstance(route.needs, Permission) and route.needs not in PERMISSIONS[who.role]


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_a_role_does_what_it_may_and_nothing_else(town: Town, who: Person) -> None:
    for route in ROUTES:
        if not isinstance(route.needs, Permission):
            continue
        status, missing = await ask(town, who, route, "foreign")
        if lacks(who, route):
            assert (status, missing) == (403, route.needs.value), key_of(route)
        else:
            assert status != 401, key_of(route)
            assert missing is None, key_of(route)


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_what_is_another_tenants_does_not_exist(town: Town, who: Person) -> None:
    for route in ROUTES:
        names = bool(parts_of(route.path) & (OF_SITE | OF_TENANT)) or key_of(route) in NAMING
        if not names or lacks(who, route) or route.needs is Gate.PUBLIC:
            continue
        status, _ = await ask(town, who, route, "foreign")
        assert status == 404, (key_of(route), status)


@pytest.mark.parametrize("who", NARROW, ids=lambda one: one.login)
async def test_what_is_beyond_ones_grants_does_not_exist(town: Town, who: Person) -> None:
    for route in ROUTES:
        names = bool(parts_of(route.path) & OF_SITE) or key_of(route) in NAMING
        if not names or lacks(who, route) or route.needs is Gate.PUBLIC:
            continue
        status, _ = await ask(town, who, route, "beyond")
        assert status == 404, (key_of(route), status)


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_what_is_granted_can_be_read(town: Town, who: Person) -> None:
    for path in ("/api/cameras/cam-near", "/api/events/event-near", "/api/frames/frame-near", "/api/sites/site-near"):
        assert (await town.browsers[who.login].get(path)).status == 200, path
    assert (await town.browsers[who.login].get("/api/incidents/incident-near")).status == 200


def refused_near(who: Person, key: tuple[str, str]) -> int | None:
    """The status by which somebody who has the permission is refused something near; None when they are not."""
    if key in NOTHING_THERE or (key in OF_WHOLE_SITE and who.grants is not None and "camera_ids" in who.grants):
        return 404
    return None if Permission.MANAGE_CAMERAS in PERMISSIONS[who.role] else OF_SHARERS.get(key)


@pytest.mark.parametrize("who", PEOPLE, ids=lambda one: one.login)
async def test_what_is_near_answers_to_whoever_may(town: Town, who: Person) -> None:
    """What is read, then what is changed, and what removes things last; of that what ends shares and grants, too."""
    order = ["GET", "PATCH", "PUT", "POST", "DELETE"]
    ends = ["/api/cases/{case_uuid}/items/{kind}/{object_uuid}", "/api/cameras/{camera_id}"]
    wrong = []
    for route in sorted(ROUTES, key=lambda route: (order.index(key_of(route)[0]), route.path in ends)):
        names = bool(parts_of(route.path) & (OF_SITE | OF_TENANT)) or key_of(route) in NAMING
        if not names or not isinstance(route.needs, Permission):
            continue
        status, missing = await ask(town, who, route, "near")
        refused = refused_near(who, key_of(route))
        if lacks(who, route):
            is_right = (status, missing) == (403, route.needs.value)
        else:
            is_right = status == refused if refused is not None else status not in (401, 403, 404)
        if not is_right:
            wrong.append((key_of(route), status, missing))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("who", NARROW, ids=lambda one: one.login)
async def test_lists_and_the_feed_end_at_ones_grants(town: Town, who: Person) -> None:
    browser = town.browsers[who.login]
    lists = (
        "/api/cameras",
        "/api/events",
        "/api/incidents",
        "/api/changes?after=0",
        "/api/statistics",
        "/api/shares",
    )
    for path in (*lists, "/api/search", "/api/search/facets", f"/api/timeline?day={DAY}"):
        found = (await browser.get(path)).content.decode()
        assert "beyond" not in found, path
        assert "foreign" not in found, path
    for path in ("/api/events", "/api/incidents"):
        for where in ("beyond", "foreign"):
            found = await browser.get(f"{path}?camera_id=cam-{where}")
            assert (found.status, found.body["details"]["reason"]) == (404, "no_camera"), path
    status = (await browser.get("/api/system/status")).body
    assert (status["cameras"], sum(status["sessions"].values())) == (1, 1)
    cameras = (await browser.get("/api/cameras")).body["cameras"]
    assert [one["camera_id"] for one in cameras] == ["cam-near"]
    changes = (await browser.get("/api/changes?after=0")).body["changes"]
    assert {one["camera_id"] for one in changes if one["kind"] == "event"} == {"cam-near"}


@pytest.mark.parametrize("where", ["beyond", "foreign"])
async def test_an_import_adds_nothing_where_one_does_not_reach(town: Town, where: str) -> None:
    csv = "camera_id,name,url\nsmuggled,A,rtsp://10.0.0.9/\n"
    body = {"format": "csv", "text": csv, "site": f"site-{where}"}
    assert (await town.browsers["site-manager"].post("/api/imports", body)).status == 200
    assert (await town.browsers["installation"].get("/api/cameras/smuggled")).status == 404


async def test_everything_works_behind_row_level_security(belted_web: RunningWeb) -> None:
    """The narrowest one for what is not there, then everything that there is: some routes remove what they name."""
    town = await make_town(belted_web)
    [system, manager] = [one for one in PEOPLE if one.login in ("installation", "site-manager")]
    await test_lists_and_the_feed_end_at_ones_grants(town, manager)
    await test_what_is_granted_can_be_read(town, manager)
    await test_what_is_beyond_ones_grants_does_not_exist(town, manager)
    await test_what_is_another_tenants_does_not_exist(town, system)
    for route in ROUTES:
        if isinstance(route.needs, Permission):
            status, _ = await ask(town, system, route, "near")
            assert status < 500, (key_of(route), status)


async def test_tenants_and_the_installation_are_looked_after_behind_row_level_security(
    belted_web: RunningWeb,
) -> None:
    """These are not about the caller's own tenant, which its role is held to."""
    owner = await belted_web.owner()
    made = {"Idempotency-Key": "k1"}
    assert (await owner.post("/api/tenants", {"name": "acme", "admin": "kato"}, made)).status == 201
    assert (await owner.post("/api/tenants", {"name": "acme", "admin": "kato"}, made)).status == 409
    assert (await owner.post("/api/tenants/acme/admin-link", {"login": "kato"})).status == 201
    changed = await owner.ask("PATCH", "/api/tenants/acme", {"quotas": {"cameras_max": 3}})
    assert changed.status == 200, changed.content
    assert (await owner.post("/api/tenants/acme/export", None)).status == 200
    gone = {"Idempotency-Key": "k2"}
    erased = [await owner.ask("DELETE", "/api/tenants/acme", {"confirm": "acme"}, gone) for _ in range(2)]
    assert [reply.status for reply in erased] == [202, 202]
    assert (await owner.post("/api/retention/run", None, {"Idempotency-Key": "k3"})).status == 202
