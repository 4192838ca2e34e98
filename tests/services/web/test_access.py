"""Who gets in: hosts, origins, CSRF, the local admin token, and that every route says whom it is for."""

import re
from pathlib import Path

import pytest

from camserver.base.errors import Bug
from camserver.domain.people import PERMISSIONS, TENANT_WIDE, Permission, Role
from camserver.services.web.access import Gate
from camserver.services.web.app import build_api
from camserver.services.web.edge import BODY_MAX_BYTES
from camserver.services.web.openapi import described
from camserver.services.web.routing import GuardedRoute, GuardedSocket
from camserver.store import Store, Tx, grants
from tests.rig.clock import ManualClock
from tests.services.web.rig import LOGIN, PASSWORD, RunningWeb, api_routes, running_web

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
ROUTES = [route for route in api_routes() if isinstance(route, GuardedRoute)]
SOCKETS = [route for route in api_routes() if isinstance(route, GuardedSocket)]
PUBLIC = {
    *(("GET", path) for path in ("/healthz", "/readyz", "/metrics", "/{address:page_address}")),
    *(("GET", path) for path in ("/api/oidc", "/api/oidc/start", "/api/oidc/callback")),
    ("POST", "/api/setup"),
    ("POST", "/api/password-links/look"),  # these two are opened by the link's token
    ("POST", "/api/password-links/use"),
    ("POST", "/api/session"),
    ("GET", "/media/frame/{frame_uuid}"),
    ("GET", "/share/{token}"),
    ("GET", "/share/{token}/clip"),
    ("GET", "/share/{token}/picture/{n}"),  # opened by its signature
}


def method_of(route: GuardedRoute) -> str:
    [method] = route.methods or set()
    return method


def concrete(path: str) -> str:
    for name, value in (
        ("camera_id", "cam_1"),
        ("event_uuid", "e1"),
        ("frame_uuid", "f1"),
        ("incident_uuid", "i1"),
        ("errand_uuid", "x1"),
    ):
        path = path.replace(f"{{{name}}}", value)
    path = re.sub(r"\{\w+\}", "x1", path)
    assert "{" not in path
    return path


def test_every_route_says_whom_it_is_for() -> None:
    assert [route for route in build_api().routes if not isinstance(route, GuardedRoute | GuardedSocket)] == []
    assert [(socket.path, socket.needs) for socket in SOCKETS] == [("/api/feed", Permission.READ)]
    public = {(method_of(route), route.path) for route in ROUTES if route.needs is Gate.PUBLIC}
    assert public == PUBLIC


def test_a_route_without_a_need_can_not_be_built() -> None:
    api = build_api()

    async def forgotten() -> None: ...

    with pytest.raises(Bug, match="/api/forgotten"):
        api.get("/api/forgotten")(forgotten)
    with pytest.raises(Bug, match="who may use"):
        api.get("/api/forgotten", openapi_extra={"x-permission": "everybody"})(forgotten)


def test_the_api_document_names_each_need() -> None:
    paths = described(build_api())["paths"]
    listed = {
        (method.upper(), path): operation["x-permission"]
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    expected = {(method_of(route), route.path): route.needs.value for route in ROUTES if route.include_in_schema}
    expected |= {("GET", socket.path): socket.needs.value for socket in SOCKETS}
    assert listed == expected
    assert listed["DELETE", "/api/cameras/{camera_id}"] == "manage_cameras"


async def test_nobody_gets_in_unauthenticated(web: RunningWeb) -> None:
    browser = web.browser()
    strangers: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer "},
        {"Authorization": "Basic b3duZXI6cGFzcw=="},
        {"Cookie": "camserver_session=made-up"},
        {"Cookie": f"camserver_session={'x' * 3000}"},
    ]
    closed = [route for route in ROUTES if route.needs is not Gate.PUBLIC]
    assert len(closed) == len(ROUTES) - len(PUBLIC)
    for route in closed:
        method = method_of(route)
        for headers in strangers:
            # A malformed body must not be told from a good one by somebody unknown.
            body = b"{" if method == "POST" else None
            reply = await browser.ask(method, concrete(route.path), headers=headers, data=body)
            assert reply.status == 401, (method, route.path, headers)
            assert set(reply.body) == {"error_code", "message", "details"}


