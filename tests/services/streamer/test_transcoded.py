"""What can't be shown as it is: its viewings are moved to a transcode, or told that there is no room for one."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from camserver.base import tls
from camserver.base.clock import StoreClock
from camserver.base.doors import DoorPolicy
from camserver.base.errors import Unavailable
from camserver.base.tls_port import TlsPort
from camserver.domain.certificates import WorkerName
from camserver.domain.live_links import FEED_PATH
from camserver.media import nal_units
from camserver.services.streamer.service import FarPort
from camserver.services.streamer.stream import NUMBER_EVERY_MS
from camserver.services.worker.feed_line import connect
from camserver.services.worker.service import streamer_tls
from camserver.wire.live import FeedStatus, FeedStream, pack_stream
from tests.media.video import refreshed
from tests.rig.clock import START_MS
from tests.rig.identities import new_authority, new_identity
from tests.rig.polling import until
from tests.rig.ports import listening_socket
from tests.services.streamer.live_rig import Rig, streamer


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with streamer() as rig:
        yield rig


async def by_its_browser(rig: Rig, watcher: Any, lease_id: str) -> None:
    feed = await rig.feed()
    feed.begin()
    feed.push(1)
    await watcher.until_media(2)
    # Said of what every browser plays it means nothing.
    await watcher.socket.send_str('{"type":"unplayable"}')
    [first, *_] = refreshed(1)
    sets = nal_units.kind_of_bytes("hevc", first.data).sets
    feed.line.send(pack_stream(FeedStream("hevc", sets, first.stream.time_base)))
    await watcher.until_media(3)
    assert not rig.desk.viewings[lease_id].transcode
    await watcher.socket.send_str('{"type":"unplayable"}')


async def by_its_worker(rig: Rig, watcher: Any, lease_id: str) -> None:
    rig.desk.change(lease_id, feed_reason="masked: the camera has a privacy mask")


async def by_its_feed(rig: Rig, watcher: Any, lease_id: str) -> None:
    feed = await rig.feed()
    feed.line.send_status(FeedStatus(state="refused", reason="codec", message="browsers can't play mjpeg"))


@pytest.mark.parametrize("found_out", [by_its_browser, by_its_worker, by_its_feed])
async def test_a_viewing_goes_on_transcoded(rig: Rig, found_out: Any) -> None:
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    await found_out(rig, watcher, lease_id)
    await until(lambda: rig.desk.viewings[lease_id].transcode, "the store is asked")
    await until(lambda: rig.desk.viewings[lease_id].feed == "wanted", "another feed is wanted")
    feed = await rig.feed(transcode=True)
    feed.begin("transcoded_codec", "hevc")
    feed.push(6)
    while not watcher.inits or not watcher.inits[-1]["note"]:
        assert await watcher.next()
    assert (watcher.inits[-1]["note"], watcher.inits[-1]["source_codec"]) == ("transcoded_codec", "hevc")
    await watcher.until_state("live")


async def test_a_viewer_is_told_what_its_transcode_costs_when_that_changes(rig: Rig) -> None:
    lease_id = rig.desk.admit(units=1)
    watcher = await rig.watch(lease_id)
    feed = await rig.feed()
    feed.begin()
    feed.push(1)
    await watcher.until_media(2)
    assert watcher.costs == [], "as it is, nobody is told a cost"
    rig.desk.change(lease_id, transcode=True, units=4)
    while watcher.costs != [4]:
        assert await watcher.next()
    # Somebody else pays for it now.
    rig.desk.change(lease_id, units=1)
    while watcher.costs != [4, 1]:
        assert await watcher.next()
    # A socket that is opened anew hears it at once.
    again = await rig.watch(lease_id)
    while again.costs != [1]:
        assert await again.next()


async def test_whoever_reads_lists_is_told_when_a_transcode_begins_and_goes_on_with_it(rig: Rig) -> None:
    lease_id = rig.desk.admit(units=1)
    reads = asyncio.create_task(rig.hls(lease_id))
    feed = await rig.feed()
    feed.begin()
    status, before, _ = await feed.push_until(reads, "a list")
    assert status == 200
    assert b"#CAMSERVER" not in before
    await until(lambda: rig.desk.viewings[lease_id].feed == "fed", "the store knows of its feed")
    rig.desk.change(lease_id, transcode=True, units=4)
    await until(lambda: rig.desk.viewings[lease_id].feed != "fed", "this feed is not the one it needs")
    begun_boot_ms = rig.clock.boot_ms()
    await until(lambda: rig.clock.boot_ms() > begun_boot_ms + 10 * NUMBER_EVERY_MS, "as many numbers as were given")
    again = asyncio.create_task(rig.hls(lease_id))
    await until(lambda: rig.desk.viewings[lease_id].feed == "wanted", "another feed is wanted")
    feed = await rig.feed(transcode=True)
    feed.begin("transcoded_codec", "hevc")
    status, after, _ = await feed.push_until(again, "a list of the transcode")
    assert status == 200
    assert {b"#CAMSERVER-NOTE:transcoded_codec,hevc", b"#CAMSERVER-UNITS:4"} <= set(after.splitlines())
    assert _numbers(after)[0] > _numbers(before)[-1], "players pass over what they take for older"
    assert re.findall(rb"init-\d+", after) != re.findall(rb"init-\d+", before)


def _numbers(playlist: bytes) -> list[int]:
    return [int(one) for one in re.findall(rb"^(\d+)\.m4s$", playlist, re.MULTILINE)]


async def test_without_room_it_is_told_and_asked_for_again(rig: Rig) -> None:
    rig.desk.has_room = False
    lease_id = rig.desk.admit()
    watcher = await rig.watch(lease_id)
    rig.desk.change(lease_id, feed_reason="codec: the camera sends no video, only single pictures")
    await watcher.until_state("refused", "no_room_to_transcode")
    assert watcher.statuses[-1]["label_ja"]
    rig.desk.has_room = True
    await until(lambda: rig.desk.viewings[lease_id].transcode, "there is room now")


async def test_workers_elsewhere_come_in_with_their_own_certificate() -> None:
    authority = new_authority()
    port = TlsPort(authority, ("streams.example.com",), "streamer.tls_names", StoreClock())
    with listening_socket() as sock:
        url = f"wss://localhost:{sock.getsockname()[1]}{FEED_PATH}"
        async with streamer(FarPort(sock, port, DoorPolicy(30, 100, 100))) as rig:
            now_ms = rig.clock.now_ms()
            name = WorkerName("tenant", "site", "worker-1")
            own = new_identity(name, authority, now_ms - 1000)
            context = tls.client_context(own.ca_pem, own.chain_pem)
            # As a worker does, which trusts other authorities as well.
            line = await connect(url, rig.ticket(), streamer_tls(own))
            assert not line.closed.is_set()
            line.close()
            another = new_identity(WorkerName("tenant", "site", "worker-2"), authority, now_ms - 1000)
            over = new_identity(name, authority, START_MS, days=1)
            for refused in (
                tls.client_context(own.ca_pem, another.chain_pem),  # the ticket is for another
                tls.client_context(own.ca_pem, over.chain_pem),
                tls.client_context(own.ca_pem),
            ):
                with pytest.raises(Unavailable, match=r"answered 40[13]"):
                    await connect(url, rig.ticket(), refused)
            # Whoever is not of this CA gets no answer at all, and viewers do not come in here.
            stranger = new_identity(name, None, now_ms - 1000)
            with pytest.raises(Unavailable):
                await connect(url, rig.ticket(), tls.client_context(own.ca_pem, stranger.chain_pem))
            with pytest.raises(Unavailable, match="answered 404"):
                await connect(url.replace(FEED_PATH, "/stream/cam"), rig.ticket(), context)
            await asyncio.sleep(0)
