"""Clips: how they stand, for players that ask for parts, for whoever has a signed link."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import Unavailable
from camserver.media.mp4_clip import film
from camserver.services.web.films import CHUNK_BYTES
from camserver.services.web.playable import UNDER_WAY_MAX, PlayableFilms
from camserver.services.web.ranges import NoSuchPart, Part, asked_part
from camserver.store.clips import ClipPlace
from tests.media.test_mp4_clip import played, recorded
from tests.services.web.rig import Browser, Reply, RunningWeb
from tests.store.people_rows import FrameRow, add_event, add_frame, audit_rows, execute

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}}
# Longer than one chunk, and no two chunks the same.
CLIP = b"".join(number.to_bytes(4, "big") for number in range(CHUNK_BYTES // 2))
KEY = "e7/t1/errands/d1/x.ab.mp4"
_INSERT = """
INSERT INTO clips (clip_uuid, tenant_id, camera_key, event_id, state, reason, object_key, object_bytes, epoch_id,
  begin_at, end_at, codec, width, height, created_at)
VALUES ('clip-1', :tenant_id, 1, :event_id, :state, :reason, :object_key, :object_bytes, 7, 1000, 16000, 'h264', 1280,
  720, 0)"""


async def owner_with_clip(web: RunningWeb, state: str = "ready", reason: str = "") -> Browser:
    """Somebody signed in, and the event e1 with its frame f1 and a clip."""
    owner = await web.owner()
    await owner.post("/api/cameras", CAMERA)
    tenant_id = (await web.store.read(audit_rows))[0][0]
    now_ms = web.clock.now_ms()
    event_id = await web.store.write(add_event, tenant_id, "cam_1", "e1", now_ms)
    await web.store.write(add_frame, FrameRow(tenant_id, "cam_1", now_ms, "f1", event_id=event_id))
    row = {
        "tenant_id": tenant_id,
        "event_id": event_id,
        "state": state,
        "reason": reason,
        "object_key": KEY if state == "ready" else None,
        "object_bytes": len(CLIP) if state == "ready" else 0,
    }
    await web.store.write(execute, _INSERT, row)
    await web.objects.put(KEY, CLIP)
    return owner


async def part(who: Browser, asked: str, path: str = "/api/events/e1/clip", **headers: str) -> Reply:
    return await who.get(path, {"Range": asked, **headers})


async def test_a_clip_is_played_whole_or_in_parts(web_on_each: RunningWeb) -> None:
    owner = await owner_with_clip(web_on_each)
    whole = await owner.get("/api/events/e1/clip")
    assert (whole.status, whole.content) == (200, CLIP)
    assert (whole.headers["Content-Type"], whole.headers["Accept-Ranges"]) == ("video/mp4", "bytes")
    assert whole.headers["Content-Length"] == str(len(CLIP))
    assert whole.headers["Cache-Control"] == "private, max-age=300"
    first = await part(owner, "bytes=0-1")
    assert (first.status, first.content) == (206, CLIP[:2])
    assert first.headers["Content-Range"] == f"bytes 0-1/{len(CLIP)}"
    rest = await part(owner, f"bytes={CHUNK_BYTES - 3}-")
    assert (rest.status, rest.content) == (206, CLIP[CHUNK_BYTES - 3 :])
    last = await part(owner, "bytes=-5")
    assert (last.status, last.content) == (206, CLIP[-5:])


async def test_a_part_that_is_not_there_is_refused_with_the_size(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    refused = await part(owner, f"bytes={len(CLIP)}-")
    assert (refused.status, refused.body["error_code"]) == (416, "no_such_part")
    assert refused.headers["Content-Range"] == f"bytes */{len(CLIP)}"


async def test_what_a_browser_has_is_not_sent_again(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    etag = (await owner.get("/api/events/e1/clip")).headers["ETag"]
    unchanged = await owner.get("/api/events/e1/clip", {"If-None-Match": f'"x", W/{etag}'})
    assert (unchanged.status, unchanged.content) == (304, b"")
    assert (await part(owner, "bytes=0-1", **{"If-Range": etag})).status == 206
    # A part of something else would not fit to what the browser has.
    assert (await part(owner, "bytes=0-1", **{"If-Range": '"other"'})).status == 200


async def test_an_event_says_how_its_clip_stands(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    clip = (await owner.get("/api/events/e1")).body["clip"]
    assert clip == {
        "state": "ready",
        "reason": None,
        "begin_at": 1000,
        "end_at": 16000,
        "bytes": len(CLIP),
        "codec": "h264",
        "width": 1280,
        "height": 720,
    }
    await web.store.write(execute, "DELETE FROM clips", {})
    assert (await owner.get("/api/events/e1")).body["clip"] is None
    missing = await owner.get("/api/events/e1/clip")
    assert (missing.status, missing.body["details"]["reason"]) == (404, "no_clip")


async def test_why_there_is_none_is_said_in_both_languages(web: RunningWeb) -> None:
    owner = await owner_with_clip(web, "none", "not_connected")
    clip: dict[str, Any] = (await owner.get("/api/events/e1")).body["clip"]
    assert (clip["state"], clip["reason"]["id"]) == ("none", "not_connected")
    assert "not kept connected" in clip["reason"]["label_en"]
    assert "接続" in clip["reason"]["label_ja"]
    assert (await owner.get("/api/events/e1/clip")).status == 404


async def test_an_object_that_is_gone_is_not_found(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    await web.objects.delete(KEY)
    assert (await owner.get("/api/events/e1/clip")).status == 404


# For browsers that do not play it as it is


async def owner_with_h265(web: RunningWeb) -> tuple[Browser, bytes]:
    owner = await owner_with_clip(web)
    sent = film(recorded("libx265", **{"x265-params": "log-level=none:pools=none"})).mp4
    await web.objects.put(KEY, sent)
    await web.store.write(execute, "UPDATE clips SET codec = 'hevc', object_bytes = :n", {"n": len(sent)})
    return owner, sent


async def test_a_clip_is_converted_for_a_browser_that_does_not_play_it(web: RunningWeb) -> None:
    owner, sent = await owner_with_h265(web)
    address = "/api/events/e1/clip?playable=true"
    [made, again] = await asyncio.gather(owner.get(address), owner.get(address))
    assert (made.status, made.headers["Content-Type"]) == (200, "video/mp4")
    assert made.content == again.content, "what is asked for twice is made once"
    assert played(made.content)[0][0] == "h264"
    assert (await owner.get("/api/events/e1/clip")).content == sent
    first = await part(owner, "bytes=2-5", address)
    assert (first.status, first.content) == (206, made.content[2:6])
    assert first.headers["Content-Range"] == f"bytes 2-5/{len(made.content)}"
    assert (await part(owner, f"bytes={len(made.content)}-", address)).status == 416
    etag = made.headers["ETag"]
    assert (await owner.get(address, {"If-None-Match": etag})).status == 304
    assert etag != (await owner.get("/api/events/e1/clip")).headers["ETag"]


async def test_what_every_browser_plays_is_given_as_it_is(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    sent = film(recorded()).mp4
    await web.objects.put(KEY, sent)
    await web.store.write(execute, "UPDATE clips SET object_bytes = :n", {"n": len(sent)})
    assert (await owner.get("/api/events/e1/clip?playable=true")).content == sent


async def test_what_can_not_be_converted_is_said(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)  # its bytes are no film
    assert (await owner.get("/api/events/e1/clip?playable=true")).status == 400
    await web.objects.delete(KEY)
    assert (await owner.get("/api/events/e1/clip?playable=true")).status == 404


class HeldObjects:
    """Objects that are not given out before somebody says so."""

    def __init__(self) -> None:
        self.given = asyncio.Event()

    async def get(self, key: str) -> bytes:
        await self.given.wait()
        return film(recorded()).mp4


async def test_few_are_converted_at_a_time() -> None:
    objects = HeldObjects()
    films = PlayableFilms(objects)  # type: ignore[arg-type]  # no more of them is used
    places = [ClipPlace(f"clip-{number}", KEY, 1) for number in range(UNDER_WAY_MAX + 1)]
    under_way = [asyncio.create_task(films.made(place)) for place in places[:-1]]
    twice = asyncio.create_task(films.made(places[0]))
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="too many clips"):
        await films.made(places[-1])
    twice.cancel()
    objects.given.set()
    assert await asyncio.gather(*under_way) == [None] * UNDER_WAY_MAX, "whoever goes away ends it for nobody else"
    assert await films.made(places[-1]) is None
    films.close()


async def test_only_who_is_signed_in_sees_it(web: RunningWeb) -> None:
    await owner_with_clip(web)
    assert (await web.browser().get("/api/events/e1/clip")).status == 401


async def link(owner: Browser, **asked: object) -> str:
    reply = await owner.post("/api/media/link", {"frame_uuid": "f1", "kind": "clip", **asked})
    assert reply.status == 200, reply.content
    parts = urlsplit(reply.body["url"])
    return f"{parts.path}?{parts.query}"


async def test_a_link_opens_the_clip_and_its_parts(web: RunningWeb) -> None:
    owner = await owner_with_clip(web)
    place = await link(owner)
    stranger = web.browser()
    whole = await stranger.get(place)
    assert (whole.status, whole.content, whole.headers["Content-Type"]) == (200, CLIP, "video/mp4")
    assert whole.headers["Cache-Control"] == "private, max-age=60"
    some = await part(stranger, "bytes=10-19", place)
    assert (some.status, some.content) == (206, CLIP[10:20])
    assert (await stranger.get(place.replace("sig=", "sig=x"))).status == 403
    web.clock.jump_wall(900_000)
    assert (await stranger.get(place)).status == 403


@pytest.mark.parametrize("of_case", ["events", "frames"])
async def test_a_case_has_no_links_to_clips(web: RunningWeb, of_case: str) -> None:
    owner = await owner_with_clip(web)
    place = await link(owner)
    await web.store.write(execute, f"UPDATE {of_case} SET retention_class = 'case'", {})
    assert (await web.browser().get(place)).status == 403
    refused = await owner.post("/api/media/link", {"frame_uuid": "f1", "kind": "clip"})
    assert (refused.status, refused.body["details"]["reason"]) == (403, "case_link")
    # Who may investigate sees it as ever.
    assert (await owner.get("/api/events/e1/clip")).status == 200


async def test_no_link_to_a_clip_that_is_not_there(web: RunningWeb) -> None:
    owner = await owner_with_clip(web, "asked")
    assert (await owner.post("/api/media/link", {"frame_uuid": "f1", "kind": "clip"})).status == 404


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=5-4", None),
        ("bytes=0-1,4-5", None),
        ("items=0-1", None),
        ("bytes=a-b", None),
        ("bytes=-0x1", None),
        (" BYTES=0-0 ", Part(0, 1)),
        ("bytes=0-", Part(0, 10)),
        ("bytes=3-99999999999999999", Part(3, 7)),
        ("bytes=-99", Part(0, 10)),
    ],
)
def test_what_a_range_asks_for(header: str, wanted: Part | None) -> None:
    assert asked_part(header, 10) == wanted


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-12", "bytes=-0"])
def test_a_range_behind_the_end(header: str) -> None:
    with pytest.raises(NoSuchPart):
        asked_part(header, 10)


@given(begin=st.integers(0, 300), last=st.integers(0, 300), size=st.integers(1, 200))
def test_a_part_is_what_a_slice_is(begin: int, last: int, size: int) -> None:
    whole = bytes(size)
    if begin > last:
        assert asked_part(f"bytes={begin}-{last}", size) is None
    elif begin >= size:
        with pytest.raises(NoSuchPart):
            asked_part(f"bytes={begin}-{last}", size)
    else:
        found = asked_part(f"bytes={begin}-{last}", size)
        assert found is not None
        assert (found.begin, found.length) == (begin, len(whole[begin : last + 1]))
