"""Which language is answered in: the request's, else the account's, also where the account is refused something."""

import aiohttp
import pytest

from camserver.base.errors import StoreUnavailable
from camserver.services.web.languages import choose_language
from tests.services.web.rig import Browser, RunningWeb


async def japanese_owner(web: RunningWeb) -> Browser:
    browser = web.browser()
    assert (await browser.post("/api/setup", web.set_up_body(language="ja"))).status == 201
    assert (await browser.sign_in()).status == 201
    return browser


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ja", "ja"),
        ("fr, ja;q=0.8, en;q=0.7", "ja"),
        ("en;q=0.9,ja;q=0.8", "en"),
        ("en; q=0.3, ja; q=0.9", "ja"),
        ("ja ;Q = 0.2, en-GB\t; q=0.1", "ja"),
        ("ja;level=1;q=0.1, en;q=0.5", "en"),
        ("jam, jav", "en"),
        ("ja;q=x", "en"),
        ("ja;q=", "en"),
        ("*", "en"),
    ],
)
def test_the_language_is_chosen_by_weight(header: str, language: str) -> None:
    assert choose_language(header) == language


async def test_a_program_is_answered_in_the_language_of_its_tokens_account(web: RunningWeb) -> None:
    owner = await japanese_owner(web)
    made = (await owner.post("/api/tokens", {"name": "reader", "scopes": ["read"]})).body
    token = {"Authorization": f"Bearer {made['secret']}"}
    program = web.browser()
    missing = await program.get("/api/cameras/none", token)
    assert missing.body["message"].startswith("カメラ「none」")
    assert (await program.get("/api/cameras/none", {**token, "Accept-Language": "en"})).body["message"].isascii()
    # What the account speaks, whatever this one request asks for.
    for asked in ({}, {"Accept-Language": "en"}):
        assert (await program.get("/api/session", {**token, **asked})).body["language"] == "ja"
    # Refused before there is a call.
    refused = await program.post("/api/cameras", {}, token)
    assert (refused.status, "範囲" in refused.body["message"]) == (403, True), refused.body


async def test_who_is_recognized_is_refused_in_their_own_language(web: RunningWeb) -> None:
    owner = await japanese_owner(web)
    owner.csrf_token = None
    reply = await owner.post("/api/cases", {"title": "x"})
    assert (reply.body["details"]["reason"], "再読み込み" in reply.body["message"]) == ("csrf", True), reply.body


async def test_so_is_who_asks_for_what_there_is_not(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await japanese_owner(web)
    made = (await owner.post("/api/tokens", {"name": "reader", "scopes": ["read"]})).body
    token = {"Authorization": f"Bearer {made['secret']}"}
    stranger = {"Authorization": "Bearer camserver_unknown"}

    async def asked(who: Browser, headers: dict[str, str]) -> list[tuple[int, bool]]:
        found = [await who.get("/api/nothing", headers), await who.ask("PUT", "/api/cameras", headers=headers)]
        return [(reply.status, reply.body["message"].isascii()) for reply in found]

    assert await asked(owner, {}) == await asked(web.browser(), token) == [(404, False), (405, False)]
    assert await asked(owner, {"Accept-Language": "en"}) == [(404, True), (405, True)]
    # Who is unknown is told the same.
    assert await asked(web.browser(), stranger) == await asked(web.browser(), {}) == [(404, True), (405, True)]

    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    # After a change of tokens nothing is remembered of who is signed in.
    await owner.post("/api/tokens", {"name": "another", "scopes": ["read"]})
    monkeypatch.setattr(web.store, "read", away)
    assert await asked(owner, {}) == [(404, True), (405, True)]


async def test_so_is_who_opens_the_feed(web: RunningWeb) -> None:
    owner = await japanese_owner(web)
    made = (await owner.post("/api/tokens", {"name": "writer", "scopes": ["manage_cameras"]})).body
    asked = {"Authorization": f"Bearer {made['secret']}"}
    async with aiohttp.ClientSession(web.url) as session:
        handshake = {
            **asked,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        }
        async with session.get("/api/feed", headers=handshake) as answer:
            assert (answer.status, "範囲" in (await answer.json())["message"]) == (403, True)
