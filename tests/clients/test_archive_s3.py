"""Copies in a bucket: of a real S3-compatible store, and of one that answers whatever it likes."""

from collections.abc import AsyncIterator
from typing import Any

import obstore
import pytest
from obstore.store import S3Store

from camserver.base.clock import StoreClock
from camserver.clients.archive_s3 import FULL_PAUSE_SEC, S3Archive, _url_of
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.domain.deliveries import DeliveryError, Receiver, ReceiverKind, Trouble
from tests.clients.archiving import DELIVERY, PATH, archive_receiver, copy_of, forget
from tests.fakes.canned import Canned, CannedServer, canned_server
from tests.rig.buckets import REGION, BucketServer
from tests.rig.ports import LOOPBACK, free_port

ELSEWHERE = {"Location": "http://127.0.0.1:1/"}
PICTURE = bytes(range(256)) * 900


@pytest.fixture
async def archive() -> AsyncIterator[S3Archive]:
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=True))
    yield S3Archive(http, StoreClock())
    await http.close()


@pytest.fixture
def receiver(buckets: BucketServer) -> Receiver:
    return receiver_at(buckets, bucket=buckets.make_bucket(), prefix="house one")


def receiver_at(buckets: BucketServer, secret: str = "", **config: Any) -> Receiver:
    base = {"endpoint": buckets.endpoint, "region": REGION, "access_key_id": buckets.access_key, "path_style": True}
    return archive_receiver(ReceiverKind.S3, {**base, **config}, secret_access_key=secret or buckets.secret_key)


def other_client(buckets: BucketServer, receiver: Receiver) -> S3Store:
    """Somebody else's client, to look at what is there."""
    return S3Store(
        receiver.config["bucket"],
        endpoint=buckets.endpoint,
        region=REGION,
        access_key_id=buckets.access_key,
        secret_access_key=buckets.secret_key,
        client_options={"allow_http": True},
    )


async def test_a_copy_is_stored_with_its_delivery_and_hash(
    archive: S3Archive, receiver: Receiver, buckets: BucketServer
) -> None:
    copy = copy_of(PICTURE)
    stored = await archive.store(receiver, copy, forget)
    assert stored.external_id == f"house one/{PATH}"
    found = await obstore.get_async(other_client(buckets, receiver), stored.external_id)
    assert bytes(await found.bytes_async()) == PICTURE
    assert found.attributes["Content-Type"] == "image/jpeg"
    assert found.attributes["camserver-delivery"] == DELIVERY
    assert found.attributes["sha256"] == copy.sha256


async def test_a_repeat_stores_nothing_twice(archive: S3Archive, receiver: Receiver, buckets: BucketServer) -> None:
    first = await archive.store(receiver, copy_of(PICTURE), forget)
    before = obstore.head(other_client(buckets, receiver), first.external_id)
    again = await archive.store(receiver, copy_of(PICTURE), forget)
    assert again.external_id == first.external_id
    assert again.result["repeat"] is True
    after = obstore.head(other_client(buckets, receiver), first.external_id)
    assert after["last_modified"] == before["last_modified"]


async def test_somebody_elses_object_is_left_alone(
    archive: S3Archive, receiver: Receiver, buckets: BucketServer
) -> None:
    obstore.put(other_client(buckets, receiver), f"house one/{PATH}", b"theirs")
    with pytest.raises(DeliveryError, match="another object") as refused:
        await archive.store(receiver, copy_of(PICTURE), forget)
    assert refused.value.kind is Trouble.REFUSED
    kept = await obstore.get_async(other_client(buckets, receiver), f"house one/{PATH}")
    assert bytes(await kept.bytes_async()) == b"theirs"


async def test_a_copy_is_read_again_and_a_missing_one_is_none(archive: S3Archive, receiver: Receiver) -> None:
    stored = await archive.store(receiver, copy_of(PICTURE), forget)
    assert await archive.read(receiver, stored.external_id) == PICTURE
    assert await archive.read(receiver, f"{stored.external_id}.jpg") is None


async def test_a_copy_is_removed_and_removing_it_again_is_fine(
    archive: S3Archive, receiver: Receiver, buckets: BucketServer
) -> None:
    stored = await archive.store(receiver, copy_of(PICTURE), forget)
    for _ in range(2):
        await archive.remove(receiver, stored.external_id)
    with pytest.raises(FileNotFoundError):
        obstore.head(other_client(buckets, receiver), stored.external_id)


async def test_a_wrong_key_or_bucket_is_said_without_the_secret(archive: S3Archive, buckets: BucketServer) -> None:
    bucket = buckets.make_bucket()
    wrong = (
        (receiver_at(buckets, "not-the-right-one-4711", bucket=bucket), "secret key is wrong"),
        (receiver_at(buckets, bucket=bucket, access_key_id="AKNOBODY"), "access key is unknown"),
    )
    for receiver, words in wrong:
        with pytest.raises(DeliveryError, match=words) as failed:
            await archive.store(receiver, copy_of(PICTURE), forget)
        assert failed.value.kind is Trouble.FAILED
        assert "4711" not in failed.value.message


async def test_a_store_that_is_away_is_tried_again(archive: S3Archive, buckets: BucketServer) -> None:
    receiver = receiver_at(buckets, bucket="b", endpoint=f"http://{LOOPBACK}:{free_port()}")
    with pytest.raises(DeliveryError) as failed:
        await archive.store(receiver, copy_of(PICTURE), forget)
    assert failed.value.kind is Trouble.RETRY


