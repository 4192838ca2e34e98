"""A bucket that is missing, refuses us, is away or hangs: clear words, in bounded time, and no secret in them."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from camserver.base.errors import BadSettings, DataUnusable, NotFound, Unavailable
from camserver.base.secrets import Secret
from camserver.config.sections import ObjectSettings
from camserver.objects import s3
from camserver.objects.local import LocalObjects
from camserver.objects.opening import bucket_of, open_objects
from camserver.objects.s3 import Bucket, S3Objects
from tests.rig.buckets import REGION, BucketServer, bucket_server
from tests.rig.polling import poll_async
from tests.rig.ports import LOOPBACK, free_port, listening_socket, port_of


@pytest.fixture
def bucket(buckets: BucketServer) -> Bucket:
    return Bucket(buckets.make_bucket(), "", buckets.endpoint, REGION, buckets.access_key, Secret(buckets.secret_key))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives up soon: what is waited for never comes."""
    monkeypatch.setattr(s3, "REQUEST_TIMEOUT", timedelta(milliseconds=200))
    monkeypatch.setattr(s3, "RETRIES_MAX", 1)


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections and never answers."""
    with listening_socket() as sock:
        yield port_of(sock)


async def test_a_missing_bucket_is_no_missing_object(bucket: Bucket) -> None:
    """Taken for a missing picture, it would end every job for good."""
    objects = S3Objects(replace(bucket, name="there-is-no-such-bucket"))
    with pytest.raises(Unavailable, match=r"does not exist.*make it"):
        await objects.get("e1/a.jpg")
    with pytest.raises(NotFound):
        await S3Objects(bucket).get("e1/a.jpg")


async def test_wrong_keys_are_said_at_start_and_not_shown(bucket: Bucket) -> None:
    objects = S3Objects(replace(bucket, secret_access_key=Secret("not-the-right-one-4711")))
    with pytest.raises(Unavailable, match="refuses camserver's keys") as refused:
        await objects.put("e1/a.jpg", b"the picture")
    for word in ("4711", "the picture", "<", "Signature"):
        assert word not in refused.value.message
    with pytest.raises(DataUnusable, match="secret_access_key"):
        await objects.check()


async def test_a_usable_bucket_is_left_as_it_was(bucket: Bucket) -> None:
    objects = S3Objects(bucket)
    await objects.check()
    assert await objects.list("e0/", 10) == []
    assert await objects.free_bytes() is None


@pytest.mark.usefixtures("hasty")
async def test_a_store_that_is_away_does_not_keep_camserver_from_starting(bucket: Bucket) -> None:
    objects = S3Objects(replace(bucket, endpoint=f"http://{LOOPBACK}:{free_port()}"))
    with capture_logs() as logged:
        await objects.check()
    assert [line["event"] for line in logged] == ["object_store_away"]
    with pytest.raises(Unavailable, match="check \\[objects\\] endpoint"):
        await objects.get("e1/a.jpg")


@pytest.mark.usefixtures("hasty")
async def test_a_store_that_never_answers_is_given_up(bucket: Bucket, silent_port: int) -> None:
    objects = S3Objects(replace(bucket, endpoint=f"http://{LOOPBACK}:{silent_port}"))
    for asked in (
        objects.put("e1/a.jpg", b"x"),
        objects.get("e1/a.jpg"),
        objects.get_range("e1/a.jpg", 0, 1),
        objects.delete("e1/a.jpg"),
        objects.list("e1/", 10),
    ):
        with pytest.raises(Unavailable):
            await asyncio.wait_for(asked, 60)


@pytest.mark.usefixtures("hasty")
async def test_a_store_that_comes_back_needs_no_restart_of_ours() -> None:
    with bucket_server() as server:
        keys = server.access_key, Secret(server.secret_key)
        objects = S3Objects(Bucket(server.make_bucket(), "", server.endpoint, REGION, *keys))

        async def takes_it() -> bool:
            try:
                await objects.put("e1/b.jpg", b"y")
            except Unavailable:  # a busy machine may take longer than a hasty client waits
                return False
            return True

        await poll_async(takes_it, "the store takes pictures")
        server.crash()
        with pytest.raises(Unavailable):
            await objects.put("e1/b.jpg", b"x")
        server.start_again()
        await poll_async(takes_it, "the store takes pictures again")
        assert await objects.get("e1/b.jpg") == b"y"


@pytest.mark.parametrize(
    ("url", "name", "prefix"),
    [("s3://pictures", "pictures", ""), ("s3://pictures/", "pictures", ""), ("s3://b/a/b/", "b", "a/b")],
)
def test_the_address_names_bucket_and_prefix(url: str, name: str, prefix: str) -> None:
    bucket = bucket_of(ObjectSettings(dir=Path("unused")), url)
    assert (bucket.name, bucket.prefix, bucket.secret_access_key) == (name, prefix, None)


@pytest.mark.parametrize(
    "url", ["pictures", "http://x/y", "s3://", "s3://key:secret@b", "s3://b?x=1", "s3://b/a//b", "s3://b/../c"]
)
def test_another_address_is_refused(url: str) -> None:
    with pytest.raises(BadSettings, match=r"objects\.url"):
        bucket_of(ObjectSettings(dir=Path("unused")), url)


def test_keys_come_in_pairs() -> None:
    with pytest.raises(BadSettings, match="belong together"):
        bucket_of(ObjectSettings(dir=Path("unused"), access_key_id="AK"), "s3://b")


async def test_without_a_bucket_pictures_are_files(tmp_path: Path) -> None:
    assert isinstance(await open_objects(ObjectSettings(dir=tmp_path / "objects")), LocalObjects)


async def test_with_a_bucket_pictures_are_there(bucket: Bucket, tmp_path: Path) -> None:
    settings = ObjectSettings(
        dir=tmp_path / "objects",
        url=f"s3://{bucket.name}/house",
        endpoint=bucket.endpoint,
        access_key_id=bucket.access_key_id,
        secret_access_key=bucket.secret_access_key,
    )
    objects = await open_objects(settings)
    await objects.put("e1/a.jpg", b"x")
    assert await S3Objects(bucket).get("house/e1/a.jpg") == b"x"
    assert not (tmp_path / "objects").exists()
