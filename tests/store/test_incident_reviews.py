"""Reviews of incidents: a person's own, and only of what they saw (decision 21)."""

from dataclasses import replace

import pytest

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.people import Principal, Role
from camserver.store import Store, cameras, incident_pages
from camserver.store.incident_pages import IncidentFilter
from camserver.store.incident_reviews import review, unreview
from tests.store.people_rows import NOW_MS, add_event, add_incident, add_tenant, add_user, admin_of, execute, prepare
from tests.store.test_cameras import CAMERA


async def people(store: Store) -> tuple[Principal, Principal]:
    """Two people of a tenant with two incidents, i0 and i1; the first one's last event is `first`."""
    home = await prepare(store)
    await store.as_(admin_of(home.tenant_id)).write(cameras.add, replace(CAMERA, camera_id="cam_1"), "", NOW_MS)
    incident_id = await store.write(add_incident, home.tenant_id, "cam_1", "i0", NOW_MS, 1)
    await store.write(add_incident, home.tenant_id, "cam_1", "i1", NOW_MS + 1, 1)
    await happens(store, home.tenant_id, incident_id, "first")
    users = [
        await store.write(add_user, home.tenant_id, name, "viewer", None, NOW_MS) for name in ("first", "second")
    ]
    first, second = [Principal(home.tenant_id, user_id, Role.VIEWER) for user_id in users]
    return first, second


async def happens(store: Store, tenant_id: int, incident_id: int, event_uuid: str) -> None:
    event_id = await store.write(add_event, tenant_id, "cam_1", event_uuid, NOW_MS)
    await store.write(
        execute,
        "UPDATE events SET incident_id = :incident_id WHERE event_id = :event_id",
        {"incident_id": incident_id, "event_id": event_id},
    )
    await store.write(
        execute,
        "UPDATE incidents SET last_event_id = :event_id WHERE incident_id = :incident_id",
        {"incident_id": incident_id, "event_id": event_id},
    )


async def worsens(store: Store, severity: int) -> None:
    await store.write(execute, "UPDATE incidents SET severity_max = :severity", {"severity": severity})


async def is_reviewed(store: Store, reader: Principal) -> bool:
    found = await store.as_(reader).read(incident_pages.get, "i0")
    listed = {
        wanted: [row.incident_uuid for row in await store.as_(reader).read(incident_pages.page, wanted, None, 9)]
        for wanted in (IncidentFilter(reviewed=True), IncidentFilter(reviewed=False), IncidentFilter())
    }
    assert listed[IncidentFilter()] == ["i1", "i0"]
    assert listed[IncidentFilter(reviewed=True)] == (["i0"] if found.reviewed_at is not None else [])
    assert listed[IncidentFilter(reviewed=False)] == (["i1"] if found.reviewed_at is not None else ["i1", "i0"])
    return found.reviewed_at is not None


async def test_a_review_is_a_persons_own(store: Store) -> None:
    first, second = await people(store)
    assert not await is_reviewed(store, first)
    shown = await store.as_(first).write(review, "i0", None, None, "", NOW_MS + 5)
    assert (shown.reviewed_at, shown.reviewers) == (NOW_MS + 5, 1)
    assert await is_reviewed(store, first)
    assert not await is_reviewed(store, second)
    shown = await store.as_(second).write(review, "i0", None, None, "", NOW_MS + 6)
    assert (shown.reviewed_at, shown.reviewers) == (NOW_MS + 6, 2)


async def test_a_program_finds_what_anybody_has_reviewed(store: Store) -> None:
    first, second = await people(store)
    program = store.as_(admin_of(first.tenant_id))

    async def found(reviewed: bool) -> list[str]:
        rows = await program.read(incident_pages.page, IncidentFilter(reviewed=reviewed), None, 9)
        return [row.incident_uuid for row in rows]

    assert (await found(True), await found(False)) == ([], ["i1", "i0"])
    await store.as_(first).write(review, "i0", None, None, "", NOW_MS)
    await store.as_(second).write(review, "i0", None, None, "", NOW_MS)
    assert (await found(True), await found(False)) == (["i0"], ["i1"])


async def test_it_can_be_taken_back_and_repeated(store: Store) -> None:
    first, _ = await people(store)
    for now_ms in (NOW_MS + 5, NOW_MS + 6):
        assert (await store.as_(first).write(review, "i0", None, None, "", now_ms)).reviewed_at == now_ms
    for _ in range(2):
        assert (await store.as_(first).write(unreview, "i0", "", NOW_MS + 7)).reviewers == 0
    assert not await is_reviewed(store, first)


async def test_a_higher_severity_or_another_event_unreviews(store: Store) -> None:
    first, _ = await people(store)
    await store.as_(first).write(review, "i0", None, None, "", NOW_MS)
    await worsens(store, 2)
    assert not await is_reviewed(store, first)
    await store.as_(first).write(review, "i0", None, None, "", NOW_MS)
    assert await is_reviewed(store, first)
    await happens(store, first.tenant_id, 1, "second")
    assert not await is_reviewed(store, first)


async def test_what_came_while_the_reader_looked_is_not_reviewed(store: Store) -> None:
    first, _ = await people(store)
    await happens(store, first.tenant_id, 1, "second")
    await store.as_(first).write(review, "i0", 1, "first", "", NOW_MS)
    assert not await is_reviewed(store, first)
    # One that is gone, or is another incident's, is told, and nothing is written.
    await happens(store, first.tenant_id, 2, "elsewhere")
    for uuid in ("gone", "elsewhere"):
        with pytest.raises(NotFound, match="read the incident again"):
            await store.as_(first).write(review, "i0", 1, uuid, "", NOW_MS)
        assert not await is_reviewed(store, first)
    await store.as_(first).write(review, "i0", 0, "second", "", NOW_MS)
    assert not await is_reviewed(store, first)
    # Nobody reviews what is yet to come.
    await store.as_(first).write(review, "i0", 3, "second", "", NOW_MS)
    assert await is_reviewed(store, first)
    await worsens(store, 2)
    assert not await is_reviewed(store, first)


async def test_only_people_review_and_only_what_they_reach(store: Store) -> None:
    first, _ = await people(store)
    with pytest.raises(Forbidden, match="person"):
        await store.as_(admin_of(first.tenant_id)).write(review, "i0", None, None, "", NOW_MS)
    stranger = await store.write(add_tenant, "other", NOW_MS)
    for reader in (replace(first, site_ids=frozenset({999})), replace(first, tenant_id=stranger.tenant_id)):
        for call in (
            store.as_(reader).write(review, "i0", None, None, "", NOW_MS),
            store.as_(reader).write(unreview, "i0", "", NOW_MS),
        ):
            with pytest.raises(NotFound):
                await call
    with pytest.raises(NotFound):
        await store.as_(first).write(review, "i9", None, None, "", NOW_MS)