async def test_a_permission_is_required_and_not_only_a_sign_in(web: RunningWeb) -> None:
    owner = await web.owner()
    await web.store.write(set_role, Role.VIEWER.value)
    assert Permission.MANAGE_CAMERAS not in PERMISSIONS[Role.VIEWER]

    assert (await owner.get("/api/cameras")).status == 200
    refused = await owner.post("/api/cameras", CAMERA)
    assert refused.status == 403
    assert refused.body["details"] == {"reason": "lacks_permission", "permission": "manage_cameras"}
    assert (await owner.post("/api/setup/link", None)).status == 403


async def set_role(tx: Tx, role: str) -> None:
    await tx.run("UPDATE users SET role = :role", role=role)


async def set_granted_only(tx: Tx, granted_only: int, granted: bool) -> None:
    """Somebody who reaches nothing, or with `granted` the only site there is."""
    await tx.run("DELETE FROM grants")
    await tx.run("UPDATE users SET granted_only = :granted_only", granted_only=granted_only)
    if granted:
        await tx.run(
            "INSERT INTO grants (tenant_id, user_id, site_id) SELECT u.tenant_id, u.user_id, s.site_id "
            "FROM users u JOIN sites s ON s.tenant_id = u.tenant_id"
        )


UNSAFE = {"POST", "PATCH", "DELETE"}
# These keep within the caller's sites by themselves, see delivery_pages.
WITHIN_SITES = {("POST", "/api/deliveries/requeue"), ("POST", "/api/deliveries/{delivery_uuid}/requeue")}


def test_only_these_routes_of_tenant_wide_permissions_are_for_some_sites() -> None:
    assert {(method_of(route), route.path) for route in ROUTES if route.within_sites} == WITHIN_SITES


@pytest.mark.parametrize("role", [Role.TENANT_ADMIN, Role.SYSTEM_ADMIN])
async def test_who_reaches_some_sites_changes_nothing_that_holds_for_all(
    web: RunningWeb, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if these roles could be held to sites: no role that can has such a permission so far.
    monkeypatch.setattr(grants, "GRANTED_ROLES", frozenset(Role))
    owner = await web.owner()
    await web.store.write(set_role, role.value)
    for granted in (False, True):
        await web.store.write(set_granted_only, 1, granted)
        for route in ROUTES:
            method = method_of(route)
            if route.needs not in TENANT_WIDE or method not in UNSAFE:
                continue
            reply = await owner.ask(method, concrete(route.path), {} if method != "DELETE" else None)
            refused = reply.status == 403 and reply.body["details"].get("reason") == "whole_tenant"
            if role is Role.TENANT_ADMIN and route.needs is Permission.MANAGE_SYSTEM:
                assert reply.status == 403
            else:
                assert refused == ((method, route.path) not in WITHIN_SITES), (method, route.path)
        assert (await owner.get("/api/notify/rules")).status == 200, "reading stays"
    await web.store.write(set_granted_only, 0, False)
    assert (await owner.post("/api/notify/rules", {"name": "rule"})).status == 201


ORIGINS: list[tuple[dict[str, str], int]] = [
    ({}, 201),
    ({"X-CSRF-Token": ""}, 403),
    ({"X-CSRF-Token": "made-up"}, 403),
    ({"X-CSRF-Token": "mäde-up"}, 403),
    ({"Sec-Fetch-Site": "same-origin"}, 201),
    ({"Sec-Fetch-Site": "none"}, 201),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Origin": "OWN"}, 201),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://127.0.0.1:1"}, 403),
    ({"Origin": "http://["}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
]


