"""The whole product with its own analyzer: pictures of a real street become an event that the real model found."""

from pathlib import Path
from urllib.parse import urlsplit

from camserver.base import assets
from camserver.base.exits import Exit
from tests.e2e.test_first_look import installation, seen, signed_in
from tests.rig.footage import CYCLIST_FRAME, asset, frame
from tests.rig.processes import Launcher


async def test_somebody_in_the_street_is_seen(launcher: Launcher, tmp_path: Path) -> None:
    asset(assets.MODEL)
    house = installation(launcher, tmp_path / "data")
    up = await house.ready()
    await up.until_logged("analyzer ready")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in (0, CYCLIST_FRAME):
        (pictures / f"{number:03}.jpg").write_bytes(frame(asset(assets.FOOTAGE), number))
    await house.command("camera", "add", "street", f"file://{pictures}")
    token = urlsplit((house.data / "setup-link.txt").read_text().strip()).fragment.removeprefix("token=")
    async with signed_in(house, token) as browser:
        page = await seen(
            browser, "/api/events", lambda body: any(one["primary_event"] == "human" for one in body["events"])
        )
        assert page["events"][-1]["camera_id"] == "street"
    assert await up.stop() == Exit.OK
    await launcher.none_left()
