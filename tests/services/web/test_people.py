"""People, tokens and sites over the API: who may do what to whom, and that it holds from the next request on."""

import re
from typing import Any

import pytest

from camserver.domain.people import PASSWORD_LINK_TTL_MS
from camserver.services.web.access import TOKEN_PREFIX
from tests.services.web.rig import LOGIN, PASSWORD, Browser, RunningWeb

OTHER_PASSWORD = "another good secret"
CAMERA = {"name": "Gate", "source": {"url": "rtsp://10.0.0.9/stream"}}


async def add_user(owner: Browser, login: str, role: str = "viewer", **more: Any) -> dict[str, Any]:
    body = {"login": login, "role": role, "password": PASSWORD, "language": "en", **more}
    reply = await owner.post("/api/users", body)
    assert reply.status == 201, reply.content
    return dict(reply.body["user"])


async def signed_in(web: RunningWeb, login: str, password: str = PASSWORD) -> Browser:
    browser = web.browser()
    reply = await browser.sign_in(login, password)
    assert reply.status == 201, reply.content
    return browser


async def add_camera(owner: Browser, camera_id: str, site: str) -> None:
    reply = await owner.post("/api/cameras", {"camera_id": camera_id, "site": site, **CAMERA})
    assert reply.status == 201, reply.content


async def camera_ids(browser: Browser) -> list[str]:
    return [one["camera_id"] for one in (await browser.get("/api/cameras")).body["cameras"]]


def token_of(url: str) -> str:
    return url.partition("#token=")[2]


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


async def test_somebody_is_invited_chooses_a_password_and_signs_in(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/users", {"login": " Guard@Site ", "display_name": "警備", "role": "site_manager"})
    assert reply.status == 201
    user, link = reply.body["user"], reply.body["password_link"]
    assert (user["login"], user["role"], user["has_password"], user["grants"]) == (
        "guard@site",
        "site_manager",
        False,
        None,
    )
    assert link["url"].startswith(f"{web.url}/password#token=")
    nobody = web.browser()
    assert (await nobody.sign_in("guard@site", "")).status in (400, 401)
    token = token_of(link["url"])
    looked = await nobody.post("/api/password-links/look", {"token": token})
    assert looked.body == {"login": "guard@site", "display_name": "警備"}
    short = await nobody.post("/api/password-links/use", {"token": token, "password": "short"})
    assert (short.status, short.body["details"]["reason"]) == (400, "password_short")
    assert (await nobody.post("/api/password-links/use", {"token": token, "password": PASSWORD})).status == 204
    again = await nobody.post("/api/password-links/use", {"token": token, "password": OTHER_PASSWORD})
    assert (again.status, again.body["details"]["reason"]) == (403, "password_link")
    guard = await signed_in(web, "guard@site")
    assert (await guard.get("/api/session")).body["role"] == "site_manager"


async def test_a_password_link_ends(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "viewer")
    first = (await owner.post("/api/users/viewer/password-link", {})).body
    second = (await owner.post("/api/users/viewer/password-link", {})).body
    anybody = web.browser()
    look = "/api/password-links/look"
    assert (await anybody.post(look, {"token": token_of(first["url"])})).status == 403, "replaced"
    assert (await anybody.post(look, {"token": token_of(second["url"])})).status == 200
    await web.clock.advance(PASSWORD_LINK_TTL_MS)
    assert (await anybody.post(look, {"token": token_of(second["url"])})).status == 403, "too old"
    assert (await anybody.post(look, {"token": "made-up"})).status == 403


async def test_a_password_link_is_for_the_role_that_it_was_made_for(web: RunningWeb) -> None:
    """Whoever may give a link to a viewer may not have one to an administrator."""
    owner = await web.owner()
    await add_user(owner, "rising")
    link = (await owner.post("/api/users/rising/password-link", {})).body
    assert (await owner.ask("PATCH", "/api/users/rising", {"role": "system_admin"})).status == 200
    body = {"token": token_of(link["url"]), "password": OTHER_PASSWORD}
    assert (await web.browser().post("/api/password-links/use", body)).status == 403


async def test_a_reset_ends_every_sign_in(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "viewer")
    viewer = await signed_in(web, "viewer")
    link = (await owner.post("/api/users/viewer/password-link", {})).body
    assert (await viewer.get("/api/cameras")).status == 200, "until the link is used"
    used = await web.browser().post(
        "/api/password-links/use", {"token": token_of(link["url"]), "password": OTHER_PASSWORD}
    )
    assert used.status == 204
    assert (await viewer.get("/api/cameras")).status == 401
    assert (await web.browser().sign_in("viewer", PASSWORD)).status == 401
    await signed_in(web, "viewer", OTHER_PASSWORD)


async def test_ones_own_password(web: RunningWeb) -> None:
    owner = await web.owner()
    elsewhere = await signed_in(web, LOGIN)
    change = "/api/session/password"
    wrong = await owner.post(change, {"password": "not this one", "new_password": OTHER_PASSWORD})
    assert (wrong.status, wrong.body["details"]["reason"]) == (403, "wrong_password")
    weak = await owner.post(change, {"password": PASSWORD, "new_password": LOGIN})
    assert weak.status == 400
    assert (await owner.post(change, {"password": PASSWORD, "new_password": OTHER_PASSWORD})).status == 204
    assert (await owner.get("/api/session")).status == 200, "this sign-in stays"
    assert (await elsewhere.get("/api/session")).status == 401
    await signed_in(web, LOGIN, OTHER_PASSWORD)


async def test_guessing_ones_own_password_is_slowed_down(web: RunningWeb) -> None:
    owner = await web.owner()
    body = {"password": "not this one", "new_password": OTHER_PASSWORD}
    statuses = [(await owner.post("/api/session/password", body)).status for _ in range(7)]
    assert statuses[:5] == [403] * 5
    assert statuses[-1] == 429


async def test_sign_ins_are_listed_and_ended(web: RunningWeb) -> None:
    owner = await web.owner()
    elsewhere = await signed_in(web, LOGIN)
    listed = (await owner.get("/api/sessions")).body["sign_ins"]
    assert [one["is_this"] for one in listed].count(True) == 1
    assert len(listed) == 2
    assert (await owner.ask("DELETE", "/api/sessions")).status == 204
    assert (await elsewhere.get("/api/session")).status == 401
    assert len((await owner.get("/api/sessions")).body["sign_ins"]) == 1


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"role": "viewer"}, 409, "user_is_self"),
        ({"disabled": True}, 409, "user_is_self"),
        ({"grants": {"sites": []}}, 400, "role_reaches_all"),
        ({"display_name": "New"}, 200, None),
        ({"language": "ja"}, 200, None),
    ],
)
async def test_nobody_takes_away_their_own_rights(
    web: RunningWeb, change: dict[str, Any], status: int, reason: str | None
) -> None:
    owner = await web.owner()
    reply = await owner.ask("PATCH", f"/api/users/{LOGIN}", change)
    assert reply.status == status
    if reason is not None:
        assert reply.body["details"]["reason"] == reason


