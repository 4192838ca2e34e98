"""Tenants over the API: added, bounded, switched off, erased."""

from typing import Any

from camserver.services.dispatcher.erasing import Eraser
from camserver.store import Tx, tenants
from camserver.store.erasure import LASTS_MS_MIN
from camserver.store.first_start import prepare_store
from tests.services.web.rig import PASSWORD, Browser, RunningWeb

SOURCE = {"url": "rtsp://10.0.0.9/stream"}


async def add_acme(web: RunningWeb, owner: Browser, **quotas: int | None) -> Browser:
    """The tenant acme, and a browser in which its administrator is signed in."""
    body = {"name": "acme", "admin": "kato", "timezone": "Asia/Tokyo", "quotas": quotas}
    added = await owner.post("/api/tenants", body)
    assert added.status == 201, added.content
    browser = web.browser()
    token = added.body["password_link"]["url"].partition("#token=")[2]
    used = await browser.post("/api/password-links/use", {"token": token, "password": PASSWORD})
    assert used.status < 300, used.content
    assert (await browser.sign_in("kato")).status == 201
    return browser


async def audit_of_home(tx: Tx) -> list[str]:
    rows = await tx.all(
        "SELECT a.action FROM audit_log a JOIN tenants t ON t.tenant_id = a.tenant_id "
        "WHERE t.name = 'default' AND a.object_kind = 'tenant' ORDER BY a.entry_id"
    )
    return [row["action"] for row in rows]


async def reason(browser: Browser, method: str, path: str, body: object) -> Any:
    reply = await browser.ask(method, path, body)
    return reply.status, reply.body.get("details", {}).get("reason")


async def test_a_tenant_begins_with_a_site_and_an_administrator_who_sees_only_it(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner, cameras_max=5)
    assert (await kato.get("/api/session")).body["role"] == "tenant_admin"
    [site] = (await kato.get("/api/sites")).body["sites"]
    assert (site["name"], site["timezone"]) == ("main", "Asia/Tokyo")
    [acme, home] = (await owner.get("/api/tenants")).body["tenants"]
    assert (acme["name"], acme["is_home"], home["name"], home["is_home"]) == ("acme", False, "default", True)
    assert (await owner.get(f"/api/tenants/{acme['tenant_uuid']}")).body["name"] == "acme"
    uses = {use["quota"]: (use["used"], use["most"]) for use in acme["quotas"]}
    assert uses["cameras_max"] == (0, 5)
    assert uses["people_max"] == (1, None)
    for path in ("/api/tenants", "/api/tenants/acme", "/api/tenants/default"):
        assert (await kato.get(path)).status == 403, path
    assert await web.store.read(audit_of_home) == ["tenant_added"]


ADMIN_LINK = "/api/tenants/acme/admin-link"


async def choose_password(web: RunningWeb, link: Any, password: str) -> int:
    token = link["url"].partition("#token=")[2]
    used = await web.browser().post("/api/password-links/use", {"token": token, "password": password})
    return used.status


async def test_a_tenant_whose_administrator_lost_the_link_is_entered_again(web_on_each: RunningWeb) -> None:
    web = web_on_each
    owner = await web.owner()
    added = (await owner.post("/api/tenants", {"name": "acme", "admin": "kato"})).body
    again = await owner.post(ADMIN_LINK, {"login": "Kato"})
    assert (again.status, again.body["login"], again.body["made"]) == (201, "kato", False)
    assert await choose_password(web, added["password_link"], PASSWORD) == 403, "the one before works no more"
    assert await choose_password(web, again.body["password_link"], PASSWORD) < 300
    kato = web.browser()
    assert (await kato.sign_in("kato")).body["role"] == "tenant_admin"
    # One who is not there yet is made, by the tenant's id too.
    acme = (await owner.get("/api/tenants/acme")).body
    made = await owner.post(f"/api/tenants/{acme['tenant_uuid']}/admin-link", {"login": "sato", "language": "ja"})
    assert (made.status, made.body["made"]) == (201, True)
    assert await choose_password(web, made.body["password_link"], PASSWORD) < 300
    sato = web.browser()
    assert (await sato.sign_in("sato")).body["role"] == "tenant_admin"
    assert (await sato.get("/api/session")).body["language"] == "ja"
    # Both logs have it: that of the tenant, and that of home.
    [second, first] = (await kato.get("/api/audit?action=admin_link_made")).body["entries"]
    assert (first["details"], second["details"]) == ({"login": "kato", "made": 0}, {"login": "sato", "made": 1})
    assert (first["actor_kind"], first["object_kind"], first["address"]) == ("operator", "user", "127.0.0.1")
    assert (await web.browser().post(ADMIN_LINK, {"login": "kato"}, web.local_admin)).status == 201
    [third] = (await kato.get("/api/audit?action=admin_link_made&limit=1")).body["entries"]
    assert third["who"] == "local admin"
    assert await web.store.read(audit_of_home) == ["tenant_added", *["tenant_admin_link_made"] * 3]


