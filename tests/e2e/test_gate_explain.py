"""Why a look passed, asked by the real command of a running camserver."""

import io
import json
from pathlib import Path

from PIL import Image

from tests.e2e.test_errands import CAMERA, active, ask, looked
from tests.e2e.test_first_look import installation
from tests.rig.polling import poll_async
from tests.rig.processes import Launcher


async def test_numbers_and_a_picture_of_the_last_looks(launcher: Launcher, tmp_path: Path) -> None:
    house = installation(launcher, tmp_path / "data", analyzer={"url": "http://127.0.0.1:1"}, gate={})
    up = await house.ready()
    assert (await ask(house, "POST", "/api/cameras", CAMERA))[0] == 201
    await poll_async(lambda: active(house), "the camera is looked at")
    await looked(house)

    picture = tmp_path / "gate.jpg"
    said = json.loads(await house.command("gate", "explain", "cam_1", "--picture", str(picture), "--json"))
    looks = said["result"]["looks"]
    assert len(looks) >= 2
    assert looks[0]["captured_at"] > looks[1]["captured_at"]
    assert looks[0]["reason"] == "learning"
    assert Image.open(io.BytesIO(picture.read_bytes())).size[0] >= 960
    await up.stop()
