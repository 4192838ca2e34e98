"""What an answer says beside its body: which methods an address takes, how to prove who one is, what is a socket."""

import pytest

from camserver.domain.people import Permission
from camserver.services.web.routing import GuardedRoute
from tests.services.web.rig import RunningWeb, api_routes


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/api/cameras", "GET, HEAD, POST"),
        ("PUT", "/api/cameras/cam_1", "DELETE, GET, HEAD, PATCH"),
        ("OPTIONS", "/api/session", "DELETE, GET, HEAD, POST"),
        ("GET", "/v1/streams/start", "POST"),
        ("POST", "/api/feed", "GET, HEAD"),
        ("POST", "/metrics", "GET, HEAD"),
        ("DELETE", "/events", "GET, HEAD"),
    ],
)
async def test_a_method_that_is_not_taken_is_told_those_that_are(
    web: RunningWeb, method: str, path: str, allowed: str
) -> None:
    for language, told in (("en", f"{method} is not taken at this address"), ("ja", f"{method} は使えません")):
        reply = await web.browser().ask(method, path, headers={"Accept-Language": language})
        assert (reply.status, reply.body["error_code"], reply.headers["Allow"]) == (405, "wrong_method", allowed)
        assert told in reply.body["message"]
        assert allowed in reply.body["message"]


async def test_head_of_what_takes_none_says_so_without_a_body(web: RunningWeb) -> None:
    reply = await web.browser().ask("HEAD", "/v1/streams/stop")
    assert (reply.status, reply.headers["Allow"], reply.content) == (405, "POST", b"")


async def test_the_feed_asked_for_without_a_socket_says_what_it_is(web: RunningWeb) -> None:
    for language in ("en", "ja"):
        reply = await web.browser().get("/api/feed?after=3", {"Accept-Language": language})
        assert (reply.status, reply.body["error_code"]) == (426, "needs_socket")
        assert (reply.headers["Upgrade"], reply.headers["Connection"]) == ("websocket", "Upgrade")
        assert "WebSocket" in reply.body["message"]
        assert "/api/feed/events" in reply.body["message"]
        assert reply.body["message"].isascii() == (language == "en")


async def test_whoever_is_not_known_is_told_by_what_to_prove_it(web: RunningWeb) -> None:
    """By a token, for which no browser opens a dialog of its own."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer camserver_wrong"}):
        reply = await web.browser().get("/api/cameras", headers)
        assert (reply.status, reply.headers["WWW-Authenticate"]) == (401, "Bearer")
    owner = await web.owner()
    assert "WWW-Authenticate" not in (await owner.get("/api/cameras")).headers


@pytest.mark.parametrize(
    "given", ["Bearer wrong", "Bearer", "bearer camserver-1", "Basic b3duZXI6cGFzcw==", "camserver_x"]
)
async def test_a_token_that_is_none_is_told_which_there_are(web: RunningWeb, given: str) -> None:
    for language in ("en", "ja"):
        reply = await web.browser().get("/api/cameras", {"Authorization": given, "Accept-Language": language})
        assert (reply.status, reply.body["details"]) == (401, {"reason": "unknown_token"})
        for named in ("Authorization", "Bearer", "camserver token add", "camserver_", "local_admin_token"):
            assert named in reply.body["message"]


async def test_an_answer_without_a_body_names_no_type_of_one(web: RunningWeb) -> None:
    owner = await web.owner()
    empty = {
        (method, route.path)
        for route in api_routes()
        if isinstance(route, GuardedRoute) and route.status_code == 204
        for method in route.methods or ()
    }
    assert {("DELETE", "/api/sessions"), ("DELETE", "/api/cameras/{camera_id}")} <= empty
    key = {"Idempotency-Key": "once"}
    for headers in ({}, key, key):
        reply = await owner.ask("DELETE", "/api/sessions", headers=headers)
        assert (reply.status, reply.content, "Content-Type" in reply.headers) == (204, b"", False)
    token = (await owner.post("/api/tokens", {"name": "t", "scopes": [Permission.READ.value]})).body["token"]
    gone = await owner.ask("DELETE", f"/api/tokens/{token['token_uuid']}")
    assert (gone.status, "Content-Type" in gone.headers) == (204, False)
