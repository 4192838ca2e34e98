"""Characters that some database refuses are bad input on every one, wherever they stand."""

import pytest

from tests.services.web.rig import RunningWeb

ASKED = [
    "/api/cameras?after=%00",
    "/api/search?primary_event=%00",
    "/api/search?text=a%00b",
    "/api/sites/a%00b",
    "/share/a%00b",
]


async def test_nothing_is_asked_for_by_them(web_on_each: RunningWeb) -> None:
    owner = await web_on_each.owner()
    for path in ASKED:
        reply = await owner.get(path, {"Accept-Language": "ja"})
        assert (reply.status, reply.body["details"]) == (400, {"reason": "bad_character"}), path
        assert "U+0000" in reply.body["message"]
        assert "使えない文字" in reply.body["message"]


@pytest.mark.parametrize("name", ["a\0b", "\\\0", "a\ud800b"])
async def test_they_are_not_kept(web_on_each: RunningWeb, name: str) -> None:
    owner = await web_on_each.owner()
    for path, body in (
        ("/api/sites", {"name": name}),
        ("/api/cases", {"title": name}),
        ("/api/session", {"login": name, "password": name}),
    ):
        reply = await owner.post(path, body)
        assert 400 <= reply.status < 500, (path, reply.status, reply.content)


async def test_their_names_are_plain_text(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/cases", {"title": "about \\u0000 and %00"})
    assert (reply.status, reply.body["title"]) == (201, "about \\u0000 and %00")