async def test_the_last_administrator_stays(web: RunningWeb) -> None:
    owner = await web.owner()
    last = await web.browser().ask("DELETE", f"/api/users/{LOGIN}", headers=web.local_admin)
    assert (last.status, last.body["details"]["reason"]) == (409, "last_admin")
    await add_user(owner, "second", "system_admin")
    assert (await owner.ask("PATCH", "/api/users/second", {"disabled": True})).status == 200
    again = await web.browser().ask("DELETE", f"/api/users/{LOGIN}", headers=web.local_admin)
    assert again.status == 409, "one who is switched off does not count"
    assert (await owner.ask("PATCH", "/api/users/second", {"disabled": False})).status == 200
    assert (await web.browser().ask("DELETE", f"/api/users/{LOGIN}", headers=web.local_admin)).status == 204
    assert (await owner.get("/api/session")).status == 401


async def test_an_admin_of_the_tenant_decides_about_nobody_above(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "admin", "tenant_admin")
    admin = await signed_in(web, "admin")
    token = (await owner.post("/api/tokens", {"name": "t"})).body["token"]["token_uuid"]
    for method, path, body in (
        ("POST", "/api/users", {"login": "x", "role": "system_admin", "password": PASSWORD}),
        ("PATCH", f"/api/users/{LOGIN}", {"disabled": True}),
        ("PATCH", f"/api/users/{LOGIN}", {"display_name": "x"}),
        ("PATCH", "/api/users/admin", {"role": "system_admin"}),
        ("DELETE", f"/api/users/{LOGIN}", None),
        ("POST", f"/api/users/{LOGIN}/password-link", {}),
        ("POST", "/api/tokens", {"name": "x", "user": LOGIN}),
        ("DELETE", f"/api/tokens/{token}", None),
    ):
        reply = await admin.ask(method, path, body)
        assert (reply.status, reply.body["details"]["reason"]) == (403, "role_above"), (method, path)
    await add_user(admin, "colleague", "tenant_admin")
    other = (await admin.post("/api/tokens", {"name": "t", "user": "colleague"})).body["token"]["token_uuid"]
    assert (await admin.ask("DELETE", f"/api/tokens/{other}")).status == 204


