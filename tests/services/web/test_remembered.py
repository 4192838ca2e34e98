"""Who calls is remembered only while it holds."""

import asyncio

import pytest

from camserver.services.web.remembered import Remembered
from camserver.store import Store, sessions
from camserver.store.sql import Dialect, render
from tests.services.web.rig import PASSWORD, RunningWeb
from tests.store.people_rows import execute


class Numbered:
    """A store of which only the number is asked."""

    def __init__(self, rules_version: int | None) -> None:
        self.rules_version = rules_version


async def test_a_value_is_read_again_when_the_rules_have_changed() -> None:
    store = Numbered(1)
    remembered = Remembered(store)  # type: ignore[arg-type]  # a store of which only the number is asked
    read: list[int] = []

    async def value() -> int:
        read.append(1)
        return len(read)

    assert [await remembered.get(("a",), value) for _ in range(3)] == [1, 1, 1]
    store.rules_version = 2
    assert await remembered.get(("a",), value) == 2
    store.rules_version = None
    assert [await remembered.get(("a",), value) for _ in range(2)] == [3, 4], "others may change it unseen"


async def test_what_was_read_while_the_rules_changed_is_not_kept() -> None:
    store = Numbered(1)
    remembered = Remembered(store)  # type: ignore[arg-type]  # as above
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> str:
        begun.set()
        await go_on.wait()
        return "old"

    async def quickly() -> str:
        return "new"

    asking = asyncio.create_task(remembered.get(("a",), slowly))
    await begun.wait()
    store.rules_version = 2
    go_on.set()
    assert await asking == "old"
    assert await remembered.get(("a",), quickly) == "new"


@pytest.mark.parametrize(
    ("statement", "rules"),
    [
        ("SELECT user_id FROM users", False),
        ("UPDATE users SET role = :role WHERE user_id = :user_id", True),
        ("DELETE FROM sessions WHERE session_id = :session_id", True),
        ("INSERT INTO grants (tenant_id) VALUES (:tenant_id)", True),
        ("INSERT INTO schema_versions (schema_version) VALUES (:version) ON CONFLICT DO NOTHING", True),
        ("UPDATE frames SET late = 1 WHERE frame_id = :frame_id", False),
        ("UPDATE camera_sessions SET state = :state", False),
    ],
)
def test_statements_that_change_who_may_do_what_are_known(statement: str, rules: bool) -> None:
    assert render(statement, Dialect.SQLITE).rules == rules


async def count_reads(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operations that are read from now on."""
    names: list[str] = []
    read = store.read

    async def noted(operation, *args, **kwargs):  # type: ignore[no-untyped-def]  # as it is given
        names.append(operation.__qualname__)
        return await read(operation, *args, **kwargs)

    monkeypatch.setattr(store, "read", noted)
    return names


async def test_a_sign_in_is_looked_up_once_and_ends_at_once(web: RunningWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = await web.owner()
    await owner.post("/api/users", {"login": "mori", "role": "viewer", "password": PASSWORD})
    mori = web.browser()
    await mori.sign_in("mori")
    assert (await mori.get("/api/cameras")).status == 200
    names = await count_reads(web.store, monkeypatch)
    for _ in range(3):
        assert (await mori.get("/api/cameras")).status == 200
    assert sessions.find.__qualname__ not in names
    assert len(names) == 3, "one read for each request"

    assert (await owner.ask("PATCH", "/api/users/mori", {"disabled": True})).status == 200
    assert (await mori.get("/api/cameras")).status == 401


async def test_a_role_that_was_changed_past_the_api_holds_from_the_next_request_on(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await owner.post("/api/tokens", {"name": "robot", "scopes": ["read", "manage_people"]})
    token = {"Authorization": f"Bearer {made.body['secret']}"}
    robot = web.browser()
    assert (await robot.ask("GET", "/api/users", headers=token)).status == 200
    assert (await owner.get("/api/users")).status == 200
    await web.store.write(execute, "UPDATE users SET role = 'viewer'", {})
    assert (await robot.ask("GET", "/api/users", headers=token)).status == 403
    assert (await owner.get("/api/users")).status == 403


async def test_a_token_and_a_sign_in_end_with_their_time(web: RunningWeb) -> None:
    owner = await web.owner()
    made = await owner.post("/api/tokens", {"name": "robot", "days": 1})
    token = {"Authorization": f"Bearer {made.body['secret']}"}
    robot = web.browser()
    assert (await robot.ask("GET", "/api/cameras", headers=token)).status == 200
    web.clock.jump_wall(86_400_000)
    assert (await robot.ask("GET", "/api/cameras", headers=token)).status == 401
    assert (await owner.get("/api/cameras")).status == 401
