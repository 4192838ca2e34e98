"""Statements on the three databases: they answer alike, and in a principal's name they stay within its tenant."""

import pytest

from camserver.base.errors import Bug, Conflict
from camserver.domain.people import Principal, Role
from camserver.store import Dialect, Scoped, Store, Tx
from tests.store.scenery import furnish

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _names(tx: Tx, condition: str, **params: object) -> list[str]:
    rows = await tx.all(f"SELECT camera_id FROM cameras WHERE {condition} ORDER BY camera_id", **params)
    return [row["camera_id"] for row in rows]


async def _rename(tx: Tx, camera_key: int, name: str) -> int:
    return await tx.run("UPDATE cameras SET name = :name WHERE camera_key = :key", name=name, key=camera_key)


@pytest.mark.parametrize(
    ("condition", "params", "expected"),
    [
        ("camera_id IN (:ids...)", {"ids": ["cam_0", "cam_2", "none"]}, ["cam_0", "cam_2"]),
        ("camera_id IN (:ids...)", {"ids": []}, []),
        ("camera_id NOT IN (:ids...)", {"ids": ["cam_0"]}, ["cam_1", "cam_2"]),
        ("camera_id NOT IN (:ids...)", {"ids": ()}, ["cam_0", "cam_1", "cam_2"]),
        ("camera_id LIKE 'cam\\_%' AND enabled = :on", {"on": 1}, None),
        ("camera_id LIKE '%1' AND :x = :x", {"x": "5"}, ["cam_1"]),
        ("name = :x OR camera_id = :x", {"x": "cam_2"}, ["cam_2"]),
        ("camera_id IN (:ids...)", {"ids": ["CAM_0"]}, []),
        ("camera_id IN (:ids...)", {"ids": ["o'brien", 'q"', "%s", "\\", "日本"]}, []),
    ],
)
async def test_the_databases_answer_alike(
    fresh_store: Store, condition: str, params: dict[str, object], expected: list[str] | None
) -> None:
    await furnish(fresh_store)
    if expected is None:  # a backslash in LIKE is where they differ: SQLite has no default escape
        expected = [] if fresh_store.dialect is Dialect.SQLITE else ["cam_0", "cam_1", "cam_2"]
    assert await fresh_store.read(_names, condition, **params) == expected


@pytest.mark.parametrize("name", ["o'brien", 'a "b"', "100 %", "%s", "a\\b", "日本語 📷", ":x", "$1", "?", "\n"])
async def test_text_goes_in_and_comes_out_as_it_is(fresh_store: Store, name: str) -> None:
    scene = await furnish(fresh_store, cameras=1)
    assert await fresh_store.write(_rename, scene.camera_keys[0], name) == 1
    assert await fresh_store.read(_names, "name = :name", name=name) == ["cam_0"]


async def test_run_counts_the_rows_it_matched_changed_or_not(fresh_store: Store) -> None:
    scene = await furnish(fresh_store, cameras=1)
    assert await fresh_store.write(_rename, scene.camera_keys[0], "same") == 1
    assert await fresh_store.write(_rename, scene.camera_keys[0], "same") == 1
    assert await fresh_store.write(_rename, 0, "nobody") == 0


async def _rename_many(tx: Tx, names: tuple[tuple[int, str], ...]) -> None:
    rows = [{"key": key, "name": name} for key, name in names]
    await tx.many("UPDATE cameras SET name = :name WHERE camera_key = :key", rows)


async def test_many_runs_once_for_each_row_and_for_none(fresh_store: Store) -> None:
    scene = await furnish(fresh_store)
    await fresh_store.write(_rename_many, ())
    await fresh_store.write(_rename_many, tuple((key, f"n{index}%") for index, key in enumerate(scene.camera_keys)))
    assert await fresh_store.read(_names, "name LIKE 'n_%'") == ["cam_0", "cam_1", "cam_2"]


async def test_many_takes_more_rows_than_go_at_once_and_any_text(fresh_store: Store) -> None:
    """The last one counts; none of the texts ends a statement or begins another."""
    (key,) = (await furnish(fresh_store, cameras=1)).camera_keys
    odd = ("'; DELETE FROM cameras; --", "100 %s", "a\\'; x", "\n;", "日本")
    names = tuple((key, f"{odd[n % len(odd)]}{n}") for n in range(150))
    await fresh_store.write(_rename_many, names)
    assert await fresh_store.read(_names, "name = :name", name=names[-1][1]) == ["cam_0"]


async def _claim_ids(tx: Tx, ids: tuple[tuple[int, str], ...]) -> None:
    rows = [{"key": key, "camera_id": camera_id} for key, camera_id in ids]
    await tx.many("UPDATE cameras SET camera_id = :camera_id WHERE camera_key = :key", rows)


@pytest.mark.parametrize("bad", [0, 1, 2])
async def test_many_fails_whichever_row_fails_and_leaves_nothing(fresh_store: Store, bad: int) -> None:
    keys = (await furnish(fresh_store)).camera_keys
    ids = [(key, f"new_{n}") for n, key in enumerate(keys)]
    ids[bad] = (keys[bad], f"cam_{(bad + 1) % 3}" if bad < 2 else "new_0")
    with pytest.raises(Conflict):
        await fresh_store.write(_claim_ids, tuple(ids))
    assert await fresh_store.read(_names, "1 = 1") == ["cam_0", "cam_1", "cam_2"]
    assert await fresh_store.write(_rename, keys[0], "the connection is fine") == 1


