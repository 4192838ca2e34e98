import asyncio

from camserver.store import Store, setup_links, users
from camserver.store.setup_links import LINKS_MAX, Standing
from tests.store.people_rows import HOUR_MS, NOW_MS, audit_rows, count_rows, new_admin, prepare


async def test_a_link_works_once_within_its_hour(store: Store) -> None:
    await prepare(store)
    assert await store.write(setup_links.add, "hash", NOW_MS)

    assert await store.read(setup_links.standing, "hash", NOW_MS + HOUR_MS - 1) is Standing.WORKS
    assert await store.read(setup_links.standing, "hash", NOW_MS + HOUR_MS) is Standing.EXPIRED
    assert await store.read(setup_links.standing, "other", NOW_MS) is Standing.UNKNOWN
    late = await store.write(setup_links.use, "hash", new_admin(), "1.2.3.4", NOW_MS + HOUR_MS)
    assert late is Standing.EXPIRED
    assert not await store.read(users.admin_exists)

    assert await store.write(setup_links.use, "hash", new_admin(), "1.2.3.4", NOW_MS) is Standing.WORKS
    again = await store.write(setup_links.use, "hash", new_admin("second"), "1.2.3.4", NOW_MS)
    assert again is Standing.ADMIN_EXISTS
    assert await store.read(count_rows, "users") == 1


async def test_racing_uses_of_two_links_make_one_admin(two_stores: tuple[Store, Store]) -> None:
    first, second = two_stores
    await prepare(first)
    for token in ("a", "b"):
        await first.write(setup_links.add, token, NOW_MS)

    standings = await asyncio.gather(
        *(
            store.write(setup_links.use, token, new_admin(f"{token}{index}"), "", NOW_MS)
            for index in range(5)
            for store, token in ((first, "a"), (second, "b"))
        )
    )

    assert sorted(standings).count(Standing.WORKS) == 1
    assert set(standings) == {Standing.WORKS, Standing.ADMIN_EXISTS}
    assert await first.read(count_rows, "users") == 1


async def test_no_link_is_made_once_there_is_an_admin(store: Store) -> None:
    await prepare(store)
    await store.write(setup_links.add, "hash", NOW_MS)
    await store.write(setup_links.use, "hash", new_admin(), "1.2.3.4", NOW_MS)

    assert not await store.write(setup_links.add, "late", NOW_MS)
    assert await store.read(setup_links.standing, "late", NOW_MS) is Standing.ADMIN_EXISTS
    [row] = await store.read(audit_rows)
    assert row[1] == "set_up"
    assert row[4] == {"login": "owner"}


async def test_links_are_bounded_and_the_newest_stay(store: Store) -> None:
    await prepare(store)
    for number in range(LINKS_MAX + 3):
        await store.write(setup_links.add, f"hash{number}", NOW_MS)

    assert await store.read(count_rows, "setup_links") == LINKS_MAX
    assert await store.read(setup_links.standing, "hash2", NOW_MS) is Standing.UNKNOWN
    assert await store.read(setup_links.standing, f"hash{LINKS_MAX + 2}", NOW_MS) is Standing.WORKS

    assert await store.write(setup_links.add, "only", NOW_MS, alone=True)
    assert await store.read(count_rows, "setup_links") == 1
    assert await store.read(setup_links.standing, "only", NOW_MS) is Standing.WORKS

    await store.write(setup_links.add, "fresh", NOW_MS + HOUR_MS)
    assert await store.read(count_rows, "setup_links") == 1
