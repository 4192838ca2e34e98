"""Who is told that the status of the installation changed, by what, and how often."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from camserver.domain.admission import AdmissionPolicy, Load
from camserver.domain.people import Principal, Role
from camserver.services.web import system_rounds
from camserver.services.web.feeds import Feeds, Reader, System
from camserver.store import Scoped, Store, counts, tenants
from tests.rig.clock import ManualClock
from tests.services.web.rig import RunningWeb, running_web
from tests.services.web.test_feed import Socket, connect, event, received
from tests.services.web.test_viewings import SOURCE, Place, report
from tests.store.people_rows import execute, prepare

POLICY = AdmissionPolicy()
HEALTH = """
UPDATE camera_state SET health = :health, health_cause = ''
WHERE camera_key IN (SELECT camera_key FROM cameras WHERE camera_id = :camera_id)"""


async def is_told(one: Reader) -> bool:
    """Whether something waits for it, which is then taken; whoever waits for nothing gets nothing at once."""
    taking = asyncio.ensure_future(one.next())
    await asyncio.sleep(0)
    if not taking.done():
        taking.cancel()
        return False
    assert isinstance(taking.result(), System)
    return True


async def test_whoever_reaches_the_same_is_told_by_one_reading(
    sqlite_store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = await prepare(sqlite_store)
    other = await sqlite_store.write(tenants.ensure, "other", clock.now_ms())
    asked: list[Principal] = []
    real = counts.signs

    async def counted(tx: Scoped, now_ms: int) -> counts.Signs:
        asked.append(tx.principal)
        return await real(tx, now_ms)

    monkeypatch.setattr(counts, "signs", counted)
    feeds = Feeds(sqlite_store, clock)
    await system_rounds.tell(sqlite_store, clock, POLICY, feeds)
    assert asked == [], "nobody is there"
    everywhere = Principal(home.tenant_id, None, Role.VIEWER)
    here = replace(everywhere, site_ids=frozenset({home.site_id}))
    stranger = Principal(other, None, Role.VIEWER)
    async with AsyncExitStack() as stack:
        who = (everywhere, everywhere, here, here, stranger)
        readers = [(await stack.enter_async_context(feeds.join(one)))[1] for one in who]
        await system_rounds.tell(sqlite_store, clock, POLICY, feeds)
        assert {one.reach for one in asked} == {one.reach for one in who}
        assert len(asked) == 3
        assert [await is_told(one) for one in readers] == [True] * 5, "the first time"
        await system_rounds.tell(sqlite_store, clock, POLICY, feeds)
        assert [await is_told(one) for one in readers] == [False] * 5, "nothing changed"
    await system_rounds.tell(sqlite_store, clock, POLICY, feeds)
    assert len(asked) == 6


def test_reading_takes_a_small_part_of_the_time() -> None:
    assert system_rounds.pause_ms(0) == system_rounds.pause_ms(300) == 3_000
    assert system_rounds.pause_ms(2_000) == 20_000


async def heard(web: RunningWeb, socket: Socket, kind: str) -> list[str]:
    """The types of what comes until a change of that kind, pings aside."""
    types: list[str] = []
    while True:
        body = (await received(web, socket)).json()
        if body["type"] != "ping":
            types.append(body["type"])
        if kind in [one["kind"] for one in body.get("changes", ())]:
            return types


async def system_told(web: RunningWeb, *sockets: Socket) -> None:
    for socket in sockets:
        while (await received(web, socket)).json()["type"] != "system":
            pass


@pytest.fixture
async def place(web_on_each: RunningWeb) -> Place:
    owner = await web_on_each.owner()
    assert (await owner.post("/api/sites", {"name": "annex"})).status == 201
    for camera_id, site in (("cam_1", "main"), ("cam_2", "annex")):
        body = {"camera_id": camera_id, "name": camera_id, "site": site, "source": SOURCE}
        assert (await owner.post("/api/cameras", body)).status == 201
    return Place(web_on_each, owner)


async def test_what_people_should_see_is_told_to_those_who_may(place: Place) -> None:
    web = place.web
    narrow = await place.person("narrow", grants={"sites": ["annex"]})
    sockets = [await connect(web, place.owner), await connect(web, narrow)]
    await system_told(web, *sockets)

    # A camera that only one of them reaches. Once the second change is told of, the round of the first is over.
    for health in ("down", "up"):
        await web.store.write(execute, HEALTH, {"camera_id": "cam_1", "health": health})
        await system_told(web, sockets[0])
    assert (await place.owner.ask("PATCH", "/api/sites/annex", {"timezone": "Asia/Tokyo"})).status == 200
    assert await heard(web, sockets[1], "site") == ["changes"], "no word of what is out of reach"

    await web.store.write(execute, HEALTH, {"camera_id": "cam_2", "health": "down"})
    await system_told(web, *sockets)
    # Live view is everybody's.
    await report(web, Load(99, 20, 0))
    await system_told(web, *sockets)
    for socket in sockets:
        await socket.close()


async def test_two_web_services_tell_of_the_same(
    two_stores: tuple[Store, Store], clock: ManualClock, tmp_path: Path
) -> None:
    async with (
        running_web(two_stores[0], clock, tmp_path) as here,
        running_web(two_stores[1], clock, tmp_path) as there,
    ):
        owner = await here.owner()
        await owner.post("/api/cameras", {"camera_id": "cam_1", "name": "Gate", "source": SOURCE})
        sockets = [await connect(web, owner) for web in (here, there)]
        await system_told(here, *sockets)
        await here.store.write(execute, HEALTH, {"camera_id": "cam_1", "health": "down"})
        await system_told(here, *sockets)
        for socket in sockets:
            await socket.close()


async def test_server_sent_events_tell_it_too(web: RunningWeb) -> None:
    owner = await web.owner()
    async with owner.http.get(f"{web.url}/api/feed/events") as response:
        found = [await event(web, response, ("ping",)) for _ in range(2)]
    assert ['"changes"' in found[0]["data"], '"system"' in found[1]["data"]] == [True, True]
    assert found[1]["id"] == found[0]["id"], "it has no number of its own"
