"""The streamer with real sockets: who is let in, what they are shown, and what is left when they go."""

import asyncio
import io
from collections.abc import AsyncIterator

import aiohttp
import pytest
from PIL import Image

from camserver.base.errors import Unavailable
from camserver.domain import live_links
from camserver.services.streamer import snapshots
from camserver.wire.live import (
    CLOSE_GONE,
    CLOSE_OVER,
    CLOSE_REPLACED,
    CLOSE_SESSION_OVER,
    PICTURE_ASKED,
    FeedStatus,
)
from tests.rig.polling import poll_async, until
from tests.services.streamer.live_rig import CAMERA, KEYS, Rig, shown, streamer


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with streamer() as rig:
        yield rig


async def test_a_viewer_sees_what_the_camera_sends(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    await watcher.until_state("connecting")
    feed = await rig.feed()
    feed.begin()
    await watcher.until_media(1)
    assert watcher.inits[0] == {
        "type": "init",
        "mime": watcher.inits[0]["mime"],
        "codec": "h264",
        "width": 320,
        "height": 192,
        "note": "",
        "source_codec": "",
    }
    assert watcher.inits[0]["mime"].startswith('video/mp4; codecs="avc1.')
    feed.push(10)
    await watcher.until_state("live")
    await watcher.until_media(11)
    frames = watcher.frames()
    assert len(frames) == 10
    assert [round(float(frame.to_ndarray()[:192].mean()), -1) for frame in frames] == [40 + 10 * n for n in range(10)]
    await until(lambda: rig.desk.viewings[lease_id].feed == "fed", "the store knows that it is fed")


async def test_whoever_comes_later_gets_a_picture_at_once(rig: Rig) -> None:
    first = await rig.watch(rig.desk.admit())
    feed = await rig.feed()
    feed.begin()
    feed.push(8)
    await first.until_media(9)
    # From the last keyframe on, without anything new from the camera.
    second = await rig.watch(rig.desk.admit())
    await second.until_media(4)
    assert [frame.key_frame for frame in second.frames()] == [True, False, False]
    feed.push(2)
    await second.until_media(6)
    assert len(second.frames()) == 5


async def test_without_a_valid_viewing_nobody_is_let_in(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    sig = live_links.view_signature(KEYS, lease_id)
    for status, path in [
        (403, f"/stream/{CAMERA}"),
        (403, f"/stream/{CAMERA}?lease={lease_id}&sig={'A' * 43}"),
        (404, f"/stream/another?lease={lease_id}&sig={sig}"),
        (404, live_links.stream_url(KEYS, "http://x", CAMERA, "unknown").removeprefix("ws://x")),
        (404, "/elsewhere"),
    ]:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await rig.session.ws_connect(rig.origin + path)
        assert refused.value.status == status, path
    rig.desk.end(lease_id)
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await rig.watch(lease_id)
    assert refused.value.status == 404
    assert (await rig.hls(lease_id))[0] == 404
    async with rig.session.get(f"{rig.origin}/hls/{lease_id}.{'A' * 43}/index.m3u8") as answer:
        assert answer.status == 403
    rig.desk.is_away = True
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await rig.watch(rig.desk.admit())
    assert refused.value.status == 503


async def test_a_feed_needs_a_ticket_of_ours_once(rig: Rig) -> None:
    for values in ({"streamer_id": "another"}, {"expires_at": 5}):
        with pytest.raises(Unavailable, match="403"):
            await rig.feed(**values)
    rig.desk.admit()
    feed = await rig.feed(nonce="the same")
    with pytest.raises(Unavailable, match="403"):
        await rig.feed(nonce="the same")
    newer = await rig.feed()
    assert await feed.closed() == CLOSE_REPLACED
    newer.line.close()


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("ttl", CLOSE_OVER),
        ("heartbeat", CLOSE_OVER),
        ("released", CLOSE_OVER),
        ("session_over", CLOSE_SESSION_OVER),
        ("camera_gone", CLOSE_GONE),
    ],
)
async def test_the_end_of_a_viewing_ends_everything_of_it(rig: Rig, reason: str, code: int) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    feed = await rig.feed()
    feed.begin()
    feed.push(3)
    await watcher.until_media(4)
    rig.desk.end(lease_id, reason)
    assert await watcher.until_closed() == code
    assert watcher.end == reason
    assert await feed.closed() == CLOSE_GONE
    await nothing_left(rig)