async def test_whose_link_is_not_made_says_why(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner, people_max=3)
    for login, role in (("viewer", "viewer"), ("former", "tenant_admin")):
        assert (await kato.post("/api/users", {"login": login, "role": role, "password": PASSWORD})).status == 201
    assert (await kato.ask("PATCH", "/api/users/former", {"disabled": True})).status == 200
    for login, expected in (
        ("viewer", (409, "not_tenant_admin")),
        ("former", (409, "admin_off")),
        ("owner", (409, "login_taken")),
        ("sato", (409, "quota")),
        ("a b", (400, "login_form")),
    ):
        assert await reason(owner, "POST", ADMIN_LINK, {"login": login}) == expected, login
    assert await reason(owner, "POST", "/api/tenants/nowhere/admin-link", {"login": "kato"}) == (404, "no_tenant")
    # For system administrators only: a tenant's own has /api/users for it.
    assert await reason(kato, "POST", ADMIN_LINK, {"login": "kato"}) == (403, "lacks_permission")
    assert (await owner.ask("PATCH", "/api/tenants/acme", {"disabled": True})).status == 200
    assert await reason(owner, "POST", ADMIN_LINK, {"login": "kato"}) == (409, "tenant_off")
    assert (await owner.ask("DELETE", "/api/tenants/acme", {"confirm": "acme"})).status == 202
    assert await reason(owner, "POST", ADMIN_LINK, {"login": "kato"}) == (409, "tenant_erasing")


