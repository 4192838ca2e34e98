"""Headers by name, and the body in one piece, as the edge has read them."""

from typing import Any

from starlette.datastructures import Headers

from camserver.services.web.requests import BODY, HEADERS, ReadRequest, RequestHeaders

SENT = [(b"host", b"a"), (b"x-some", b"first"), (b"x-some", b"second"), (b"x-odd", b"\xe9")]


def scope() -> dict[str, Any]:
    return {"type": "http", "headers": list(SENT)}


def test_headers_are_as_starlettes() -> None:
    ours, theirs = RequestHeaders(scope()), Headers(scope=scope())
    for name in ("host", "HOST", "X-Some", "x-odd", "x-none"):
        assert ours.get(name) == theirs.get(name)
        assert ours.get(name, "otherwise") == theirs.get(name, "otherwise")
        assert (name in ours) == (name in theirs)
    assert ours["X-SOME"] == theirs["x-some"] == "first"
    assert ours.getlist("x-some") == ["first", "second"]
    assert ours.items() == theirs.items()
    assert 1 not in ours


async def test_a_request_has_what_was_read() -> None:
    read = scope()
    read[HEADERS], read[BODY] = RequestHeaders(read), b"abc"
    request = ReadRequest(read)
    assert request.headers.get("host") == "a"
    assert await request.body() == b"abc"
