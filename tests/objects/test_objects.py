"""What holds wherever objects live, in a folder and in a bucket of a real S3-compatible store."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from camserver.base.errors import BadInput, NotFound
from camserver.base.secrets import Secret
from camserver.objects.interface import Objects
from camserver.objects.keys import DAY_MS, Kind, frame_key
from camserver.objects.local import LocalObjects
from camserver.objects.s3 import Bucket, S3Objects
from tests.rig.buckets import REGION, BucketServer


def in_bucket(server: BucketServer, prefix: str = "cameras/of house") -> S3Objects:
    return S3Objects(
        Bucket(server.make_bucket(), prefix, server.endpoint, REGION, server.access_key, Secret(server.secret_key))
    )


@pytest.fixture(params=["folder", "bucket"])
def kind(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def objects(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Objects:
    if kind == "folder":
        return LocalObjects(tmp_path / "objects")
    return in_bucket(request.getfixturevalue("buckets"))


async def test_what_was_put_is_got_and_replaced(objects: Objects) -> None:
    await objects.put("e1/t1/a.jpg", b"first")
    assert await objects.get("e1/t1/a.jpg") == b"first"
    await objects.put("e1/t1/a.jpg", b"second")
    assert await objects.get("e1/t1/a.jpg") == b"second"
    assert await objects.list("e1/", 10) == ["e1/t1/a.jpg"]


async def test_a_missing_object_is_not_found_and_may_be_deleted(objects: Objects) -> None:
    with pytest.raises(NotFound, match=r"e1/a\.jpg"):
        await objects.get("e1/a.jpg")
    await objects.delete("e1/a.jpg")


async def test_several_are_got_at_once_in_their_order_and_what_is_missing_costs_only_itself(objects: Objects) -> None:
    await objects.put("e1/t1/a", b"a")
    await objects.put("e1/t1/b", b"b")
    assert await objects.get_each(["e1/t1/b", "e1/t1/none", "e1/../x", "e1/t1/a"]) == [b"b", None, None, b"a"]
    assert await objects.get_each([]) == []


async def test_an_object_has_a_size_and_a_missing_one_none(objects: Objects) -> None:
    await objects.put("e1/t1/a", b"12345")
    assert await objects.size_bytes("e1/t1/a") == 5
    assert await objects.size_bytes("e1/t1/b") is None


async def test_a_part_of_an_object_ends_where_the_object_does(objects: Objects) -> None:
    await objects.put("e1/a.mp4", b"0123456789")
    for begin, length, part in ((0, 10, b"0123456789"), (3, 4, b"3456"), (8, 5, b"89"), (10, 5, b""), (0, 0, b"")):
        assert await objects.get_range("e1/a.mp4", begin, length) == part
    for begin, length in ((-1, 5), (0, -1)):
        with pytest.raises(BadInput):
            await objects.get_range("e1/a.mp4", begin, length)
    with pytest.raises(NotFound):
        await objects.get_range("e1/b.mp4", 0, 1)


@pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a/.hidden", "a\0b"])
async def test_a_key_can_not_leave_the_folder(objects: Objects, key: str) -> None:
    for attempt in (objects.put(key, b"x"), objects.get(key), objects.delete(key)):
        with pytest.raises(BadInput, match="no object key"):
            await attempt


@pytest.mark.parametrize("prefix", ["", "e1", "../", "/", "e1//"])
async def test_a_prefix_is_a_whole_folder(objects: Objects, prefix: str) -> None:
    with pytest.raises(BadInput):
        await objects.list(prefix, 10)


async def test_an_epochs_list_holds_no_other_epochs_objects(objects: Objects) -> None:
    for key in ("e1/t1/a.jpg", "e10/t1/a.jpg", "e2/t1/a.jpg"):
        await objects.put(key, b"x")
    assert await objects.list("e1/", 10) == ["e1/t1/a.jpg"]
    assert await objects.list("e3/", 10) == []


async def test_a_reader_sees_a_whole_object_or_none(objects: Objects) -> None:
    key = "e1/t1/a.jpg"
    bodies = {bytes([letter]) * 300_000 for letter in b"abcdefgh"}
    seen: set[bytes] = set()

    async def read() -> None:
        while len(seen) < 100:
            try:
                body = await objects.get(key)
            except NotFound:
                continue
            assert body in bodies
            seen.add(body)
            if writing.done():
                return

    writing = asyncio.ensure_future(_put_all(objects, key, sorted(bodies)))
    await asyncio.gather(writing, read())
    assert seen <= bodies


async def _put_all(objects: Objects, key: str, bodies: list[bytes]) -> None:
    for body in bodies:
        await objects.put(key, body)


async def test_putting_and_deleting_beside_each_other_in_one_folder(objects: Objects) -> None:
    """The folder that a delete removes may be the one a put has just made."""

    async def put_and_delete(number: int) -> None:
        for _ in range(30):
            await objects.put(f"e1/t1/c1/{number}.jpg", b"x")
            await objects.delete(f"e1/t1/c1/{number}.jpg")

    await asyncio.gather(*(put_and_delete(number) for number in range(6)))
    assert await objects.list("e1/", 10) == []


days = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 3), st.uuids())


@settings(max_examples=15)
@given(looks=st.sets(days, max_size=12), page=st.integers(1, 4))
@pytest.mark.parametrize("where", ["folder", "bucket"])
def test_pages_hold_every_picture_once_and_in_order(
    where: str,
    tmp_path_factory: pytest.TempPathFactory,
    buckets: BucketServer,
    looks: set[tuple[int, int, int, UUID]],
    page: int,
) -> None:
    wanted = {
        frame_key(1, tenant, camera, day * DAY_MS, str(uuid), Kind.INFER) for tenant, camera, day, uuid in looks
    }

    async def paged() -> list[str]:
        objects = in_bucket(buckets) if where == "bucket" else LocalObjects(tmp_path_factory.mktemp("listed"))
        for key in (*wanted, "e10/t1/other.jpg"):
            await objects.put(key, b"")
        found: list[str] = []
        while keys := await objects.list("e1/", page, found[-1] if found else ""):
            assert len(keys) <= page
            found += keys
        return found

    assert asyncio.run(paged()) == sorted(wanted)
