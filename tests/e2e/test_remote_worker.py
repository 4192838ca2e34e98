"""A worker at another site, with real processes: enrolment, pictures and live video over mTLS, and a revocation."""

from pathlib import Path

import aiohttp

from camserver.base.exits import Exit
from tests.e2e.installation import Installation, installation, seen, signed_in
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher
from tests.services.streamer.live_rig import Watcher


async def test_a_worker_elsewhere_is_enrolled_works_and_is_revoked(launcher: Launcher, tmp_path: Path) -> None:
    port = free_port()
    control: dict[str, object] = {"port": free_port(), "tls_host": LOOPBACK, "tls_port": port}
    streamer_port = free_port()
    streamer: dict[str, object] = {"tls_host": LOOPBACK, "tls_port": free_port(), "tls_names": ["localhost"]}
    # The tests beside this one may keep every core busy.
    admission: dict[str, object] = {"cpu_reject_percent": 100, "memory_reject_percent": 100}
    house = installation(
        launcher,
        tmp_path / "data",
        control=control,
        streamer={"port": streamer_port, **streamer},
        admission={**admission, "swap_reject_mb": 1_000_000},
    )
    server = launcher.camserver("server", settings=house.settings)
    await server.until_ready(f"{house.web_url}/readyz")
    streaming = launcher.camserver("streamer", settings=house.settings)
    await streaming.until_ready(f"http://{LOOPBACK}:{streamer_port}/readyz")
    token = (await house.command("worker", "token", "--name", "shop-1")).strip()
    await house.command("camera", "add", "moving", "test://moving")

    url = f"https://localhost:{port}"
    shop = _elsewhere(launcher, tmp_path / "shop", url)
    said = await shop.command("worker", "enroll", url, "--name", "shop-1", "--token-stdin", stdin=token)
    assert "shop-1" in said
    identity = shop.data / "identity" / "worker.pem"
    assert identity.stat().st_mode & 0o777 == 0o600
    worker = launcher.camserver("worker", "run", settings=shop.settings)
    async with signed_in(house, house.setup_token) as browser:
        await seen(browser, "/api/cameras/moving/latest", lambda body: body["has_picture"])
        listed = await seen(browser, "/api/workers", lambda body: bool(body["workers"]))
        assert [(one["worker_id"], one["is_connected"]) for one in listed["workers"]] == [("shop-1", True)]

        # Its camera is watched live: single pictures, which it makes a film of, over its own secured line.
        async with browser.post("/api/modal/lease", json={"camera_id": "moving"}) as answer:
            lease = await answer.json()
            assert answer.status == 200, lease
        async with aiohttp.ClientSession() as plain:
            watcher = Watcher(await plain.ws_connect(lease["stream_url"], max_msg_size=0))
            await watcher.until_state("live")
            await watcher.until_media(4)
            assert watcher.inits[-1]["note"] == "transcoded_codec"
            assert watcher.frames()
            await watcher.socket.close()

        other = _elsewhere(launcher, tmp_path / "other", url)
        again = launcher.camserver(
            "worker", "enroll", url, "--name", "shop-1", "--token-stdin", settings=other.settings, stdin=token
        )
        assert await again.wait() != Exit.OK
        assert "used already" in again.stderr_path.read_text()
        assert not (other.data / "identity").exists()

        await house.command("worker", "revoke", "shop-1")
        await until(lambda: "certificate_revoked" in worker.stderr_path.read_text(), "the worker hears of it")
        listed = await seen(browser, "/api/workers", lambda body: not body["workers"][0]["is_connected"])
    assert await worker.stop() == Exit.OK
    assert await streaming.stop() == Exit.OK
    assert await server.stop() == Exit.OK
    secret = token.split(".")[1]
    key = identity.read_text().split("-----")[2].strip().splitlines()[1]
    for process in (server, worker):
        output = process.stdout_path.read_text() + process.stderr_path.read_text()
        assert secret not in output
        assert key not in output
    await launcher.none_left()


def _elsewhere(launcher: Launcher, data: Path, url: str) -> Installation:
    """All that a worker's own configuration needs."""
    settings: dict[str, dict[str, object]] = {
        "server": {"data_dir": str(data)},
        "worker": {"server_url": url},
        "log": {"format": "json"},
    }
    return Installation(launcher, data, settings)
