"""What went wrong at other camera servers, class by class, and where it is tried on this one."""

import ast
import asyncio
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from camserver.services.web import edge
from camserver.services.web.edge import ADDRESS_MAX_BYTES
from camserver.services.web.routing import GuardedRoute
from tests.services.web.rig import Browser, RunningWeb, api_routes

ROOT = Path(__file__).parents[3]
WEB = "tests/services/web"
# Class -> the tests that try it.
CLASSES: dict[str, tuple[str, ...]] = {
    "the list is checked, media, sockets, caches and logs are not": (
        f"{WEB}/test_matrix.py::test_every_route_is_in_the_matrix",
        f"{WEB}/test_matrix.py::test_what_is_another_tenants_does_not_exist",
        f"{WEB}/test_matrix.py::test_what_is_beyond_ones_grants_does_not_exist",
        f"{WEB}/test_feed.py::test_each_message_is_judged_by_the_grants_of_its_moment",
        f"{WEB}/test_media.py::test_a_small_picture_is_made_once_and_checked_each_time",
        f"{WEB}/test_media.py::test_signatures_are_not_logged",
        f"{WEB}/test_shares.py::test_the_log_does_not_open_shares",
        f"{WEB}/test_cve_classes.py::test_no_cache_on_the_way_keeps_what_somebody_was_let_in_for",
    ),
    "a configured string reaches a program": (
        f"{WEB}/test_sources.py::test_what_is_no_camera_address_is_refused",
        "tests/config/test_credential_keys.py::test_no_shell_reads_the_program",
        f"{WEB}/test_cve_classes.py::test_no_shell_anywhere",
    ),
    "path joins": (
        "tests/objects/test_objects.py::test_a_key_can_not_leave_the_folder",
        f"{WEB}/test_media.py::test_no_path_leads_out",
        f"{WEB}/test_cve_classes.py::test_no_address_leads_out",
    ),
    "cross-site requests": (
        f"{WEB}/test_access.py::test_a_change_must_come_from_our_own_pages",
        f"{WEB}/test_access.py::test_a_csrf_token_of_another_session_is_refused",
        f"{WEB}/test_access.py::test_signing_in_from_a_foreign_page_is_refused",
        f"{WEB}/test_feed.py::test_who_is_let_in",
    ),
    "DNS rebinding": (
        f"{WEB}/test_access.py::test_only_known_host_names_are_answered",
        f"{WEB}/test_hostile_requests.py::test_the_feed_answers_to_known_host_names_only",
        "tests/media/test_addresses.py::test_a_name_is_asked_for_once_and_ipv4_is_taken",
    ),
    "SQL injection": (f"{WEB}/test_cve_classes.py::test_what_looks_like_sql_is_only_text",),
    "server-side requests to where they must not go": (
        "tests/clients/test_outgoing.py::test_where_secrets_are_and_where_we_are_is_refused",
        "tests/clients/test_outgoing.py::test_other_addresses_are_refused",
        "tests/clients/test_webhook.py::test_a_redirect_is_not_followed",
        "tests/clients/test_webhook.py::test_this_machine_is_refused_unless_it_is_allowed",
        "tests/media/test_addresses.py::test_addresses_without_cameras_are_refused",
        "tests/media/test_addresses.py::test_the_server_is_refused",
        "tests/media/test_addresses.py::test_one_refused_address_refuses_the_name",
        f"{WEB}/test_oidc.py::test_a_place_to_sign_out_that_is_not_safe_is_not_used",
    ),
    "header injection": (f"{WEB}/test_cve_classes.py::test_a_line_break_becomes_no_header",),
    "tampered, expired and replayed links": (
        f"{WEB}/test_media.py::test_a_link_that_was_touched_is_refused",
        f"{WEB}/test_media.py::test_a_link_ends",
        f"{WEB}/test_shares.py::test_a_revoked_share_is_closed_at_once_and_swept_later",
    ),
    "pictures and archives that explode": (
        "tests/media/test_foreign_picture.py::test_a_jpeg_of_endless_scans_is_refused_by_every_reader",
        "tests/services/analyzer/models/test_bundle.py"
        "::test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked",
    ),
    "bodies that explode, and answers that say too much": (
        f"{WEB}/test_hostile_requests.py::test_a_body_that_explodes_is_bad_input",
        f"{WEB}/test_schemathesis.py::test_the_api_keeps_to_its_description",
    ),
    "two requests in one": (
        f"{WEB}/test_hostile_requests.py::test_a_request_whose_end_can_be_read_in_two_ways_is_not_answered",
    ),
    "slow and endless requests": (
        "tests/base/test_asgi.py::test_headers_that_never_end_are_not_waited_for",
        "tests/base/test_asgi.py::test_headers_have_a_bound",
        "tests/base/test_asgi.py::test_an_address_has_so_many_connections",
        f"{WEB}/test_access.py::test_a_request_that_is_too_large_is_refused",
        f"{WEB}/test_cve_classes.py::test_an_address_has_a_bound",
        f"{WEB}/test_cve_classes.py::test_a_body_that_never_ends_is_not_waited_for",
    ),
    "guessing": (
        f"{WEB}/test_session.py::test_guessing_is_slowed_down_but_the_owner_gets_in",
        f"{WEB}/test_shares.py::test_guessing_is_slowed_down",
        f"{WEB}/test_hostile_requests.py::test_nobody_gets_more_tries_by_saying_to_be_elsewhere",
        f"{WEB}/test_hostile_requests.py::test_a_lock_out_tells_nobody_who_is_here",
        f"{WEB}/test_throttle.py::test_another_address_and_another_login_are_not_slowed",
        f"{WEB}/test_media.py::test_wrong_links_are_counted_and_right_ones_are_not_held_up",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_each_class_is_tried(name: str) -> None:
    for one in CLASSES[name]:
        file, _, test = one.partition("::")
        assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE), one


GETS = [route for route in api_routes() if isinstance(route, GuardedRoute) and route.methods == {"GET"}]
STREAMS = {"/api/feed/events"}


def filled(path: str, part: str) -> str:
    return re.sub(r"\{[^}]+\}", part, path)


async def test_no_cache_on_the_way_keeps_what_somebody_was_let_in_for(web: RunningWeb) -> None:
    """Errors included; the UI's own files hold nothing of anybody."""
    owner = await web.owner()
    for route in GETS:
        if route.path in STREAMS or "page_address" in route.path:
            continue
        reply = await owner.get(filled(route.path, "1"))
        kept = reply.headers["Cache-Control"]
        assert "no-store" in kept or "private" in kept, route.path
        assert "public" not in kept, route.path


# What opens files or joins paths sees these as text, or not at all.
OUT = ("..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fsecrets", "%2fetc%2fpasswd", "..%5c..%5cwindows", "x%00.jpg")


async def test_no_address_leads_out(web: RunningWeb) -> None:
    owner = await web.owner()
    for route in GETS:
        # Any address of a page is answered with the one page of the UI.
        if "{" not in route.path or "page_address" in route.path:
            continue
        for out in OUT:
            reply = await owner.get(filled(route.path, out))
            assert reply.status in (400, 403, 404, 429, 503), (route.path, out)
            assert b"root:" not in reply.content


SQL = ("' OR '1'='1", "1; DROP TABLE users; --", '" UNION SELECT password_hash FROM users --', "%'; --", "\\'")


async def test_what_looks_like_sql_is_only_text(web: RunningWeb) -> None:
    owner = await web.owner()
    names = {
        route.path: sorted(parameter.name for parameter in route.dependant.query_params)
        for route in GETS
        if route.path.startswith("/api/") and route.path not in STREAMS
    }
    for path, parameters in names.items():
        for given in SQL[:2] if parameters else SQL[:1]:
            for name in parameters or ["x"]:
                reply = await query(owner, filled(path, "1"), name, given)
                assert reply < 500, (path, name, given)
    for given in SQL:
        assert (await owner.post("/api/cases", {"title": given})).status == 201
    titles = [one["title"] for one in (await owner.get("/api/cases")).body["cases"]]
    assert sorted(titles) == sorted(SQL)


async def query(browser: Browser, path: str, name: str, value: str) -> int:
    async with browser.http.get(browser.url + path, params={name: value}, allow_redirects=False) as response:
        await response.read()
        return response.status


async def test_a_line_break_becomes_no_header(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await owner.post("/api/cases", {"title": 'a"\r\nSet-Cookie: x=y\r\n\r\n<script>'})
    if made.status == 201:
        reply = await owner.get(f"/api/cases/{made.body['case_uuid']}/export")
        assert "Set-Cookie" not in reply.headers
        assert "\n" not in reply.headers["Content-Disposition"]
    for path in (
        "/share/x%0d%0aSet-Cookie:%20x=y",
        "/media/frame/x%0d%0aSet-Cookie:%20x=y",
        "/x%0d%0aSet-Cookie:%20x=y",
    ):
        assert "Set-Cookie" not in (await owner.get(path)).headers


async def test_an_address_has_a_bound(web: RunningWeb) -> None:
    reply = await web.browser().get("/healthz?x=" + "y" * ADDRESS_MAX_BYTES)
    assert (reply.status, reply.body["details"]["reason"]) == (414, "address_too_long")


async def test_a_body_that_never_ends_is_not_waited_for(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "BODY_TIMEOUT_SEC", 0.05)
    place = urlsplit(web.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"POST /api/session HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 100\r\n\r\n"
    writer.write(head.encode() + b"{")
    async with asyncio.timeout(60):
        answer = await reader.read()  # to its end: the connection is closed
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"too_slow" in answer
    writer.close()


def test_no_shell_anywhere() -> None:
    """Programs are started by their name and arguments, never through a shell."""
    found = []
    for file in sorted((ROOT / "src").rglob("*.py")):
        text = file.read_text()
        if not re.search(r"shell|os\.(system|popen)", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            is_shell = any(word.arg == "shell" and ast.unparse(word.value) != "False" for word in node.keywords)
            if is_shell or called in ("os.system", "os.popen") or called.endswith("create_subprocess_shell"):
                found.append(f"{file.name}:{node.lineno}")
    assert found == []
