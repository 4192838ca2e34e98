"""From a camera to an event with every picture in a bucket, and a copy in another, through the real processes."""

from pathlib import Path
from typing import Any

import obstore
from obstore.store import S3Store

from camserver.base.exits import Exit
from tests.e2e.installation import installation, seen, signed_in, two_pictures
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.buckets import REGION, BucketServer
from tests.rig.polling import poll_async
from tests.rig.processes import Launcher

SIZE = (320, 240)


def opened(buckets: BucketServer, bucket: str) -> S3Store:
    """Somebody else's client, to look at what is there."""
    return S3Store(
        bucket,
        endpoint=buckets.endpoint,
        region=REGION,
        access_key_id=buckets.access_key,
        secret_access_key=buckets.secret_key,
        client_options={"allow_http": True},
    )


def keys(store: S3Store) -> list[str]:
    return [found["path"] for page in obstore.list(store) for found in page]


async def test_an_event_with_its_pictures_in_a_bucket(
    launcher: Launcher, buckets: BucketServer, tmp_path: Path
) -> None:
    bucket, archive = buckets.make_bucket(), buckets.make_bucket()
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": analyzer.url},
        deliveries={"allow_loopback": True},
        objects={
            "url": f"s3://{bucket}/house",
            "endpoint": buckets.endpoint,
            "region": REGION,
            "access_key_id": buckets.access_key,
            "secret_access_key": buckets.secret_key,
        },
    )
    up = await house.ready()
    async with signed_in(house, house.setup_token) as browser:
        asked: dict[str, Any] = {
            "name": "second bucket",
            "kind": "s3",
            "config": {"bucket": archive, "endpoint": buckets.endpoint, "access_key_id": buckets.access_key},
            "secrets": {"secret_access_key": buckets.secret_key},
        }
        async with browser.post("/api/receivers", json=asked) as answer:
            assert answer.status == 201, await answer.text()
        await house.command("camera", "add", "gate", two_pictures(tmp_path / "pictures", SIZE))
        page = await seen(browser, "/api/events?primary_event=human", lambda body: bool(body["events"]))
        event = await seen(browser, f"/api/events/{page['events'][-1]['event_uuid']}", lambda body: True)
        frame_uuid = event["best_frame"]["frame_uuid"]
        async with browser.get(f"/api/frames/{frame_uuid}/picture?kind=full") as answer:
            assert (answer.status, answer.content_type) == (200, "image/jpeg"), await answer.text()
            picture = await answer.read()
        pictures, copies = opened(buckets, bucket), opened(buckets, archive)
        assert any(frame_uuid in key and key.startswith("house/e") for key in keys(pictures))

        async def copied() -> str | None:
            return next((key for key in keys(copies) if frame_uuid in key), None)

        key = await poll_async(copied, "a copy in the other bucket")
        assert bytes(await (await obstore.get_async(copies, key)).bytes_async()) == picture
        assert key.split("/")[-2] == "gate"
    assert not (house.data / "objects").exists()
    assert buckets.secret_key not in up.stderr_path.read_text()
    assert await up.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()