@pytest.fixture
async def liar() -> AsyncIterator[CannedServer]:
    async with canned_server(Canned(200)) as server:
        yield server


def at_liar(liar: CannedServer, **config: Any) -> Receiver:
    base = {"endpoint": liar.url, "region": "r", "access_key_id": "AK", "bucket": "b", "path_style": True}
    return archive_receiver(ReceiverKind.S3, {**base, **config}, secret_access_key="secret-4711")


async def test_one_that_does_not_name_what_it_stored_is_asked_whether_it_did(
    archive: S3Archive, liar: CannedServer
) -> None:
    copy = copy_of(PICTURE)
    liar.answers[:] = [Canned(200), Canned(200, headers={"x-amz-meta-sha256": copy.sha256})]
    stored = await archive.store(at_liar(liar), copy, forget)
    assert "repeat" not in stored.result
    assert [asked.method for asked in liar.asked] == ["PUT", "HEAD"]
    liar.answers[:] = [Canned(200), Canned(404)]
    with pytest.raises(DeliveryError, match="404"):
        await archive.store(at_liar(liar), copy, forget)


async def test_one_that_names_it_is_believed(archive: S3Archive, liar: CannedServer) -> None:
    liar.answers[:] = [Canned(200, headers={"ETag": '"4711"'})]
    await archive.store(at_liar(liar), copy_of(PICTURE), forget)
    assert [asked.method for asked in liar.asked] == ["PUT"]


def error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>secret-4711 body</Message></Error>".encode()


@pytest.mark.parametrize(
    ("answer", "kind", "pause_sec", "words"),
    [
        (Canned(503, error("SlowDown"), {"Retry-After": "17"}), Trouble.RETRY, 17.0, "503 SlowDown"),
        (Canned(429), Trouble.RETRY, None, "429"),
        (Canned(500, error("InternalError")), Trouble.RETRY, None, "500 InternalError"),
        (Canned(409, error("ConditionalRequestConflict")), Trouble.RETRY, None, "409"),
        (Canned(403, error("QuotaExceeded")), Trouble.RETRY, FULL_PAUSE_SEC, "no space left"),
        (Canned(507, error("XMinioStorageFull")), Trouble.RETRY, FULL_PAUSE_SEC, "no space left"),
        (Canned(403, error("AccessDenied")), Trouble.FAILED, None, "may not do this"),
        (Canned(404, error("NoSuchBucket")), Trouble.FAILED, None, "does not exist"),
        (
            Canned(301, error("PermanentRedirect"), {"Location": "http://127.0.0.1:1/"}),
            Trouble.FAILED,
            None,
            "region",
        ),
        (Canned(403, error("RequestTimeTooSkewed")), Trouble.FAILED, None, "clock"),
        (Canned(400, b"\xff" * 500_000), Trouble.REFUSED, None, "400"),
        (Canned(302, b"", ELSEWHERE), Trouble.FAILED, None, "302"),
    ],
)
async def test_every_answer_means_something(
    archive: S3Archive,
    liar: CannedServer,
    answer: Canned,
    kind: Trouble,
    pause_sec: float | None,
    words: str,
) -> None:
    liar.answers = [answer]
    with pytest.raises(DeliveryError, match=words) as failed:
        await archive.store(at_liar(liar), copy_of(PICTURE), forget)
    assert (failed.value.kind, failed.value.retry_after_sec) == (kind, pause_sec)
    assert "body" not in failed.value.message
    assert len(liar.asked) == 1


async def test_a_store_without_conditions_gets_the_picture_without_one(
    archive: S3Archive, liar: CannedServer
) -> None:
    liar.answers = [Canned(501, error("NotImplemented")), Canned(200, headers={"ETag": '"1"'})]
    await archive.store(at_liar(liar), copy_of(PICTURE), forget)
    assert ["If-None-Match" in {name.title() for name in asked.headers} for asked in liar.asked] == [True, False]
    assert liar.asked[1].body == PICTURE


async def test_a_missing_bucket_is_not_taken_for_a_removed_copy(archive: S3Archive, liar: CannedServer) -> None:
    liar.answers = [Canned(404, error("NoSuchBucket"))]
    with pytest.raises(DeliveryError, match="does not exist"):
        await archive.remove(at_liar(liar), PATH)
    liar.answers = [Canned(404, error("NoSuchKey"))]
    await archive.remove(at_liar(liar), PATH)


async def test_the_bucket_stands_where_it_was_asked_for(archive: S3Archive, liar: CannedServer) -> None:
    await archive.remove(at_liar(liar, endpoint=f"{liar.url}/gate/", prefix="a"), "x+y.jpg")
    assert liar.asked[0].path == "/gate/b/x%2By.jpg"
    named = at_liar(liar, endpoint=None, path_style=False, bucket="pictures", region="eu-1")
    assert _url_of(named, "x.jpg") == "https://pictures.s3.eu-1.amazonaws.com/x.jpg"


async def test_an_address_of_this_machine_needs_permission(liar: CannedServer) -> None:
    http = OutgoingHttp(OutgoingPolicy())
    try:
        with pytest.raises(DeliveryError, match="allow_loopback") as refused:
            await S3Archive(http, StoreClock()).store(at_liar(liar), copy_of(PICTURE), forget)
    finally:
        await http.close()
    assert refused.value.kind is Trouble.REFUSED
    assert liar.asked == []
