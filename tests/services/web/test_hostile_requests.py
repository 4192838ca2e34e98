"""Requests that are made to hurt: bodies that explode, addresses that lie, two requests in one."""

import asyncio
from urllib.parse import urlsplit

import pytest

from camserver.services.web.throttle import FREE_TRIES, Throttle
from tests.rig.polling import TIMEOUT_SEC
from tests.services.web.rig import LOGIN, RunningWeb

NESTED = 30_000
# Each has to end in the one shape of errors. What a parser says to them is no JSON error: it may be any other.
BODIES = {
    "nested lists": b"[" * NESTED + b"]" * NESTED,
    "nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "never closed": b"[" * 2 * NESTED,
    "a number of many digits": b'{"login": ' + b"9" * 6_000 + b', "password": "x"}',
    "an endless exponent": b'{"login": 1e999999, "password": "x"}',
    "no UTF-8": b'{"login": "\xff\xfe", "password": "x"}',
    "half a character": b'{"login": "\\ud800", "password": "\\udfff"}',
    "a character of nothing": b'{"login": "a\\u0000b", "password": "x"}',
    "not a number": b'{"login": NaN, "password": Infinity}',
    "the same field twice": b'{"login": "a", "login": ["b"], "password": "x"}',
    "UTF-16": '{"login": "a", "password": "x"}'.encode("utf-16"),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_body_that_explodes_is_bad_input(web: RunningWeb, name: str) -> None:
    headers = {"Content-Type": "application/json"}
    reply = await web.browser().ask("POST", "/api/session", headers=headers, data=BODIES[name])
    assert reply.status in (400, 401), reply.content
    assert set(reply.body) == {"error_code", "message", "details"}


NOTHING = '{"title": "a\\u0000b"}'


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("Application/JSON", NOTHING.encode(), "bad_character"),
        ("application/Problem+JSON", NOTHING.encode(), "bad_character"),
        ("application/json", NOTHING.encode("utf-8-sig"), "bad_character"),
        *(
            (kind, NOTHING.encode(encoding), "not_utf8")
            for kind in ("application/json", "Application/Json; charset=utf-16")
            for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
        ),
        ("application/json", '{"title": "案件"}'.encode("shift_jis"), "not_utf8"),
        ("application/json", b'{"title": "\xff"}', "not_utf8"),
    ],
)
async def test_no_name_and_no_encoding_of_json_lets_the_character_of_nothing_in(
    web: RunningWeb, kind: str, body: bytes, reason: str
) -> None:
    for language, told in (("en", "UTF-8" if reason == "not_utf8" else "U+0000"), ("ja", "ください。")):
        headers = {**web.local_admin, "Content-Type": kind, "Accept-Language": language}
        reply = await web.browser().ask("POST", "/api/cases", headers=headers, data=body)
        assert (reply.status, reply.body["details"]) == (400, {"reason": reason})
        assert told in reply.body["message"]
    assert (await web.browser().get("/api/cases", web.local_admin)).body["cases"] == []


async def test_json_in_utf8_is_read_with_and_without_a_mark(web: RunningWeb) -> None:
    for kind, encoding in (("application/json", "utf-8"), ("APPLICATION/JSON", "utf-8-sig")):
        headers = {**web.local_admin, "Content-Type": kind}
        body = '{"title": "正門の件"}'.encode(encoding)
        reply = await web.browser().ask("POST", "/api/cases", headers=headers, data=body)
        assert (reply.status, reply.body.get("title")) == (201, "正門の件"), reply.body


async def raw(web: RunningWeb, request: bytes) -> bytes:
    """Everything that is answered until the server closes, or waits for more."""
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(web.url).port)
    writer.write(request)
    writer.write_eof()
    async with asyncio.timeout(TIMEOUT_SEC):
        answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "lengths",
    [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Content-Length: 6\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: identity, chunked\r\nContent-Length: 6\r\n",
        "Transfer-Encoding : chunked\r\n",
    ],
)
async def test_a_request_whose_end_can_be_read_in_two_ways_is_not_answered(web: RunningWeb, lengths: str) -> None:
    """What a proxy in front took for its body would be a second request, in somebody else's name."""
    host = f"Host: 127.0.0.1:{urlsplit(web.url).port}\r\n"
    smuggled = f"GET /healthz HTTP/1.1\r\n{host}\r\n"
    answer = await raw(web, f"POST /api/session HTTP/1.1\r\n{host}{lengths}\r\n0\r\n\r\n{smuggled}".encode())
    assert answer.count(b"HTTP/1.1 200") == 0, answer