async def test_rights_change_from_the_next_request_on(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "manager", "site_manager")
    manager = await signed_in(web, "manager")
    await add_camera(manager, "cam_1", "main")
    assert (await owner.ask("PATCH", "/api/users/manager", {"role": "viewer"})).status == 200
    refused = await manager.post("/api/cameras", {"camera_id": "cam_2", "site": "main", **CAMERA})
    assert (refused.status, refused.body["details"]["permission"]) == (403, "manage_cameras")
    assert (await owner.ask("PATCH", "/api/users/manager", {"disabled": True})).status == 200
    assert (await manager.get("/api/cameras")).status == 401
    assert (await web.browser().sign_in("manager")).status == 401


async def test_grants_bound_what_is_seen(web: RunningWeb) -> None:
    owner = await web.owner()
    assert (await owner.post("/api/sites", {"name": "north", "timezone": "Asia/Tokyo"})).status == 201
    for camera_id, site in (("main_1", "main"), ("main_2", "main"), ("north_1", "north"), ("north_2", "north")):
        await add_camera(owner, camera_id, site)
    user = await add_user(owner, "viewer", grants={"sites": ["north"], "camera_ids": ["main_2"]})
    assert user["grants"] == {"sites": ["north"], "camera_ids": ["main_2"]}
    viewer = await signed_in(web, "viewer")
    assert await camera_ids(viewer) == ["main_2", "north_1", "north_2"]
    assert (await viewer.get("/api/cameras/main_1")).status == 404
    assert (await viewer.get("/api/cameras/main_1/latest")).status == 404
    assert (await viewer.get("/api/cameras/main_2")).status == 200
    sites = (await viewer.get("/api/sites")).body["sites"]
    assert [(one["name"], one["cameras"]) for one in sites] == [("main", 1), ("north", 2)]
    # Less, from the next request on; then nothing; then everything.
    await owner.ask("PATCH", "/api/users/viewer", {"grants": {"camera_ids": ["main_2"]}})
    assert await camera_ids(viewer) == ["main_2"]
    await owner.ask("PATCH", "/api/users/viewer", {"grants": {}})
    assert await camera_ids(viewer) == []
    assert (await viewer.get("/api/sites")).body["sites"] == []
    both = await owner.ask("PATCH", "/api/users/viewer", {"all_sites": True, "grants": {"sites": ["main"]}})
    assert (both.status, both.body["details"]["reason"]) == (400, "granted_to_all")
    # It names what the caller knows.
    assert "`grants`" in both.body["message"]
    assert "`all_sites`" in both.body["message"]
    await owner.ask("PATCH", "/api/users/viewer", {"all_sites": True})
    assert len(await camera_ids(viewer)) == 4


async def test_a_manager_of_a_camera_manages_that_one(web: RunningWeb) -> None:
    owner = await web.owner()
    for camera_id in ("cam_1", "cam_2"):
        await add_camera(owner, camera_id, "main")
    await add_user(owner, "manager", "site_manager", grants={"camera_ids": ["cam_1"]})
    manager = await signed_in(web, "manager")
    assert (await manager.ask("PATCH", "/api/cameras/cam_1", {"name": "New"})).status == 200
    assert (await manager.ask("PATCH", "/api/cameras/cam_2", {"name": "New"})).status == 404
    assert (await manager.post("/api/cameras", {"camera_id": "cam_3", "site": "main", **CAMERA})).status == 404
    assert (await manager.ask("PATCH", "/api/sites/main", {"name": "mine"})).status == 404


@pytest.mark.parametrize(
    ("grants", "status"),
    [({"sites": ["nowhere"]}, 404), ({"camera_ids": ["nothing"]}, 404), ({"rooms": []}, 422), ({"sites": [""]}, 422)],
)
async def test_what_is_granted_must_be_there(web: RunningWeb, grants: dict[str, Any], status: int) -> None:
    owner = await web.owner()
    body = {"login": "viewer", "role": "viewer", "password": PASSWORD, "grants": grants}
    reply = await owner.post("/api/users", body)
    assert reply.status in (status, 400), reply.content
    assert (await owner.get("/api/users/viewer")).status == 404, "nothing of it was kept"


