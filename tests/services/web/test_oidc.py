"""Signing in with an OpenID Connect provider, over HTTP, against one that can lie."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from camserver.clients.oidc import KEEP_MS
from camserver.domain.oidc import FLOW_TTL_MS, TARGET_MAX_CHARS, Failure
from camserver.services.web.oidc import FLOWS_MAX
from camserver.services.web.throttle import FREE_TRIES_OF_ADDRESS
from camserver.store import Store, Tx
from tests.fakes.oidc.server import FakeProvider, Fault, Lie
from tests.rig.clock import ManualClock
from tests.rig.polling import until
from tests.rig.processes import REPOSITORY
from tests.services.web.rig import PASSWORD, Browser, Reply, RunningWeb, running_web

SUBJECT = "248289761001"


@pytest.fixture
async def provider(clock: ManualClock) -> AsyncIterator[FakeProvider]:
    async with FakeProvider(clock) as running:
        yield running


@pytest.fixture
def serving(sqlite_store: Store, clock: ManualClock, tmp_path: Path, provider: FakeProvider) -> Any:
    @asynccontextmanager
    async def serve(**settings: str) -> AsyncIterator[RunningWeb]:
        environ = {f"CAMSERVER_OIDC_{name.upper()}": value for name, value in settings.items()}
        async with running_web(sqlite_store, clock, tmp_path, {**provider.environ, **environ}) as running:
            yield running

    return serve


async def begin(browser: Browser, next_page: str = "") -> str:
    """Where the browser is led."""
    reply = await browser.get(f"/api/oidc/start?next={next_page}")
    assert reply.status == 303, reply.content
    return reply.headers["Location"]


async def come_back(browser: Browser, provider: FakeProvider, next_page: str = "") -> Reply:
    reply = await browser.get(provider.answer_to(await begin(browser, next_page)))
    assert reply.status == 303, reply.content
    return reply


def failure_of(address: str) -> str | None:
    parts = urlsplit(address)
    assert not parts.netloc
    return parse_qs(parts.query).get("problem", [None])[0] if parts.path == "/sign-in" else None


async def who(browser: Browser) -> str | None:
    reply = await browser.get("/api/session")
    return reply.body["login"] if reply.status == 200 else None


async def entries(web: RunningWeb, action: str) -> list[str]:
    async def read(tx: Tx) -> list[str]:
        rows = await tx.all(
            "SELECT details FROM audit_log WHERE action = :action ORDER BY entry_id LIMIT 100", action=action
        )
        return [str(row["details"]) for row in rows]

    return await web.store.read(read)


async def test_somebody_added_with_a_subject_signs_in_and_lands_on_the_page_asked_for(
    serving: Any, provider: FakeProvider
) -> None:
    async with serving() as web:
        owner = await web.owner()
        added = (await owner.post("/api/users", {"login": "kato", "oidc_subject": SUBJECT})).body
        assert (added["password_link"], added["user"]["oidc_subject"]) == (None, SUBJECT)
        browser = web.browser()
        reply = await come_back(browser, provider, "/events?camera%3Dgate")
        assert reply.headers["Location"] == "/events?camera=gate"
        assert await who(browser) == "kato"
        cookies = {line.partition("=")[0]: line for line in reply.headers.getall("Set-Cookie")}
        assert "SameSite=strict" in cookies["camserver_session"]
        assert "Max-Age=0" in cookies["camserver_oidc"]
        assert any('"oidc"' in one for one in await entries(web, "sign_in"))
        # A sign-in that is over leaves nothing to use again.
        assert failure_of((await browser.get(provider.answer_to(await begin(web.browser())))).headers["Location"])


async def test_sign_ins_in_two_tabs_both_come_back(serving: Any, provider: FakeProvider) -> None:
    async with serving() as web:
        owner = await web.owner()
        await owner.post("/api/users", {"login": "kato", "oidc_subject": SUBJECT})
        browser = web.browser()
        answers = [provider.answer_to(await begin(browser, f"/events?camera%3D{one}")) for one in "ab"]
        for one, answer in zip("ab", answers, strict=True):
            reply = await browser.get(answer)
            assert reply.headers["Location"] == f"/events?camera={one}"
        # Each was used up, and of many the oldest is forgotten.
        assert failure_of((await browser.get(answers[0])).headers["Location"]) == Failure.FLOW
        answers = [provider.answer_to(await begin(browser)) for _ in range(FLOWS_MAX + 1)]
        assert failure_of((await browser.get(answers[0])).headers["Location"]) == Failure.FLOW
        assert (await browser.get(answers[1])).headers["Location"] == "/"


async def test_long_targets_leave_room_for_the_newest_sign_in(serving: Any, provider: FakeProvider) -> None:
    async with serving() as web:
        browser = web.browser()
        for _ in range(FLOWS_MAX):
            reply = await browser.get("/api/oidc/start?next=/events%3Fcamera%3D" + "a" * (TARGET_MAX_CHARS - 20))
            [cookie] = reply.headers.getall("Set-Cookie")
            assert 200 < len(cookie.partition(";")[0]) < 4_096


async def test_the_cookie_of_a_flow_goes_to_sign_ins_alone_and_survives_the_way_back(
    serving: Any, provider: FakeProvider
) -> None:
    async with serving() as web:
        reply = await web.browser().get("/api/oidc/start")
        [cookie] = reply.headers.getall("Set-Cookie")
        assert all(one in cookie for one in ("Path=/api/oidc", "SameSite=lax", "HttpOnly", "Max-Age=600"))
        asked = parse_qs(urlsplit(reply.headers["Location"]).query)
        assert asked["redirect_uri"] == [f"{web.url}/api/oidc/callback"]
        assert asked["nonce"][0] not in cookie


async def test_without_a_provider_there_is_none(web: RunningWeb) -> None:
    offer = (await web.browser().get("/api/oidc")).body
    assert (offer["enabled"], offer["passwords"]) == (False, True)
    off = (await web.browser().get("/api/oidc/start")).headers["Location"]
    assert failure_of(off) == Failure.OFF
    assert failure_of((await web.browser().get("/api/oidc/callback")).headers["Location"]) == Failure.OFF


async def test_without_passwords_only_the_provider_signs_people_in(serving: Any, provider: FakeProvider) -> None:
    async with serving(passwords="false", label_en="Sign in with Example") as web:
        browser = web.browser()
        # The set-up link works all the same, and so does the local admin token.
        assert (await browser.post("/api/setup", web.set_up_body())).status == 201
        reply = await browser.sign_in()
        assert (reply.status, reply.body["details"]["reason"]) == (403, "passwords_off")
        offer = (await browser.get("/api/oidc")).body
        assert offer == {
            "enabled": True,
            "start_url": f"{web.url}/api/oidc/start",
            "label_ja": "組織のアカウントでサインイン",
            "label_en": "Sign in with Example",
            "passwords": False,
        }
        change = {"oidc_subject": SUBJECT}
        reply = await browser.ask("PATCH", "/api/users/owner", change, headers=web.local_admin)
        assert (reply.status, reply.body["oidc_subject"]) == (200, SUBJECT)
        await come_back(browser, provider)
        assert await who(browser) == "owner"


async def test_a_token_that_is_not_right_signs_nobody_in(serving: Any, provider: FakeProvider) -> None:
    provider.announced = ["first", "second"]
    async with serving(create="true") as web:
        for lie in Lie:
            provider.lie = lie
            browser = web.browser()
            location = (await come_back(browser, provider, "/events")).headers["Location"]
            assert location == "/sign-in?problem=token&next=%2Fevents", lie
            assert await who(browser) is None
        noted = await entries(web, "sign_in_failed")
        assert len(noted) == len(Lie)
        assert all('"token"' in one for one in noted)
        provider.lie = None
        await come_back(browser, provider)
        assert await who(browser) == "guard"


FAULTS = [
    *((name, fault) for name in ("openid-configuration", "keys", "token") for fault in
      (Fault.BROKEN, Fault.HUGE, Fault.REDIRECT, Fault.NO_JSON, Fault.CUT)),
    ("openid-configuration", Fault.FOREIGN),
    ("openid-configuration", Fault.UNSAFE),
]  # fmt: skip


async def test_a_provider_in_trouble_is_told_apart_and_nothing_of_its_words_is_shown(
    serving: Any, provider: FakeProvider, clock: ManualClock
) -> None:
    async with serving(create="true") as web:
        for name, fault in FAULTS:
            await clock.advance(3_700_000)
            provider.faults = {name: fault}
            browser = web.browser()
            location = await begin(browser)
            if name != "openid-configuration":
                location = (await browser.get(provider.answer_to(location))).headers["Location"]
            assert failure_of(location) == Failure.AWAY, (name, fault)
            assert location == "/sign-in?problem=away"
            assert "elsewhere" not in provider.asked
        provider.faults = {}
        await clock.advance(20_000)
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"


async def test_a_slow_provider_holds_up_nobody_else(serving: Any, provider: FakeProvider) -> None:
    async with serving(create="true") as web:
        provider.faults = {"token": Fault.HOLD}
        slow = web.browser()
        waiting = asyncio.create_task(come_back(slow, provider))
        await provider.held.wait()
        assert (await web.browser().get("/api/oidc")).status == 200
        provider.faults = {}
        other = web.browser()
        await come_back(other, provider)
        assert await who(other) == "guard"
        provider.released.set()
        await waiting
        assert await who(slow) == "guard"


async def test_an_outage_is_asked_about_once_in_a_while(
    serving: Any, provider: FakeProvider, clock: ManualClock
) -> None:
    provider.faults = {"openid-configuration": Fault.BROKEN}
    async with serving() as web:
        for _ in range(5):
            assert failure_of(await begin(web.browser())) == Failure.AWAY
        assert provider.asked == ["openid-configuration"]


async def test_keys_that_change_are_fetched_again_but_not_for_every_made_up_one(
    serving: Any, provider: FakeProvider, clock: ManualClock
) -> None:
    async with serving(create="true") as web:
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"
        provider.key, provider.announced = "second", ["first", "second"]
        await clock.advance(60_000)
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"
        assert provider.asked.count("keys") == 2
        provider.lie = Lie.UNKNOWN_KEY
        await clock.advance(60_000)
        for _ in range(5):
            assert failure_of((await come_back(web.browser(), provider)).headers["Location"]) == Failure.TOKEN
        assert provider.asked.count("keys") == 3
        assert provider.asked.count("openid-configuration") == 1


async def test_an_answer_counts_in_the_browser_that_asked_once_and_not_too_late(
    serving: Any, provider: FakeProvider, clock: ManualClock
) -> None:
    async with serving(create="true") as web:
        begun, other = web.browser(), web.browser()
        answer = provider.answer_to(await begin(begun))
        # Somebody else's answer, with and without a sign-in of one's own under way.
        assert failure_of((await other.get(answer)).headers["Location"]) == Failure.FLOW
        await begin(other)
        assert failure_of((await other.get(answer)).headers["Location"]) == Failure.FLOW
        await begun.get(answer)
        assert await who(begun) == "guard"
        assert failure_of((await begun.get(answer)).headers["Location"]) == Failure.FLOW
        late = web.browser()
        answer = provider.answer_to(await begin(late))
        await clock.advance(FLOW_TTL_MS)
        assert failure_of((await late.get(answer)).headers["Location"]) == Failure.FLOW
        mixed = web.browser()
        answer = provider.answer_to(await begin(mixed)).replace("iss=http", "iss=https")
        assert failure_of((await mixed.get(answer)).headers["Location"]) == Failure.FLOW
        made_up = web.browser()
        state = parse_qs(urlsplit(await begin(made_up)).query)["state"][0]
        reply = await made_up.get(f"/api/oidc/callback?state={state}&code=made-up")
        assert failure_of(reply.headers["Location"]) == Failure.REFUSED


async def test_a_cookie_that_is_not_ours_is_no_flow(serving: Any, provider: FakeProvider) -> None:
    async with serving() as web:
        for cookie in ("", ".", "a.b.c.d", "a.1.Lw.x", "\u00e9", "." * 300):
            headers = {"Cookie": f"camserver_oidc={cookie}"}
            reply = await web.browser().get("/api/oidc/callback?state=a&code=b", headers)
            assert failure_of(reply.headers["Location"]) == Failure.FLOW


async def test_what_the_provider_says_went_wrong_becomes_a_code(serving: Any, provider: FakeProvider) -> None:
    errors = {"access_denied": Failure.DENIED, "server_error": Failure.REFUSED, "<script>%0d%0aSet": Failure.REFUSED}
    async with serving() as web:
        for error, failure in errors.items():
            browser = web.browser()
            state = parse_qs(urlsplit(await begin(browser, "//evil.example")).query)["state"][0]
            reply = await browser.get(f"/api/oidc/callback?state={state}&error={error}&error_description=<b>x")
            assert reply.headers["Location"] == f"/sign-in?problem={failure}"


async def test_codes_that_lead_nowhere_are_slowed_down(serving: Any, provider: FakeProvider) -> None:
    async with serving(create="true") as web:

        async def try_a_code() -> str | None:
            browser = web.browser()
            state = parse_qs(urlsplit(await begin(browser)).query)["state"][0]
            reply = await browser.get(f"/api/oidc/callback?state={state}&code=made-up")
            return failure_of(reply.headers["Location"])

        for _ in range(FREE_TRIES_OF_ADDRESS):
            assert await try_a_code() == Failure.REFUSED
        assert await try_a_code() == Failure.TOO_MANY


async def test_answers_to_no_sign_in_keep_nobody_out(serving: Any, provider: FakeProvider) -> None:
    """A page of any site can have the browsers of a whole office ask for the callback."""
    async with serving(create="true") as web:
        await web.owner()
        begun = web.browser()
        answer = provider.answer_to(await begin(begun))
        for browser in (web.browser(), begun):
            for _ in range(FREE_TRIES_OF_ADDRESS):
                reply = await browser.get("/api/oidc/callback?state=a&code=b")
                assert failure_of(reply.headers["Location"]) == Failure.FLOW
                assert "Set-Cookie" not in reply.headers
        assert (await web.browser().sign_in()).status == 201
        await begun.get(answer)
        assert await who(begun) == "guard"


async def test_a_login_name_is_believed_only_where_the_settings_say_so(serving: Any, provider: FakeProvider) -> None:
    async with serving() as web:
        owner = await web.owner()
        assert (await owner.post("/api/users", {"login": "guard", "password": PASSWORD})).status == 201
        browser = web.browser()
        location = (await come_back(browser, provider)).headers["Location"]
        assert failure_of(location) == Failure.UNKNOWN
        [noted] = await entries(web, "sign_in_failed")
        assert SUBJECT in noted
    async with serving(create="true") as web:
        assert failure_of((await come_back(web.browser(), provider)).headers["Location"]) == Failure.LOGIN_TAKEN
    async with serving(link_by_login="true") as web:
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"
        assert len(await entries(web, "identity_linked")) == 1
        # Another subject of the same name gets nothing; the same subject under another name is the same person.
        provider.person = {"sub": "other", "preferred_username": "guard"}
        assert failure_of((await come_back(web.browser(), provider)).headers["Location"]) == Failure.LOGIN_TAKEN
        provider.person = {"sub": SUBJECT, "preferred_username": "owner"}
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"


async def test_somebody_switched_off_stays_outside(serving: Any, provider: FakeProvider) -> None:
    async with serving(create="true") as web:
        owner, browser = await web.owner(), web.browser()
        await come_back(browser, provider)
        assert (await owner.ask("PATCH", "/api/users/guard", {"disabled": True})).status == 200
        assert await who(browser) is None
        assert failure_of((await come_back(browser, provider)).headers["Location"]) == Failure.DISABLED
        assert await who(browser) is None


async def test_groups_give_roles_at_every_sign_in(serving: Any, provider: FakeProvider) -> None:
    roles = "admins=system_admin,guards=viewer"
    async with serving(create="true", groups_claim="realm_access.roles", roles=roles) as web:
        owner, browser = await web.owner(), web.browser()
        for groups, role in ((["guards"], "viewer"), (["guards", "admins"], "system_admin"), (["guards"], "viewer")):
            provider.person["realm_access"] = {"roles": groups}
            await come_back(browser, provider)
            assert (await owner.get("/api/users/guard")).body["role"] == role
        provider.person["realm_access"] = {"roles": ["cleaners"]}
        assert failure_of((await come_back(browser, provider)).headers["Location"]) == Failure.NO_GROUP
        # The last system administrator stays one.
        await owner.ask("PATCH", "/api/users/owner", {"oidc_subject": "owner-subject"})
        provider.person = {"sub": "owner-subject", "realm_access": {"roles": ["guards"]}}
        await come_back(web.browser(), provider)
        assert (await owner.get("/api/users/owner")).body["role"] == "system_admin"


@pytest.mark.parametrize(("with_secret", "in_body"), [(True, True), (False, False)])
async def test_the_secret_goes_where_the_provider_takes_it(
    with_secret: bool, in_body: bool, serving: Any, provider: FakeProvider
) -> None:
    provider.with_secret, provider.secret_in_body = with_secret, in_body
    async with serving(create="true") as web:
        browser = web.browser()
        await come_back(browser, provider)
        assert await who(browser) == "guard"


async def test_an_administrator_links_and_unlinks(serving: Any, provider: FakeProvider) -> None:
    async with serving() as web:
        owner = await web.owner()
        for login in ("one", "two"):
            await owner.post("/api/users", {"login": login, "password": PASSWORD})
        assert (await owner.ask("PATCH", "/api/users/one", {"oidc_subject": SUBJECT})).status == 200
        reply = await owner.ask("PATCH", "/api/users/two", {"oidc_subject": SUBJECT})
        assert (reply.status, reply.body["details"]["reason"]) == (409, "subject_taken")
        reply = await owner.ask("PATCH", "/api/users/two", {"oidc_subject": " x "})
        assert (reply.status, reply.body["details"]["reason"]) == (400, "oidc_subject")
        assert (await owner.ask("PATCH", "/api/users/one", {"oidc_subject": ""})).body["oidc_subject"] is None
        assert failure_of((await come_back(web.browser(), provider)).headers["Location"]) == Failure.UNKNOWN


def test_the_page_has_a_text_for_every_failure() -> None:
    ui = REPOSITORY / "ui" / "src"
    listed = (ui / "display" / "oidc.ts").read_text().partition("OIDC_PROBLEMS = [")[2].partition("]")[0]
    assert set(re.findall(r'"(\w+)"', listed)) == {one.value for one in Failure}
    for language in ("ja", "en"):
        texts = (ui / "i18n" / f"{language}.ts").read_text().partition("    problem: {")[2].partition("    },")[0]
        assert set(re.findall(r"^ {6}(\w+):", texts, re.MULTILINE)) == {"other", *(one.value for one in Failure)}


async def test_a_subject_needs_a_provider(web: RunningWeb) -> None:
    owner = await web.owner()
    reply = await owner.post("/api/users", {"login": "kato", "oidc_subject": SUBJECT})
    assert (reply.status, reply.body["details"]["reason"]) == (400, "oidc_off")


SIGN_OUT = "https://id.example/sign-out?realm=main"


async def signed_out(browser: Browser) -> Reply:
    browser.csrf_token = (await browser.get("/api/session")).body["csrf_token"]
    reply = await browser.ask("DELETE", "/api/session")
    assert reply.status == 200, reply.content
    assert await who(browser) is None
    return reply


async def test_who_came_in_by_the_provider_is_led_to_sign_out_there(serving: Any, provider: FakeProvider) -> None:
    provider.more = {"end_session_endpoint": SIGN_OUT}
    async with serving(create="1") as web:
        browser = web.browser()
        came = await come_back(browser, provider)
        [hint] = [line for line in came.headers.getall("Set-Cookie") if line.startswith("camserver_oidc_hint=")]
        assert all(one in hint for one in ("Path=/api/session;", "SameSite=strict", "HttpOnly"))
        reply = await signed_out(browser)
        place, _, query = reply.body["provider_url"].partition("&")
        asked = parse_qs(query)
        assert place == SIGN_OUT
        assert (asked["client_id"], asked["post_logout_redirect_uri"]) == (["camserver"], [f"{web.url}/sign-in"])
        assert asked["id_token_hint"][0] == hint.partition("=")[2].partition(";")[0]
        assert "Max-Age=0" in next(one for one in reply.headers.getall("Set-Cookie") if "oidc_hint" in one)


@pytest.mark.parametrize(
    "place", ["http://id.example/sign-out", "javascript:alert(1)", "https://id.example/#x", "", 5]
)
async def test_a_place_to_sign_out_that_is_not_safe_is_not_used(
    serving: Any, provider: FakeProvider, place: Any
) -> None:
    provider.more = {"end_session_endpoint": place}
    async with serving(create="1") as web:
        browser = web.browser()
        await come_back(browser, provider)
        assert (await signed_out(browser)).body == {"provider_url": None}


async def test_nobody_is_led_there_who_need_not_be(serving: Any, provider: FakeProvider) -> None:
    provider.more = {"end_session_endpoint": SIGN_OUT}
    async with serving(create="1") as web:
        # One browser, first by the provider and then with a password.
        await web.owner()
        browser = web.browser()
        await come_back(browser, provider)
        assert (await browser.sign_in()).status == 201
        assert (await signed_out(browser)).body == {"provider_url": None}
    async with serving(create="1", sign_out_there="0") as web:
        browser = web.browser()
        await come_back(browser, provider)
        assert (await signed_out(browser)).body == {"provider_url": None}


async def test_signing_out_does_not_wait_for_a_provider_that_hangs(
    serving: Any, provider: FakeProvider, clock: ManualClock
) -> None:
    provider.more = {"end_session_endpoint": SIGN_OUT}
    async with serving(create="1") as web:
        browser, stranger = web.browser(), web.browser()
        await come_back(browser, provider)
        await clock.advance(KEEP_MS + 1)
        provider.faults["openid-configuration"] = Fault.HOLD
        held = asyncio.create_task(begin(stranger))
        await provider.held.wait()
        assert (await signed_out(browser)).body["provider_url"].startswith(SIGN_OUT)
        provider.released.set()
        await held


async def test_the_provider_is_known_before_anybody_signs_in(serving: Any, provider: FakeProvider) -> None:
    async with serving():
        await until(lambda: provider.asked == ["openid-configuration"], "the question for the description")
