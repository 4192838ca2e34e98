"""Live view through the real processes: one who is signed in, forty programs at once, and many who come and go."""

import asyncio
import random
from pathlib import Path

import aiohttp

from camserver.services.simulator.cameras import CameraAsked, SimulatedCamera
from tests.e2e.audience import Audience, nobody
from tests.e2e.installation import installation, seen, signed_in
from tests.rig.polling import until
from tests.rig.ports import free_port
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file
from tests.services.streamer.live_rig import Watcher, shown

AUDIENCE = 40
# A camera of one stream is watched in that, which is its main one.
UNITS_EACH = 2
COMING_AND_GOING, TIMES_EACH = 10, 3
ADMISSION: dict[str, object] = {
    "total_stream_units": AUDIENCE * UNITS_EACH,
    "reserved_baseline_units": 0,
    "max_ui_users": 0,
    # The tests beside this one may keep every core busy.
    "cpu_reject_percent": 100,
    "memory_reject_percent": 100,
    "swap_reject_mb": 1_000_000,
    "heartbeat_grace_sec": 300,
}


async def test_cameras_are_watched_by_one_and_by_many(launcher: Launcher, tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=5, bf="0")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": "http://127.0.0.1:9"},
        looks={"polling_interval_sec": 60},
        streamer={"port": free_port()},
        admission=ADMISSION,
    )
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        up = await house.ready()
        await house.command("camera", "add", "street", simulator.url("street", "main"))
        async with signed_in(house, house.setup_token) as browser, nobody() as plain:
            await seen(browser, "/api/leases", lambda body: any(one["state"] == "ACTIVE" for one in body["leases"]))
            await one_watches(browser, plain, simulator.camera("street"))
            audience = Audience(house, up, simulator, ("street",), browser, plain)
            await forty_watch_while_the_worker_dies(audience)
            await many_come_and_go(audience)
        assert await up.stop() == 0


async def one_watches(browser: aiohttp.ClientSession, plain: aiohttp.ClientSession, street: SimulatedCamera) -> None:
    async with browser.post("/api/modal/lease", json={"camera_id": "street", "quality": "sub"}) as answer:
        lease = await answer.json()
        assert answer.status == 200, lease
    watcher = Watcher(await plain.ws_connect(lease["stream_url"], max_msg_size=0))
    await watcher.until_state("live")
    await watcher.until_media(12)
    assert len(watcher.frames()) >= 11
    async with plain.get(lease["snapshot_url"]) as answer:
        assert (answer.status, answer.content_type) == (200, "image/jpeg")
    async with plain.get(lease["hls_url"]) as answer:
        assert answer.status == 200
        playlist = await answer.text()
    base = lease["hls_url"].removesuffix("index.m3u8")
    names = [line for line in playlist.splitlines() if line.endswith(".m4s")]
    init = playlist.split('#EXT-X-MAP:URI="')[1].split('"')[0]
    film_parts = []
    for name in (init, names[-1]):
        async with plain.get(base + name) as answer:
            assert answer.status == 200
            film_parts.append(await answer.read())
    assert shown(b"".join(film_parts))[0].key_frame
    async with browser.delete(f"/api/modal/lease/{lease['lease_id']}") as answer:
        assert answer.status == 200
    assert await watcher.until_closed() == 4404
    await until(lambda: not street.clients, "the camera is let go")
    async with plain.get(lease["hls_url"]) as answer:
        assert answer.status == 404


async def forty_watch_while_the_worker_dies(audience: Audience) -> None:
    """As many as there is room for, over one connection to the camera; each watches on with the socket it has."""
    *viewers, late = await audience.grow(AUDIENCE + 1)
    watchers = await asyncio.gather(*(viewer.watch("street") for viewer in viewers))
    status, refused = await late.ask("street")
    assert (status, refused["error_code"]) == (503, "OVER_CAPACITY")
    await asyncio.gather(*(watcher.until_media(8) for watcher in watchers))
    for watcher in (watchers[0], watchers[-1]):
        frames = watcher.frames()
        assert frames[0].key_frame
        assert len(frames) >= 7
    street = audience.simulator.camera("street")
    assert len(street.clients) == 1

    async def goes_on(watcher: Watcher) -> None:
        await watcher.until_state("moving")
        await watcher.until_state("live")
        await watcher.until_media(len(watcher.media) + 5)

    audience.house.kill("worker")
    await asyncio.gather(*(goes_on(watcher) for watcher in watchers))
    assert len(street.clients) == 1
    for number, (viewer, watcher) in enumerate(zip(viewers, watchers, strict=True)):
        if number % 2:
            await watcher.socket.close()
        await viewer.release()
    await asyncio.gather(*(watcher.until_closed() for watcher in watchers))
    await audience.nothing_left()


async def many_come_and_go(audience: Audience) -> None:
    """Hundreds of times in `make soak`."""
    audience.viewers = audience.viewers[:COMING_AND_GOING]
    chance = random.Random(1)
    # Whatever is loaded or opened once is there afterwards.
    await audience.come_and_go(1, chance)
    before = await audience.nothing_left()
    await audience.come_and_go(TIMES_EACH, chance)
    after = await audience.nothing_left()
    # Somewhat more is no leak; one of them for each view would be.
    assert not after.grown(before, most=COMING_AND_GOING * TIMES_EACH - 1), f"{before} → {after}"