async def test_logins_are_unique_and_well_formed(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "viewer")
    taken = await owner.post("/api/users", {"login": "VIEWER", "password": PASSWORD})
    assert (taken.status, taken.body["details"]["reason"]) == (409, "login_taken")
    for login in ("two words", "名前", "-x", "a/b"):
        assert (await owner.post("/api/users", {"login": login, "password": PASSWORD})).status == 400
    # People are named by their ids, too.
    viewers_id = (await owner.get("/api/users/viewer")).body["user_uuid"]
    refused = await owner.post("/api/users", {"login": viewers_id, "password": PASSWORD})
    assert (refused.status, refused.body["details"]["reason"]) == (409, "login_taken")
    # As the audit log calls what nobody did.
    for login in ("system", "Link"):
        refused = await owner.post("/api/users", {"login": login, "password": PASSWORD})
        assert (refused.status, refused.body["details"]["reason"]) == (400, "login_reserved")


async def test_people_are_listed_page_by_page(web: RunningWeb) -> None:
    owner = await web.owner()
    for login in ("anna", "bob", "zoe"):
        await add_user(owner, login)
    seen, after = [], ""
    while True:
        page = (await owner.get(f"/api/users?limit=2&after={after}")).body
        seen += [one["login"] for one in page["users"]]
        if page["next_after"] is None:
            break
        after = page["next_after"]
    assert seen == ["anna", "bob", LOGIN, "zoe"]


# Tokens


async def test_a_program_uses_a_token_within_its_scopes(web: RunningWeb) -> None:
    owner = await web.owner()
    added = await owner.post("/api/tokens", {"name": "exporter", "scopes": ["read"]})
    assert added.status == 201
    secret = added.body["secret"]
    assert re.fullmatch(rf"{TOKEN_PREFIX}[\w-]{{43}}", secret)
    program = web.browser()
    assert (await program.get("/api/cameras", bearer(secret))).status == 200
    refused = await program.post("/api/cameras", {"camera_id": "c", **CAMERA}, bearer(secret))
    assert (refused.status, refused.body["details"]) == (
        403,
        {"reason": "lacks_scope", "permission": "manage_cameras"},
    )
    assert "token's scopes lack the permission manage_cameras" in refused.body["message"]
    me = (await program.get("/api/session", bearer(secret))).body
    assert (me["login"], me["permissions"], me["csrf_token"]) == (LOGIN, ["read"], "")
    listed = (await owner.get("/api/tokens")).body["tokens"]
    assert [(one["name"], one["scopes"], one["last_address"]) for one in listed] == [
        ("exporter", ["read"], "127.0.0.1")
    ]
    assert secret not in str(listed)
    for path in ("/api/session/password", "/api/sessions"):
        method = "POST" if path.endswith("password") else "GET"
        body = {"password": PASSWORD, "new_password": OTHER_PASSWORD} if method == "POST" else None
        assert (await program.ask(method, path, body, bearer(secret))).status == 403, "needs a browser's sign-in"
    assert (await owner.ask("DELETE", f"/api/tokens/{listed[0]['token_uuid']}")).status == 204
    assert (await program.get("/api/cameras", bearer(secret))).status == 401


async def test_a_token_ends_with_its_days_and_with_its_user(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "robot")
    secrets = [
        (await owner.post("/api/tokens", {"name": "t", "user": "robot", "days": days})).body["secret"]
        for days in (1, 90)
    ]
    program = web.browser()
    await web.clock.advance(86_400_000)
    assert [(await program.get("/api/cameras", bearer(one))).status for one in secrets] == [401, 200]
    owner = await signed_in(web, LOGIN)
    await owner.ask("PATCH", "/api/users/robot", {"disabled": True})
    assert (await program.get("/api/cameras", bearer(secrets[1]))).status == 401
    await owner.ask("PATCH", "/api/users/robot", {"disabled": False})
    assert (await program.get("/api/cameras", bearer(secrets[1]))).status == 200
    assert (await owner.ask("DELETE", "/api/users/robot")).status == 204
    assert (await program.get("/api/cameras", bearer(secrets[1]))).status == 401


