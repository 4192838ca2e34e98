"""From a simulated camera to an event's clip that plays, through the real processes."""

import io
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import av
import numpy as np
from PIL import Image

from camserver.base.exits import Exit
from camserver.services.simulator.cameras import CameraAsked
from tests.e2e.test_first_look import installation, seen, signed_in
from tests.fakes.analyzer.remote import RemoteAnalyzer
from tests.rig.pictures import png, scene_of
from tests.rig.processes import Launcher
from tests.rig.simulated import simulated

SIZE = (320, 240)
FPS = 10
EMPTY, PERSON = 0, 1  # as tests.fakes.analyzer.answers has them


def street(path: Path) -> Path:
    """Four seconds of nobody, then two of somebody, over and over."""
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=FPS, options={"preset": "ultrafast", "bf": "0"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.gop_size = FPS
        for number in range(6 * FPS):
            picture = Image.open(io.BytesIO(png(scene=EMPTY if number < 4 * FPS else PERSON, size=SIZE)))
            frame = av.VideoFrame.from_ndarray(np.asarray(picture.convert("RGB")), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


def scenes_of(mp4: bytes) -> list[int | None]:
    """What every picture of a film shows."""
    found = []
    with av.open(io.BytesIO(mp4), "r") as container:
        for frame in container.decode(video=0):
            shown = io.BytesIO()
            Image.fromarray(frame.to_ndarray(format="gray")).save(shown, "PNG")
            found.append(scene_of(shown.getvalue()))
    return found


async def test_an_event_gets_its_clip_and_it_plays(launcher: Launcher, tmp_path: Path) -> None:
    analyzer = await RemoteAnalyzer.start(launcher, tmp_path / "vocabulary.json")
    house = installation(
        launcher,
        tmp_path / "data",
        analyzer={"url": analyzer.url},
        worker={"allow_loopback": True},
        looks={"polling_interval_sec": 2},
    )
    asked = CameraAsked("street", str(street(tmp_path / "street.mp4")))
    async with simulated(tmp_path / "cache", asked, with_login=False) as simulator:
        up = await house.ready()
        await house.command("camera", "add", "street", simulator.url("street", "main"))
        token = urlsplit((house.data / "setup-link.txt").read_text().strip()).fragment.removeprefix("token=")
        async with signed_in(house, token) as browser:
            page = await seen(browser, "/api/events?primary_event=human", lambda body: bool(body["events"]))
            uuid = page["events"][-1]["event_uuid"]
            event = await seen(
                browser, f"/api/events/{uuid}", lambda body: body["clip"] and body["clip"]["state"] != "asked"
            )
            clip = event["clip"]
            assert (clip["state"], clip["codec"], clip["width"], clip["height"]) == ("ready", "h264", *SIZE), clip
            assert clip["begin_at"] <= event["start_at"] < clip["end_at"]
            async with browser.get(f"/api/events/{uuid}/clip") as answer:
                assert (answer.status, answer.content_type) == (200, "video/mp4")
                mp4 = await answer.read()
            assert len(mp4) == clip["bytes"]
            shown = scenes_of(mp4)
            assert {EMPTY, PERSON} <= set(shown)
            # Every picture that the camera sent, not only keyframes.
            assert len(shown) > 2 * FPS
            async with browser.get(f"/api/events/{uuid}/clip", headers={"Range": "bytes=4-7"}) as answer:
                assert (answer.status, await answer.read()) == (206, b"ftyp")
        assert await up.stop() == Exit.OK
    assert analyzer.process is not None
    await analyzer.process.stop()
    await launcher.none_left()