@pytest.mark.parametrize("offer", ["h2c", "foo", "websocket"])
async def test_a_sign_in_that_offers_another_protocol_is_one_request_with_its_body(
    web: RunningWeb, offer: str
) -> None:
    host = f"Host: 127.0.0.1:{urlsplit(web.url).port}\r\n"
    offered = f"Connection: Upgrade\r\nUpgrade: {offer}\r\n"
    for body, status in (
        ('{"login": "nobody", "password": "a wrong password"}', b"401"),
        (f"GET /healthz HTTP/1.1\r\n{host}\r\n", b"400"),
    ):
        head = f"POST /api/session HTTP/1.1\r\n{host}{offered}Content-Type: application/json\r\n"
        last = f"GET /healthz HTTP/1.1\r\n{host}Connection: close\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(web.url).port)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}{last}".encode())
        async with asyncio.timeout(TIMEOUT_SEC):
            answer = await reader.read()
        writer.close()
        assert [one[:3] for one in answer.split(b"HTTP/1.1 ")[1:]] == [status, b"200"], answer


async def test_the_feed_answers_to_known_host_names_only(web: RunningWeb) -> None:
    """A page whose name was pointed at this server (DNS rebinding) is of the same origin as its own socket."""
    handshake = (
        "GET /api/feed HTTP/1.1\r\nHost: rebound.example\r\nOrigin: http://rebound.example\r\n"
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    answer = await raw(web, handshake.encode())
    assert answer.startswith(b"HTTP/1.1 421"), answer


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP", "Forwarded", "True-Client-IP", "Client-IP"])
async def test_nobody_gets_more_tries_by_saying_to_be_elsewhere(web: RunningWeb, header: str) -> None:
    """Nor can somebody have another one's address slowed down."""
    browser = web.browser()
    await web.owner()
    body = {"login": LOGIN, "password": "a wrong password"}
    said = [
        f"for=10.1.1.{number}" if header == "Forwarded" else f"10.1.1.{number}" for number in range(FREE_TRIES + 1)
    ]
    # Through two of them: a proxy adds what it sees behind what it was given.
    replies = [await browser.post("/api/session", body, {header: f"{one}, 10.2.2.2"}) for one in said]
    assert [reply.status for reply in replies] == [*[401] * FREE_TRIES, 429]


async def test_a_lock_out_tells_nobody_who_is_here(web: RunningWeb) -> None:
    await web.owner()
    tried = {}
    for login in (LOGIN, "nobody-here"):
        browser, body = web.browser(), {"login": login, "password": "a wrong password"}
        replies = [await browser.post("/api/session", body) for _ in range(FREE_TRIES + 1)]
        tried[login] = [(reply.status, reply.content) for reply in replies]
    assert tried[LOGIN] == tried["nobody-here"]


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "application/problem+json"])
async def test_json_by_any_of_its_names_is_read_alike(web: RunningWeb, kind: str) -> None:
    headers = {"Content-Type": kind}
    answers = [
        await web.browser().ask("POST", "/api/session", headers=headers, data=body)
        for body in (b'{"login": "nobody", "password": "x"}', b'{"login": 5}', b"{", b"")
    ]
    assert [(one.status, one.body["details"].get("reason")) for one in answers] == [
        (401, "wrong_login"),
        (400, "bad_fields"),
        (400, "bad_fields"),
        (400, "bad_fields"),
    ]
    problems = [[field["problem"] for field in one.body["details"]["fields"]] for one in answers[1:]]
    assert problems == [["string_type", "missing"], ["json_invalid"], ["missing"]]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense"])
async def test_what_does_not_say_that_it_is_json_is_told_so(web: RunningWeb, kind: str) -> None:
    """And not that something is wrong with what is in it."""
    body = b'{"login": "nobody", "password": "x"}'
    reply = await web.browser().ask("POST", "/api/session", headers={"Content-Type": kind}, data=body)
    assert (reply.status, reply.body["error_code"]) == (415, "not_json")
    assert "Content-Type: application/json" in reply.body["message"]


async def test_what_a_handler_refuses_is_done_once(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ValueError of its own is no wrong body, which would be read another way."""
    tried: list[str] = []

    def fail(self: object, keys: object, now_ms: int, what: str = "") -> None:
        tried.append(what)
        raise ValueError("of the handler")

    monkeypatch.setattr(Throttle, "count_try", fail)
    headers = {"Content-Type": "application/json"}
    body = b'{"login": "nobody", "password": "x"}'
    reply = await web.browser().ask("POST", "/api/session", headers=headers, data=body)
    assert (reply.status, len(tried)) == (500, 1)