async def test_a_token_is_never_good_for_more_than_its_user(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_camera(owner, "cam_1", "main")
    await add_user(owner, "manager", "site_manager")
    manager = await signed_in(web, "manager")
    beyond = await manager.post("/api/tokens", {"name": "t", "scopes": ["read", "manage_people"]})
    assert (beyond.status, beyond.body["details"]["reason"]) == (403, "scope_beyond")
    for_other = await manager.post("/api/tokens", {"name": "t", "user": LOGIN})
    assert for_other.status in (403, 404)
    secret = (await manager.post("/api/tokens", {"name": "t", "scopes": ["read", "manage_cameras"]})).body["secret"]
    program = web.browser()
    assert (await program.ask("PATCH", "/api/cameras/cam_1", {"name": "A"}, bearer(secret))).status == 200
    await owner.ask("PATCH", "/api/users/manager", {"role": "viewer"})
    assert (await program.ask("PATCH", "/api/cameras/cam_1", {"name": "B"}, bearer(secret))).status == 403
    await owner.ask("PATCH", "/api/users/manager", {"grants": {}})
    assert (await program.get("/api/cameras/cam_1", bearer(secret))).status == 404


async def test_a_token_does_not_breed_stronger_ones(web: RunningWeb) -> None:
    owner = await web.owner()
    scopes = ["read", "manage_people"]
    secret = (await owner.post("/api/tokens", {"name": "t", "scopes": scopes})).body["secret"]
    program = web.browser()
    reply = await program.post("/api/tokens", {"name": "u", "scopes": ["manage_system"]}, bearer(secret))
    assert (reply.status, reply.body["details"]["reason"]) == (403, "scope_beyond")


async def test_a_token_decides_only_about_what_its_scopes_cover(web: RunningWeb) -> None:
    """Through an account everything can be done that its role may: a narrow token makes no wide one."""
    owner = await web.owner()
    scopes = ["manage_people", "read", "review"]
    secret = (await owner.post("/api/tokens", {"name": "t", "scopes": scopes})).body["secret"]
    program = web.browser()
    wide = {"login": "evil", "role": "system_admin", "password": PASSWORD}
    await add_user(owner, "clerk")
    await add_user(owner, "admin", "tenant_admin")
    others = [
        (await owner.post("/api/tokens", {"name": "t", "user": user})).body["token"]["token_uuid"]
        for user in ("admin", "clerk")
    ]
    for method, path, body in (
        ("POST", "/api/users", wide),
        ("POST", "/api/users", {**wide, "role": "site_manager"}),
        ("PATCH", "/api/users/clerk", {"role": "tenant_admin"}),
        ("POST", f"/api/users/{LOGIN}/password-link", {}),
        ("DELETE", f"/api/users/{LOGIN}", None),
        ("DELETE", f"/api/tokens/{others[0]}", None),
    ):
        reply = await program.ask(method, path, body, bearer(secret))
        assert (reply.status, reply.body["details"]["reason"]) == (403, "role_beyond_scopes"), path
    assert (await program.post("/api/users", {**wide, "role": "viewer"}, bearer(secret))).status == 201
    assert (await program.post("/api/users/clerk/password-link", {}, bearer(secret))).status == 201
    assert (await program.ask("DELETE", f"/api/tokens/{others[1]}", None, bearer(secret))).status == 204


async def test_a_token_leaves_nothing_that_outlives_it(web: RunningWeb) -> None:
    owner = await web.owner()
    made = (await owner.post("/api/tokens", {"name": "t", "scopes": ["read"]})).body
    other = (await owner.post("/api/tokens", {"name": "u", "scopes": ["read"]})).body
    program, mine = web.browser(), bearer(made["secret"])
    for method, path, body, reason in (
        ("POST", "/api/tokens", {"name": "v", "scopes": ["read"]}, "token_by_token"),
        ("DELETE", f"/api/tokens/{other['token']['token_uuid']}", None, "token_by_token"),
    ):
        reply = await program.ask(method, path, body, mine)
        assert (reply.status, reply.body["details"]["reason"]) == (403, reason), path
    assert (await program.get("/api/session", bearer(other["secret"]))).status == 200
    assert (await program.ask("DELETE", f"/api/tokens/{made['token']['token_uuid']}", None, mine)).status == 204
    assert (await program.get("/api/session", mine)).status == 401


async def test_who_manages_nobody_is_not_told_who_is_there(web: RunningWeb) -> None:
    owner = await web.owner()
    await add_user(owner, "viewer")
    viewer = await signed_in(web, "viewer")
    assert (await viewer.get("/api/tokens?user=viewer")).status == 200
    told = [(await viewer.get(f"/api/tokens?user={name}")).status for name in (LOGIN, "nobody")]
    assert told == [404, 404]


async def test_ones_own_tokens_only(web: RunningWeb) -> None:
    owner = await web.owner()
    await owner.post("/api/tokens", {"name": "owners"})
    await add_user(owner, "viewer")
    viewer = await signed_in(web, "viewer")
    await viewer.post("/api/tokens", {"name": "viewers"})
    assert [one["name"] for one in (await viewer.get("/api/tokens")).body["tokens"]] == ["viewers"]
    everybodys = (await owner.get("/api/tokens")).body["tokens"]
    assert {one["name"] for one in everybodys} == {"owners", "viewers"}
    first = (await owner.get("/api/tokens?limit=1")).body
    second = (await owner.get(f"/api/tokens?limit=1&after={first['next_after']}")).body
    assert first["tokens"] + second["tokens"] == everybodys
    assert (await owner.get(f"/api/tokens?limit=1&after={second['next_after']}")).body == {
        "tokens": [],
        "next_after": None,
    }
    owners = next(one for one in everybodys if one["name"] == "owners")
    assert (await viewer.ask("DELETE", f"/api/tokens/{owners['token_uuid']}")).status == 404


@pytest.mark.parametrize("given", ["camserver_", "camserver_made-up", "camserver_" + "x" * 500, "camserver_é"])
async def test_a_made_up_token_opens_nothing(web: RunningWeb, given: str) -> None:
    headers = {"Authorization": f"Bearer {given}".encode().decode("latin-1")}
    reply = await web.browser().get("/api/cameras", headers)
    assert reply.status == 401


# Sites


async def test_sites_are_added_changed_and_removed(web: RunningWeb) -> None:
    owner = await web.owner()
    added = await owner.post("/api/sites", {"name": " 倉庫 ", "timezone": "Asia/Tokyo"})
    assert (added.status, added.body["name"]) == (201, "倉庫")
    site = added.body["site_uuid"]
    assert (await owner.post("/api/sites", {"name": "倉庫"})).status == 409
    assert (await owner.post("/api/sites", {"name": "x", "timezone": "Mars/Base"})).status == 400
    assert (await owner.post("/api/sites", {"name": "\x07"})).status == 400
    assert (await owner.ask("PATCH", f"/api/sites/{site}", {"name": "depot"})).body["name"] == "depot"
    await add_camera(owner, "cam_1", "depot")
    in_use = await owner.ask("DELETE", f"/api/sites/{site}")
    assert (in_use.status, in_use.body["details"]["cameras"]) == (409, 1)
    assert (await owner.ask("DELETE", "/api/cameras/cam_1")).status == 204
    assert (await owner.ask("DELETE", f"/api/sites/{site}")).status == 204
    assert [one["name"] for one in (await owner.get("/api/sites")).body["sites"]] == ["main"]
    refused = await owner.post("/api/cameras", {"camera_id": "cam_2", "site": "depot", **CAMERA})
    assert refused.status == 404
    again = await owner.post("/api/sites", {"name": "depot", "timezone": "UTC"})
    assert (again.status, again.body["site_uuid"]) == (201, site), "the same site again"
    await owner.ask("DELETE", f"/api/sites/{site}")
    last = await owner.ask("DELETE", "/api/sites/main")
    assert (last.status, last.body["details"]["reason"]) == (409, "last_site")


async def test_no_site_is_called_by_the_id_of_another(web_on_each: RunningWeb) -> None:
    """Who manages one site would be given what is meant for the other."""
    owner = await web_on_each.owner()
    vault = (await owner.post("/api/sites", {"name": "vault"})).body["site_uuid"]
    await add_user(owner, "manager", "site_manager", grants={"sites": ["main"]})
    manager = await signed_in(web_on_each, "manager")
    for who, method, path in ((manager, "PATCH", "/api/sites/main"), (owner, "POST", "/api/sites")):
        refused = await who.ask(method, path, {"name": vault})
        assert (refused.status, refused.body["details"]["reason"]) == (409, "site_taken")
    # Its own id is no other's.
    assert (await owner.ask("PATCH", f"/api/sites/{vault}", {"name": vault})).status == 200


# The system


async def test_settings_are_shown_to_system_administrators_without_secrets(web: RunningWeb) -> None:
    owner = await web.owner()
    found = (await owner.get("/api/settings")).body["settings"]
    by_name = {f"{one['section']}.{one['key']}": one for one in found}
    assert by_name["web.session_hours"]["value"] == 12
    token = (web.settings.server.secrets_dir / "local_admin_token").read_text().strip()
    assert token not in str(found)
    await add_user(owner, "admin", "tenant_admin")
    assert (await (await signed_in(web, "admin")).get("/api/settings")).status == 403
