"""A browser is switched on at a real server, and is told."""

import time
from pathlib import Path

from camserver.base.exits import Exit
from tests.e2e.installation import installation, seen, signed_in
from tests.fakes.push import PushService
from tests.rig.polling import until
from tests.rig.processes import Launcher


async def test_a_browser_is_told(launcher: Launcher, tmp_path: Path) -> None:
    house = installation(launcher, tmp_path / "data", deliveries={"allow_loopback": True})
    up = await house.ready()
    async with PushService(int(time.time())) as service, signed_in(house, house.setup_token) as browser:
        async with browser.get("/api/push/key") as answer:
            key = (await answer.json())["public_key"]
        endpoint, device = service.subscribe(key)
        asked = {"endpoint": endpoint, "keys": {"p256dh": device.p256dh, "auth": device.auth}}
        async with browser.post("/api/push/subscriptions", json=asked) as answer:
            assert answer.status == 201, await answer.text()
        listed = await seen(browser, "/api/receivers", lambda body: bool(body["receivers"]))
        [receiver] = listed["receivers"]
        assert receiver["kind"] == "push"
        async with browser.post(f"/api/receivers/{receiver['receiver_uuid']}/test") as answer:
            assert answer.status == 202, await answer.text()
            delivery_uuid = (await answer.json())["delivery_uuid"]
        await until(lambda: bool(service.texts(endpoint)), "the trial in the browser")
        [text] = service.texts(endpoint)
        assert (text["id"], text["url"]) == (delivery_uuid, "/")
        delivery = await seen(browser, f"/api/deliveries/{delivery_uuid}", lambda body: body["status"] == "done")
        assert len(delivery["result"]["sent"]) == 1
        assert service.refused == []
    assert await up.stop() == Exit.OK
    await launcher.none_left()