async def test_a_change_must_come_from_our_own_pages(web: RunningWeb) -> None:
    owner = await web.owner()
    for number, (headers, status) in enumerate(ORIGINS):
        sent = {name: web.url if value == "OWN" else value for name, value in headers.items()}
        camera_id = f"cam_{number}"
        reply = await owner.post("/api/cameras", {**CAMERA, "camera_id": camera_id}, sent)
        assert reply.status == status, headers
        assert (await owner.get(f"/api/cameras/{camera_id}")).status == (200 if status == 201 else 404), headers


async def test_a_csrf_token_of_another_session_is_refused(web: RunningWeb) -> None:
    first, second = await web.owner(), await web.owner()
    reply = await first.post("/api/cameras", CAMERA, {"X-CSRF-Token": second.csrf_token or ""})
    assert (reply.status, reply.body["details"]["reason"]) == (403, "csrf")
    without = await first.ask("DELETE", "/api/session", headers={"X-CSRF-Token": ""})
    assert without.status == 403


async def test_signing_in_from_a_foreign_page_is_refused(web: RunningWeb) -> None:
    await web.owner()
    body = {"login": LOGIN, "password": PASSWORD}
    reply = await web.browser().post("/api/session", body, {"Origin": "https://evil.example"})
    assert reply.status == 403
    assert "Set-Cookie" not in reply.headers


HOSTS = [
    ("localhost:8080", 200),
    ("LOCALHOST.", 200),
    ("127.0.0.1", 200),
    ("[::1]:99", 200),
    ("cams.example", 200),
    ("cams.example:444", 200),
    ("proxy.example", 200),
    ("evil.example", 421),
    ("cams.example.evil.example", 421),
    ("cams.example@evil.example", 421),
    ("evil.example#cams.example", 421),
    ("10.1.2.3", 421),
    ("[", 421),
    ("", 421),
]


async def test_only_known_host_names_are_answered(sqlite_store: Store, clock: ManualClock, tmp_path: Path) -> None:
    environ = {
        "CAMSERVER_WEB_ALLOWED_HOSTS": "cams.example",
        "CAMSERVER_SERVER_PUBLIC_URL": "https://proxy.example",
    }
    async with running_web(sqlite_store, clock, tmp_path, environ) as web:
        browser = web.browser()
        for host, status in HOSTS:
            reply = await browser.get("/healthz", {"Host": host})
            assert reply.status == status, host
            if status == 421:
                assert reply.body["error_code"] == "wrong_host"


async def test_the_local_admin_token_works_on_this_machine_only(web: RunningWeb) -> None:
    browser = web.browser()
    me = await browser.get("/api/session", web.local_admin)
    assert (me.status, me.body["role"]) == (200, "system_admin")
    # No cookie is involved, so no CSRF token is either.
    assert (await browser.post("/api/cameras", CAMERA, web.local_admin)).status == 201
    for forwarded in (
        {"X-Forwarded-For": "203.0.113.7"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
    ):
        assert (await browser.get("/api/cameras", {**web.local_admin, **forwarded})).status == 401, forwarded


async def test_every_answer_has_the_security_headers(web: RunningWeb) -> None:
    browser = web.browser()
    for path, headers in (("/", {}), ("/api/cameras", {}), ("/no-such", {}), ("/", {"Host": "evil.example"})):
        reply = await browser.get(path, headers)
        policy = reply.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'self'" in policy
        assert "media-src 'self' blob: http://" in policy
        assert "connect-src 'self' http://" in policy
        assert "unsafe" not in policy
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.headers["Referrer-Policy"] == "same-origin"
        assert "Server" not in reply.headers
    assert (await browser.get("/api/cameras")).headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_request_that_is_too_large_is_refused(web: RunningWeb, chunked: bool) -> None:
    body = b" " * (BODY_MAX_BYTES + 1)

    async def pieces() -> object:
        for start in range(0, len(body), 10_000):
            yield body[start : start + 10_000]

    browser = web.browser()
    data = pieces() if chunked else body
    async with browser.http.post(web.url + "/api/session", data=data) as response:
        assert response.status == 413
        assert (await response.json())["details"] == {"reason": "too_large", "bytes_max": BODY_MAX_BYTES}
    # Other requests go on.
    assert (await browser.get("/healthz")).status == 200