async def _rename_at_once(tx: Tx, names: tuple[tuple[int, str], ...]) -> None:
    rows = [{"key": key, "name": name} for key, name in names]
    await tx.at_once("UPDATE cameras SET name = :name WHERE camera_key = :key", rows)


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_at_once_does_every_row_and_no_other(fresh_store: Store, count: int) -> None:
    scene = await furnish(fresh_store)
    odd = ("'; --", "100 %s", "日本 \\")
    await fresh_store.write(_rename_at_once, tuple(zip(scene.camera_keys, odd, strict=True))[:count])
    assert (
        await fresh_store.read(_names, "name IN (:names...)", names=list(odd)) == ["cam_0", "cam_1", "cam_2"][:count]
    )


async def _add_sites(tx: Tx, tenant_id: int, names: tuple[str, ...]) -> dict[str, int]:
    """By name, the keys as they were answered."""
    keys = await tx.insert_many(
        """
        INSERT INTO sites (tenant_id, site_uuid, name, created_at)
        VALUES (:tenant_id, :site_uuid, :name, 1) RETURNING site_id, site_uuid""",
        [{"tenant_id": tenant_id, "site_uuid": f"{n:036}", "name": name} for n, name in enumerate(names)],
    )
    return dict(zip(names, keys, strict=True))


async def _sites(tx: Tx) -> dict[str, int]:
    return {row["name"]: row["site_id"] for row in await tx.all("SELECT site_id, name FROM sites")}


@pytest.mark.parametrize("names", [(), ("one",), ("b", "a", "'; x", "%s")])
async def test_insert_many_answers_the_keys_in_the_order_of_its_rows(
    fresh_store: Store, names: tuple[str, ...]
) -> None:
    scene = await furnish(fresh_store)
    made = await fresh_store.write(_add_sites, scene.tenant_id, names)
    assert {**made, "main": scene.site_id} == await fresh_store.read(_sites)


async def _insert_without_key(tx: Tx) -> int:
    return await tx.insert("INSERT INTO epochs (owner, started_at, seen_at) VALUES ('x', 0, 0)")


async def test_an_insert_must_say_which_key_it_answers(fresh_store: Store) -> None:
    with pytest.raises(Bug):
        await fresh_store.write(_insert_without_key)


# In a principal's name


async def _all_cameras(tx: Scoped, sql: str) -> int:
    return len(await tx.all(sql))


async def _rename_as(tx: Scoped, sql: str, how: str) -> None:
    if how == "many":
        await tx.many(sql, [{"name": "x"}])
    else:
        await getattr(tx, how)(sql, name="x")


async def _with_tenant(tx: Scoped, tenant_id: int) -> None:
    await tx.one("SELECT 1 AS one FROM cameras WHERE tenant_id = :tenant_id", tenant_id=tenant_id)


def _principal(tenant_id: int) -> Principal:
    return Principal(tenant_id, None, Role.VIEWER)


async def test_a_principal_sees_its_own_tenant_only(fresh_store: Store) -> None:
    ours, theirs = await furnish(fresh_store, cameras=2), await furnish(fresh_store, cameras=3, name="theirs")
    sql = "SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id"
    assert await fresh_store.as_(_principal(ours.tenant_id)).read(_all_cameras, sql) == 2
    assert await fresh_store.as_(_principal(theirs.tenant_id)).read(_all_cameras, sql) == 3
    assert await fresh_store.as_(_principal(0)).read(_all_cameras, sql) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT camera_key FROM cameras",
        "SELECT camera_key FROM cameras WHERE tenant_id = 1",
        "SELECT camera_key FROM cameras WHERE tenant_id IN (:tenant_ids...)",
        "SELECT camera_key FROM cameras WHERE tenant_id = :tenant_id_of_mine",
        "SELECT x::tenant_id FROM cameras",
    ],
)
async def test_a_statement_without_the_tenant_is_refused(fresh_store: Store, sql: str) -> None:
    with pytest.raises(Bug, match="lacks :tenant_id"):
        await fresh_store.as_(_principal(1)).read(_all_cameras, sql)


@pytest.mark.parametrize("how", ["one", "all", "run", "insert", "many"])
async def test_no_way_around_the_tenant(fresh_store: Store, how: str) -> None:
    scene = await furnish(fresh_store, cameras=1)
    scoped = fresh_store.as_(_principal(scene.tenant_id))
    with pytest.raises(Bug, match="lacks :tenant_id"):
        await scoped.write(_rename_as, "UPDATE cameras SET name = :name", how)
    assert await fresh_store.read(_names, "name = 'x'") == []


async def test_the_tenant_is_no_argument(fresh_store: Store) -> None:
    with pytest.raises(Bug, match="from the principal"):
        await fresh_store.as_(_principal(1)).read(_with_tenant, 2)
