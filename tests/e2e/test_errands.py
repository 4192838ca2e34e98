"""A picture on demand and a change of a camera, through a whole running camserver: web, control and a real worker."""

from typing import Any

import aiohttp

from tests.e2e.test_first_look import Installation, installation
from tests.rig.polling import poll_async
from tests.rig.processes import Launcher

CAMERA = {"camera_id": "cam_1", "name": "Gate", "source": {"url": "test://moving"}, "polling_interval_sec": 3600}


async def ask(house: Installation, method: str, path: str, body: object = None) -> tuple[int, Any]:
    token = (house.data / "secrets" / "local_admin_token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(method, house.web_url + path, json=body) as response,
    ):
        if response.content_type == "image/jpeg":
            return response.status, await response.read()
        return response.status, await response.json()


async def active(house: Installation) -> bool | None:
    _, camera = await ask(house, "GET", "/api/cameras/cam_1")
    return camera["state"] == "ACTIVE" or None


async def looked(house: Installation) -> dict[str, Any]:
    """The answer to a look, as soon as it is over."""
    status, errand = await ask(house, "POST", "/api/cameras/cam_1/look")
    assert status == 202, errand

    async def over() -> dict[str, Any] | None:
        _, found = await ask(house, "GET", f"/api/errands/{errand['errand_uuid']}?wait_sec=20")
        return None if found["state"] in ("waiting", "sent") else found

    found: dict[str, Any] = await poll_async(over, "the errand is over")
    return found


async def test_a_picture_on_demand_and_after_a_change(launcher: Launcher, tmp_path: Any) -> None:
    house = installation(launcher, tmp_path / "data", analyzer={"url": "http://127.0.0.1:1"})
    up = await house.ready()
    assert (await ask(house, "POST", "/api/cameras", CAMERA))[0] == 201
    await poll_async(lambda: active(house), "the camera is looked at")

    first = await looked(house)
    assert (first["state"], first["has_picture"]) == ("done", True), first
    status, picture = await ask(house, "GET", f"/api/errands/{first['errand_uuid']}/picture")
    assert (status, picture[:2]) == (200, b"\xff\xd8")
    size = (first["result"]["width"], first["result"]["height"])
    assert size[0] != size[1]

    status, changed = await ask(house, "PATCH", "/api/cameras/cam_1", {"rotation": 90})
    assert (status, changed["own"]["rotation"]) == (200, 90)

    async def turned() -> bool | None:
        found = await looked(house)
        if found["result"] is None:
            return None  # asked of a camera that was just being started anew
        return (found["result"]["width"], found["result"]["height"]) == size[::-1] or None

    # The worker hears of it within a second or so; a look that was faster still has the old picture.
    await poll_async(turned, "the picture is turned")
    _, camera = await ask(house, "GET", "/api/cameras/cam_1")
    assert camera["state"] == "ACTIVE"
    await up.stop()