async def test_a_viewer_that_goes_has_the_camera_let_go(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    feed = await rig.feed()
    feed.begin()
    feed.push(3)
    await watcher.until_media(4)
    await watcher.socket.close()
    assert await feed.closed() == CLOSE_GONE
    await until(lambda: rig.desk.viewings[lease_id].feed == "idle", "the store knows that nobody is attached")
    await nothing_left(rig)
    # The same viewing may be opened again while it lasts.
    again = await rig.watch(lease_id)
    await until(lambda: rig.desk.viewings[lease_id].feed == "wanted", "it wants to be fed again")
    await again.socket.close()


async def test_the_last_viewer_of_several_counts(rig: Rig) -> None:
    watchers = [await rig.watch(rig.desk.admit()) for _ in range(3)]
    feed = await rig.feed()
    feed.begin()
    feed.push(5)
    for watcher in watchers:
        await watcher.until_media(6)
    await watchers[0].socket.close()
    await watchers[1].socket.close()
    feed.push(1)
    await watchers[2].until_media(7)
    await watchers[2].socket.close()
    assert await feed.closed() == CLOSE_GONE


async def test_one_viewing_has_one_socket(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    first = await rig.watch(lease_id)
    second = await rig.watch(lease_id)
    assert await first.until_closed() == CLOSE_REPLACED
    feed = await rig.feed()
    feed.begin()
    feed.push(1)
    await second.until_media(2)


async def test_why_there_is_no_picture_is_said_and_pictures_go_on_on_the_same_socket(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    rig.desk.change(lease_id, is_held=False)
    watcher = await rig.watch(lease_id)
    await watcher.until_state("connecting", "no_worker")
    rig.desk.change(lease_id, is_held=True, feed_reason="shed: the line is short")
    await watcher.until_state("waiting", "shed")
    feed = await rig.feed()
    feed.line.send_status(FeedStatus(state="refused", reason="unauthorized", message="401"))
    await watcher.until_state("refused", "unauthorized")
    assert watcher.statuses[-1]["label_ja"]
    feed.begin()
    feed.push(5)
    await watcher.until_state("live")
    # Its worker goes away; another one takes over.
    feed.line.abort()
    await watcher.until_state("moving", "moved")
    rig.desk.change(lease_id, generation=2)
    newer = await rig.feed(generation=2)
    newer.begin()
    newer.push(5)
    await watcher.until_state("live")
    await watcher.until_media(11)
    frames = watcher.frames()
    assert len(frames) == 10
    times = [frame.pts for frame in frames]
    assert times == sorted(set(times))
    assert len(watcher.inits) == 1, "the same video needs no other init segment"


async def test_a_word_that_comes_late_does_not_hide_that_a_worker_went_away(rig: Rig) -> None:
    watcher = await rig.watch(rig.desk.admit())
    feed = await rig.feed()
    feed.begin()
    feed.push(2)
    feed.line.send_status(FeedStatus(state="connecting"))
    await watcher.until_media(3)
    feed.line.close()
    await watcher.until_state("moving", "moved")
    assert [status["state"] for status in watcher.statuses] == ["connecting", "live", "moving"]


async def test_a_feed_of_an_earlier_holder_is_ended(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    feed = await rig.feed(generation=1)
    feed.begin()
    feed.push(1)
    await watcher.until_state("live")
    rig.desk.change(lease_id, generation=2)
    await watcher.until_state("moving")
    assert await feed.closed() == CLOSE_REPLACED
    await until(lambda: rig.desk.viewings[lease_id].feed == "wanted", "the new holder is asked")


async def test_a_prewarmed_stream_is_fed_without_viewers(rig: Rig) -> None:
    lease_id = rig.desk.admit(kind="prewarm")
    feed = await rig.feed()
    feed.begin()
    feed.push(3)
    await until(lambda: rig.desk.viewings[lease_id].feed == "fed", "it is fed")
    watcher = await rig.watch(rig.desk.admit())
    await watcher.until_media(4)


async def test_a_feed_that_nobody_asked_for_is_let_go(rig: Rig) -> None:
    feed = await rig.feed()
    assert await feed.closed() == CLOSE_GONE


async def test_hls_is_made_of_the_same_pictures(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    feed = await rig.feed()
    feed.begin()
    feed.push(3)

    asking = asyncio.ensure_future(rig.hls(lease_id))

    async def is_attached() -> bool:
        return bool((await rig.about())["viewers"])

    await poll_async(is_attached, "somebody asks for segments")
    feed.push(13)
    status, body, kind = await asking
    assert (status, kind) == (200, "application/vnd.apple.mpegurl")
    playlist = body.decode()
    lines = playlist.splitlines()
    init = next(line for line in lines if line.startswith("#EXT-X-MAP")).split('"')[1]
    names = [line for line in lines if line.endswith(".m4s")]
    status, begin, mime = await rig.hls(lease_id, init)
    assert status == 200
    assert mime.startswith('video/mp4; codecs="avc1.')
    parts = [(await rig.hls(lease_id, name))[1] for name in names]
    assert shown(begin + parts[0])[0].key_frame
    assert len(shown(begin + b"".join(parts))) == 5 * len(names)
    assert (await rig.hls(lease_id, "999999.m4s"))[0] == 404
    # Nothing more is asked for: after a while all of it is let go.
    assert await feed.closed() == CLOSE_GONE
    await nothing_left(rig)


async def test_a_snapshot_is_the_newest_keyframe(rig: Rig) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    url = live_links.snapshot_url(KEYS, rig.origin, lease_id)
    async with rig.session.get(url) as answer:
        assert answer.status == 503
    feed = await rig.feed()
    feed.begin()
    feed.push(7)
    await watcher.until_media(8)
    async with rig.session.get(url) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/jpeg")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        jpeg = await answer.read()
    assert Image.open(io.BytesIO(jpeg)).size == (320, 192)


async def test_a_snapshot_is_the_workers_where_it_answers(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "WORKER_SEC", 60.0)
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    url = live_links.snapshot_url(KEYS, rig.origin, lease_id)
    feed = await rig.feed()
    feed.begin()
    feed.push(2)
    await watcher.until_media(3)
    answers = [b"\xff\xd8 from the worker", b"no picture"]
    asked: list[None] = []

    def answer() -> None:
        asked.append(None)
        feed.line.send(PICTURE_ASKED, answers[len(asked) - 1])

    feed.line.on_picture_asked = answer
    async with rig.session.get(url) as given:
        assert (given.status, await given.read()) == (200, answers[0])
    # One that is none is made here.
    async with rig.session.get(url) as given:
        assert Image.open(io.BytesIO(await given.read())).size == (320, 192)
    assert len(asked) == 2
    # Two that ask at once share one; and when the worker goes meanwhile, it is made here.
    feed.line.on_picture_asked = lambda: asked.append(None)
    both = [asyncio.ensure_future(rig.session.get(url)) for _ in range(2)]
    await until(lambda: len(asked) == 3, "the worker is asked")
    feed.line.abort()
    for one in both:
        async with await one as given:
            assert Image.open(io.BytesIO(await given.read())).size == (320, 192)
    assert len(asked) == 3


async def nothing_left(rig: Rig) -> None:
    async def is_left() -> bool:
        about = await rig.about()
        return (about["streams"], about["viewers"], about["feeds"]) == (0, 0, 0)

    await poll_async(is_left, "no stream, viewer or feed is left")
