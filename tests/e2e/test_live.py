"""Live view through the real processes: somebody who is signed in watches a simulated camera."""

from pathlib import Path

import aiohttp

from camserver.services.simulator.cameras import CameraAsked
from tests.e2e.installation import installation, seen, signed_in
from tests.rig.polling import until
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated
from tests.rig.video_files import video_file
from tests.services.streamer.live_rig import Watcher, shown


async def test_a_signed_in_user_watches_a_camera(launcher: Launcher, tmp_path: Path) -> None:
    film = video_file(tmp_path / "film.mp4", size=(320, 180), fps=10, seconds=4, keyframes_apart=10, bf="0")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": "http://127.0.0.1:9"},
        looks={"polling_interval_sec": 60},
        # The tests beside this one may keep every core busy.
        admission={"cpu_reject_percent": 100, "memory_reject_percent": 100},
    )
    async with simulated(tmp_path / "cache", CameraAsked("street", str(film)), with_login=False) as simulator:
        street = simulator.camera("street")
        up = await house.ready()
        await house.command("camera", "add", "street", simulator.url("street", "main"))
        async with signed_in(house, house.setup_token) as browser:
            await seen(browser, "/api/leases", lambda body: any(one["state"] == "ACTIVE" for one in body["leases"]))
            async with browser.post("/api/modal/lease", json={"camera_id": "street", "quality": "sub"}) as answer:
                lease = await answer.json()
                assert answer.status == 200, lease
            async with aiohttp.ClientSession() as plain:
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
        assert await up.stop() == 0
