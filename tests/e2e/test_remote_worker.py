"""A worker at another site, with real processes: a token, an enrolment, pictures over mTLS, and a revocation."""

from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import Installation, installation, seen, signed_in
from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher


async def test_a_worker_elsewhere_is_enrolled_works_and_is_revoked(launcher: Launcher, tmp_path: Path) -> None:
    port = free_port()
    control: dict[str, object] = {"port": free_port(), "tls_host": LOOPBACK, "tls_port": port}
    house = installation(launcher, tmp_path / "data", control=control)
    server = launcher.camserver("server", settings=house.settings)
    await server.until_ready(f"{house.web_url}/readyz")
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
