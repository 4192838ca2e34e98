"""`make screenshots`: a house with cameras, a day behind it and people at work; pictures of each of its pages.

Options are for working on pages: `--data FOLDER` keeps the house for the next time, `--only wall,events` takes some,
`--long-names` gives cameras and sites names as long as they come (and leaves the docs' pictures alone).
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from tests.e2e.installation import Installation, installation, seen, signed_in
from tests.e2e.ui import furnished, past
from tests.e2e.ui.browser import REPOSITORY, missing, play
from tests.e2e.ui.furnished import HEAD_OFFICE, WAREHOUSE
from tests.fakes.scoring_llm import ScoringLlm
from tests.fakes.webhook.server import Act, FakeWebhook
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher

IMAGES = REPOSITORY / "docs" / "images"
# Every page in both languages at three widths, to be looked at; not kept.
EVERYTHING = REPOSITORY / "build" / "screenshots"
TIMEOUT_SEC = 1800
FOOTAGE = REPOSITORY / ".assets" / "bikes.mp4"
# The cameras' addresses are in the database, so a house that is kept needs the port it had.
PORT = 18554
# So many events of the detector are enough to make a day of them.
EVENTS_MIN = 6
EVENTS_TIMEOUT_SEC = 600
# Camera → its name, its site and what the simulator plays; None is a camera that is not there.
CAMERAS = {
    "crossing": ("横断歩道 / Crossing", HEAD_OFFICE, "crossing"),
    "street": ("大通り / Main street", HEAD_OFFICE, "street"),
    "stand": ("駐輪場 / Bike stand", HEAD_OFFICE, "stand"),
    "taxis": ("タクシー乗り場 / Taxi rank", HEAD_OFFICE, "taxis"),
    "yard": ("中庭 / Yard", HEAD_OFFICE, "scene:moving"),
    "carpark": ("夜の駐車場 / Car park at night", HEAD_OFFICE, "scene:night"),
    "dock": ("搬入口 / Loading dock", WAREHOUSE, "scene:quiet"),
    "gate": ("裏門 / Back gate", HEAD_OFFICE, None),
}


def house_in(folder: Path, launcher: Launcher, llm_url: str) -> Installation:
    return installation(
        launcher,
        folder / "data",
        gate={},
        looks={"polling_interval_sec": 4},
        streamer={"port": free_port()},
        # A machine that takes pictures of pages is busy, and shows live view all the same.
        admission={"cpu_reject_percent": 100, "memory_reject_percent": 100, "swap_reject_mb": 1_000_000},
        deliveries={"allow_loopback": True},
        llm={
            "provider": "openai",
            "model": "a-small-model",
            "base_url": llm_url,
            "price_in": 0.15,
            "price_out": 0.6,
            # What the model stand-in knows is scoring.
            "daily_calls": 0,
        },
    )


def play_cameras(folder: Path, launcher: Launcher) -> None:
    views = furnished.cut_views(FOOTAGE, folder)
    played = []
    for camera_id, (_, _, shows) in CAMERAS.items():
        if shows is None:
            continue
        played.append(f"--camera={camera_id}={views.get(shows, shows)}")
    launcher.camserver("simulate", f"--port={PORT}", *played, settings={"server": {"data_dir": str(folder)}})


async def make_house(house: Installation) -> None:
    """Everything but the browser: cameras, people, then a day before this one."""
    up = await house.ready()
    async with (
        FakeWebhook() as good,
        FakeWebhook(always=Act(status=410)) as bad,
        signed_in(house, house.setup_token) as browser,
    ):
        # A worker that names no site belongs to the only one there is, so it comes before the second.
        await seen(browser, "/api/workers", lambda body: bool(body["workers"]))
        await furnished.add_places(browser)
        for camera_id, (name, site, _) in CAMERAS.items():
            hints = {"preset": "outdoor"}
            source = {"url": f"rtsp://{LOOPBACK}:{PORT}/{camera_id}"}
            camera = {"camera_id": camera_id, "name": name, "site": site, "source": source, "hints": hints}
            await furnished.post(browser, "/api/cameras", camera)
        await furnished.add_people(browser)
        await furnished.add_receivers(browser, good.url, bad.url)
        await seen(browser, "/api/events?limit=40", _has_enough, EVENTS_TIMEOUT_SEC)
        await furnished.score(browser)
    await up.stop()
    await past.make_past(house.data, int(time.time() * 1000))


def _has_enough(body: dict[str, list[dict[str, object]]]) -> bool:
    return len([one for one in body["events"] if one["issue"] is None]) >= EVENTS_MIN


async def take(folder: Path, only: str, long_names: bool) -> None:
    launcher = Launcher(folder)
    made = folder / "made"
    try:
        async with ScoringLlm() as llm:
            house = house_in(folder, launcher, llm.url)
            play_cameras(folder, launcher)
            if not made.exists():
                await make_house(house)
            await house.ready()
            if not made.exists():
                async with signed_in(house) as browser:
                    await furnished.furnish(browser)
                made.touch()
            if long_names and not (folder / "long").exists():
                async with signed_in(house) as browser:
                    await furnished.lengthen(browser)
                (folder / "long").touch()
            address = {
                "CAMSERVER_URL": house.web_url,
                "CAMSERVER_SCREENSHOTS": str(folder / "images" if long_names else IMAGES),
                "CAMSERVER_SCREENSHOTS_ALL": str(EVERYTHING),
                "CAMSERVER_SCREENSHOTS_ONLY": only,
            }
            await play("screenshots.spec.ts", address, TIMEOUT_SEC)
    finally:
        await launcher.close()


def make_small(path: Path) -> None:
    """With a palette a picture of a page is a third of its size, and nobody sees the difference."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(colors=256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="keep the house here, or use the one that is here")
    parser.add_argument("--only", default="", help="names of pages, with commas between them")
    parser.add_argument("--long-names", action="store_true", help="cameras and sites with long names")
    given = parser.parse_args()
    lacking = missing() or (None if FOOTAGE.exists() else f"there is no {FOOTAGE}; fetch it by: make setup")
    if lacking is not None:
        print(f"error: {lacking}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="camserver-screenshots-") as temporary:
        folder = (given.data or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(take(folder, given.only, given.long_names))
    for picture in IMAGES.glob("*.png"):
        make_small(picture)
    print(f"Wrote every page into {EVERYTHING}")
    print(f"Wrote {', '.join(sorted(path.name for path in IMAGES.glob('*.png')))} in {IMAGES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