async def test_what_can_not_be_added_says_why(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_acme(web, owner)
    for body, expected in (
        ({"name": "acme", "admin": "sato"}, (409, "tenant_taken")),
        ({"name": "b", "admin": "kato"}, (409, "login_taken")),
        ({"name": "a/b", "admin": "sato"}, (400, "tenant_name")),
        ({"name": "b", "admin": "sato", "timezone": "Mars"}, (400, "no_zone")),
    ):
        assert await reason(owner, "POST", "/api/tenants", body) == expected, body


async def test_a_system_administrator_is_made_only_at_home(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner)
    body = {"login": "sato", "role": "system_admin", "password": PASSWORD}
    assert await reason(kato, "POST", "/api/users", body) == (403, "role_above")
    assert (await owner.post("/api/users", body)).status == 201


async def test_quotas_bound_what_a_tenant_makes(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner, cameras_max=1, people_max=2, sites_max=1)
    camera = {"name": "A", "site": "main", "source": SOURCE}
    assert (await kato.post("/api/cameras", {"camera_id": "a", **camera})).status == 201
    assert await reason(kato, "POST", "/api/cameras", {"camera_id": "b", **camera}) == (409, "quota")
    assert (await kato.post("/api/users", {"login": "x", "password": PASSWORD})).status == 201
    assert await reason(kato, "POST", "/api/users", {"login": "y", "password": PASSWORD}) == (409, "quota")
    refused = await kato.post("/api/sites", {"name": "depot"})
    assert (refused.status, refused.body["details"]["quota"]) == (409, "sites_max")
    changed = await owner.ask("PATCH", "/api/tenants/acme", {"quotas": {"sites_max": None, "kept_bytes_max": 1000}})
    assert {use["quota"]: use["most"] for use in changed.body["quotas"]} == {
        "cameras_running_max": None,
        "cameras_max": 1,
        "people_max": 2,
        "sites_max": None,
        "kept_bytes_max": 1000,
    }
    assert (await kato.post("/api/sites", {"name": "depot"})).status == 201
    assert (await kato.get("/api/retention")).body["tenant_max_bytes"] == 1000
    assert (await owner.get("/api/retention")).body["tenant_max_bytes"] == 0


async def test_nobody_of_a_disabled_tenant_gets_in(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner)
    token = (await kato.post("/api/tokens", {"name": "t", "user": "kato"})).body["secret"]
    program = {"Authorization": f"Bearer {token}"}
    assert (await web.browser().get("/api/cameras", program)).status == 200
    assert (await owner.ask("PATCH", "/api/tenants/acme", {"disabled": True})).status == 200
    assert (await kato.get("/api/cameras")).status == 401
    assert (await web.browser().get("/api/cameras", program)).status == 401
    assert (await web.browser().sign_in("kato")).status == 401
    assert (await owner.ask("PATCH", "/api/tenants/acme", {"disabled": False, "name": "acme2"})).status == 200
    assert (await kato.get("/api/cameras")).status == 200
    assert await reason(owner, "PATCH", "/api/tenants/default", {"disabled": True}) == (409, "tenant_is_home")


async def test_an_erasure_is_confirmed_and_held_cases_refuse_it(web: RunningWeb) -> None:
    owner = await web.owner()
    kato = await add_acme(web, owner)
    case = (await kato.post("/api/cases", {"title": "theft"})).body
    assert (await kato.ask("PATCH", f"/api/cases/{case['case_uuid']}", {"hold": True})).status == 200
    for body, expected in (
        ({"confirm": "Acme"}, (400, "not_confirmed")),
        ({"confirm": "acme"}, (409, "cases_held")),
    ):
        assert await reason(owner, "DELETE", "/api/tenants/acme", body) == expected
    home = {"confirm": "default", "also_held": True}
    assert await reason(owner, "DELETE", "/api/tenants/default", home) == (409, "tenant_is_home")
    begun = await owner.ask("DELETE", "/api/tenants/acme", {"confirm": "acme", "also_held": True})
    assert begun.status == 202
    assert begun.body["erasing_at"] == web.clock.now_ms()
    assert (await kato.get("/api/cases")).status == 401
    assert await reason(owner, "PATCH", "/api/tenants/acme", {"disabled": False}) == (409, "tenant_erasing")

    async def pause() -> None:
        pass

    await web.clock.advance(LASTS_MS_MIN)
    await Eraser(web.store, web.clock, pause).turn()
    assert (await owner.get("/api/tenants/acme")).status == 404
    actions = await web.store.read(audit_of_home)
    assert actions == ["tenant_added", "tenant_erasure_asked", "tenant_erased"]


async def test_home_may_be_called_anything(web: RunningWeb) -> None:
    owner = await web.owner()
    assert (await owner.ask("PATCH", "/api/tenants/default", {"name": "house"})).status == 200
    added = await owner.post("/api/tenants", {"name": "default", "admin": "kato"})
    assert added.status == 201, added.content
    home = await prepare_store(web.store, None, web.clock.now_ms())
    assert home.tenant_id == await web.store.read(tenants.home)
    shown = {one["name"]: one["is_home"] for one in (await owner.get("/api/tenants")).body["tenants"]}
    assert shown == {"house": True, "default": False}
    assert (await owner.post("/api/users", {"login": "sato", "role": "system_admin"})).status == 201
    assert await reason(owner, "DELETE", "/api/tenants/house", {"confirm": "house"}) == (409, "tenant_is_home")


async def test_each_part_of_an_export_is_noted_by_itself(web_on_each: RunningWeb) -> None:
    """At home and in the tenant's own log, also where nobody said before that there is to be an export."""
    web = web_on_each
    owner = await web.owner()
    kato = await add_acme(web, owner)
    acme = (await owner.get("/api/tenants/acme")).body["tenant_uuid"]

    async def noted() -> list[tuple[str, int]]:
        logs = [(await one.get("/api/audit?action=tenant_exported")).body["entries"] for one in (owner, kato)]
        return [(entry["actor_kind"], len(entries)) for entries in logs for entry in entries[:1]]

    assert (await owner.get("/api/tenants/acme/export/tables/sites")).status == 200
    assert await noted() == [("user", 1), ("operator", 1)]
    # Thousands of parts are one look.
    assert (await owner.get(f"/api/tenants/{acme}/export/tables/users")).status == 200
    assert (await owner.get(f"/api/tenants/{acme}/export/object?key=e1/none")).status == 404
    assert (await owner.post("/api/tenants/acme/export", {})).status == 200
    assert await noted() == [("user", 1), ("operator", 1)]
