from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from camserver.base.errors import CamError, Conflict, Forbidden, NotFound, Reject, Unavailable
from camserver.base.secrets import Secret
from camserver.clients import local_server
from camserver.clients.local_server import LocalServer
from camserver.wire.api import CameraAsked, ErrorAnswer
from tests.rig.ports import listening_socket, port_of

TOKEN = "local-admin-token-of-tests"


class Api:
    """Answers as told and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str | None, Any]] = []
        self.status = 200
        self.body: bytes = b"{}"

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.method, request.raw_path, request.headers.get("Authorization"), body))
        headers = {"Location": "/elsewhere"} if self.status == 302 else {}
        return web.Response(status=self.status, body=self.body, content_type="application/json", headers=headers)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def server(api: Api, tmp_path: Path) -> AsyncIterator[LocalServer]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    sock = listening_socket()
    await web.SockSite(runner, sock).start()
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN + "\n")
    yield LocalServer(f"http://127.0.0.1:{port_of(sock)}", token_file)
    await runner.cleanup()


async def test_cameras_are_asked_for_with_the_token(server: LocalServer, api: Api) -> None:
    api.body = b'{"cameras": [{"camera_id": "cam_1"}]}'
    assert await server.cameras() == [{"camera_id": "cam_1"}]
    assert api.asked == [("GET", "/api/cameras", f"Bearer {TOKEN}", None)]


async def test_a_long_list_is_asked_for_page_by_page(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.body = b'{"cameras": [{"camera_id": "a b"}], "next_after": "a b"}'
    monkeypatch.setattr(local_server, "PAGES_MAX", 3)
    with pytest.raises(Unavailable, match="does not end"):
        await server.cameras()
    assert [path for _, path, _, _ in api.asked] == ["/api/cameras", *["/api/cameras?after=a%20b"] * 2]


async def test_adding_removing_and_setting_up(server: LocalServer, api: Api) -> None:
    await server.add_camera(
        "cam_1", "入口", "rtsp://192.0.2.1/a", "viewer", Secret("camera-password"), polling_interval_sec=2.5
    )
    await server.remove_camera("a/../b?c")
    await server.new_setup_link()
    wanted = {
        "camera_id": "cam_1",
        "name": "入口",
        "source": {"url": "rtsp://192.0.2.1/a", "user": "viewer", "password": "camera-password"},
        "polling_interval_sec": 2.5,
    }
    assert CameraAsked.model_validate(wanted)
    assert [(method, path, body) for method, path, _, body in api.asked] == [
        ("POST", "/api/cameras", wanted),
        ("DELETE", "/api/cameras/a%2F..%2Fb%3Fc", None),
        ("POST", "/api/setup/link", {}),
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, Reject),
        (400, Reject),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (429, Unavailable),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
async def test_refusals_become_our_errors(server: LocalServer, api: Api, status: int, kind: type[CamError]) -> None:
    told = ErrorAnswer(error_code="x", message="the camera is there already")
    api.status, api.body = status, told.model_dump_json().encode()
    with pytest.raises(kind) as caught:
        await server.cameras()
    assert type(caught.value) is kind
    assert status == 401 or "the camera is there already" in caught.value.message
    assert len(api.asked) == 1


async def test_an_answer_that_is_no_json_is_named_by_its_status(server: LocalServer, api: Api) -> None:
    api.status, api.body = 502, b"<html>"
    with pytest.raises(Unavailable, match="answered 502"):
        await server.cameras()


async def test_an_endless_answer_is_given_up(server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_server, "ANSWER_MAX_BYTES", 1_000)
    api.body = b"[" * 100_000
    with pytest.raises(Unavailable, match="longer than 1000 bytes"):
        await server.cameras()


async def test_no_server_is_told_with_how_to_start_one(tmp_path: Path) -> None:
    with listening_socket() as sock:
        port = port_of(sock)
    (tmp_path / "token").write_text(TOKEN)
    with pytest.raises(Unavailable, match="start it with: camserver up"):
        await LocalServer(f"http://127.0.0.1:{port}", tmp_path / "token").cameras()


async def test_no_token_means_that_no_server_ever_ran_here(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="camserver up"):
        await LocalServer("http://127.0.0.1:1", tmp_path / "missing").cameras()


async def test_an_answer_without_the_list_is_told(server: LocalServer, api: Api) -> None:
    with pytest.raises(Unavailable, match="is no camserver"):
        await server.cameras()


async def test_an_errand_is_waited_for(server: LocalServer, api: Api) -> None:
    api.body = b'{"errand_uuid": "e/1", "state": "failed", "result": {"cause": "no_route"}}'
    errand = await server.on_errand("/api/probes", {"site": "main"})
    assert errand["result"] == {"cause": "no_route"}
    assert [(method, path, body) for method, path, _, body in api.asked] == [
        ("POST", "/api/probes", {"site": "main"}),
        ("GET", "/api/errands/e%2F1?wait_sec=20", None),
    ]


async def test_an_errand_that_never_ends_is_given_up(
    server: LocalServer, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_server, "ERRAND_QUESTIONS_MAX", 3)
    api.body = b'{"errand_uuid": "e-1", "state": "waiting"}'
    with pytest.raises(Unavailable, match="does not end"):
        await server.on_errand("/api/probes", {})
    assert len(api.asked) == 4


async def test_the_picture_of_an_errand(server: LocalServer, api: Api) -> None:
    api.body = b"\xff\xd8 a picture"
    assert await server.errand_picture("e-1") == b"\xff\xd8 a picture"
    api.status, api.body = 404, b"{}"
    with pytest.raises(NotFound):
        await server.errand_picture("e-1")


class People:
    """Signs somebody in whose password is `right`, and tells who asks for what."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, str | None, str | None]] = []

    async def answer(self, request: web.Request) -> web.Response:
        cookie, csrf = request.cookies.get("camserver_session"), request.headers.get("X-CSRF-Token")
        self.asked.append((f"{request.method} {request.path}", request.headers.get("Authorization"), cookie, csrf))
        if request.method == "POST" and request.path == "/api/session":
            if (await request.json())["password"] != "right":
                return web.json_response({"message": "login or password is wrong"}, status=401)
            signed_in = web.json_response({"csrf_token": "csrf"}, status=201)
            signed_in.set_cookie("camserver_session", "cookie", httponly=True)
            return signed_in
        return web.Response(status=204 if request.method == "DELETE" else 409, body=b"")


async def test_a_person_signs_in_for_a_while_and_out_again(tmp_path: Path) -> None:
    people = People()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", people.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    sock = listening_socket()
    await web.SockSite(runner, sock).start()
    try:
        server = LocalServer(f"http://127.0.0.1:{port_of(sock)}", tmp_path / "no-token-is-read")
        with pytest.raises(Conflict):
            async with server.signed_in("owner", Secret("right")) as person:
                await person.post("/api/thing", {})
        with pytest.raises(Forbidden, match="owner was not signed in: login or password is wrong"):
            async with server.signed_in("owner", Secret("another one")):
                pass
    finally:
        await runner.cleanup()
    assert people.asked == [
        ("POST /api/session", None, None, None),
        ("POST /api/thing", None, "cookie", "csrf"),
        ("DELETE /api/session", None, "cookie", "csrf"),
        ("POST /api/session", None, None, None),
    ]
