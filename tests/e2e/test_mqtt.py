"""camserver with a real MQTT broker: from adding it to the last will of a killed server."""

import json
import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from camserver.base.exits import Exit
from tests.e2e.installation import installation, seen, signed_in, two_pictures
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig import mosquitto as rig
from tests.rig.mosquitto import mosquitto
from tests.rig.mqtt_watch import watch
from tests.rig.ports import LOOPBACK
from tests.rig.processes import Launcher

ROOT = "camserver/house"


@pytest.mark.skipif(rig.PROGRAM is None, reason="mosquitto is not installed")
async def test_cameras_events_and_the_last_will(launcher: Launcher, tmp_path: Path) -> None:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": analyzer.url},
        deliveries={"allow_loopback": True},
        notify={"min_severity": 0},
    )
    up = await house.ready()
    with mosquitto(tmp_path) as broker:
        async with watch(broker.port) as watched, signed_in(house, house.setup_token) as browser:
            asked = {
                "name": "home",
                "kind": "mqtt",
                "config": {"host": LOOPBACK, "port": broker.port, "installation": "house"},
                "language": "en",
            }
            async with browser.post("/api/receivers", json=asked) as answer:
                assert answer.status == 201, await answer.text()
                receiver_uuid = (await answer.json())["receiver_uuid"]
            await watched.until_says(f"{ROOT}/availability", "online")

            async with browser.post(f"/api/receivers/{receiver_uuid}/test") as answer:
                assert answer.status == 202, await answer.text()
                delivery_uuid = (await answer.json())["delivery_uuid"]
            await watched.until(lambda: bool(watched.of(f"{ROOT}/notices")), "the trial")
            assert json.loads(watched.of(f"{ROOT}/notices")[0])["delivery_uuid"] == delivery_uuid
            await seen(browser, f"/api/deliveries/{delivery_uuid}", lambda body: body["status"] == "done")

            entrance = two_pictures(tmp_path / "pictures", (320, 240))
            await house.command("camera", "add", "entrance", entrance)
            await watched.until(lambda: bool(watched.of(f"{ROOT}/entrance/events")), "an event")
            event = json.loads(watched.of(f"{ROOT}/entrance/events")[0])
            assert (event["camera_id"], event["event_type"]) == ("entrance", "human")
            assert event["link"].endswith(f"/events/{event['event_uuid']}")
            await watched.until(
                lambda: json.loads(watched.now[f"{ROOT}/entrance/state"])["health"] == "up", "a camera that is up"
            )
            await watched.until(lambda: f"{ROOT}/entrance/image" in watched.now, "a picture")
            assert watched.now[f"{ROOT}/entrance/image"].startswith(b"\xff\xd8")
            assert "homeassistant/device/camserver_house_entrance/config" in watched.now

            # The broker itself says so; the successor takes over as soon as it may.
            before = len(watched.of(f"{ROOT}/availability"))
            os.kill(server_of(up.pid, urlsplit(house.web_url).port or 0), signal.SIGKILL)
            await watched.until(
                lambda: watched.of(f"{ROOT}/availability")[before:] == [b"offline", b"online"],
                "an end and a successor",
            )
        assert await up.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()


def server_of(supervisor_pid: int, port: int) -> int:
    """The process of `camserver up` that listens on a port."""
    children = psutil.Process(supervisor_pid).children(recursive=True)
    return next(
        child.pid
        for child in children
        for one in child.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr.port == port
    )
