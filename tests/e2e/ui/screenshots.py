"""`make screenshots`: plays street footage and scenes as cameras, and takes the pictures that the docs show."""

import asyncio
import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.e2e.installation import installation
from tests.e2e.ui.browser import REPOSITORY, missing, play
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import Launcher

IMAGES = REPOSITORY / "docs" / "images"
# Every page in both languages at three widths, to be looked at; not kept.
EVERYTHING = REPOSITORY / "build" / "screenshots"
TIMEOUT_SEC = 1200
FOOTAGE = REPOSITORY / ".assets" / "bikes.mp4"
# Camera → its name and what the simulator plays; None is a camera that is not there.
CAMERAS = {
    "cam_1_street": ("大通り / Main street", str(FOOTAGE)),
    "cam_2_yard": ("中庭 / Yard", "scene:moving"),
    "cam_3_night": ("夜間 / Night watch", "scene:night"),
    "cam_4_gate": ("裏門 / Back gate", None),
}


async def take(folder: Path) -> None:
    launcher = Launcher(folder)
    try:
        port = free_port()
        played = [f"--camera={camera_id}={shows}" for camera_id, (_, shows) in CAMERAS.items() if shows]
        launcher.camserver("simulate", f"--port={port}", *played, settings={"server": {"data_dir": str(folder)}})
        looks: dict[str, object] = {"polling_interval_sec": 3}
        house = installation(launcher, folder / "data", gate={}, looks=looks, analyzer={"port": free_port()})
        await house.ready()
        for camera_id, (name, _) in CAMERAS.items():
            await house.command("camera", "add", camera_id, f"rtsp://{LOOPBACK}:{port}/{camera_id}", "--name", name)
        address = {
            "CAMSERVER_URL": house.web_url,
            "CAMSERVER_SETUP_LINK": house.link_file.read_text().strip(),
            "CAMSERVER_SCREENSHOTS": str(IMAGES),
            "CAMSERVER_SCREENSHOTS_ALL": str(EVERYTHING),
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
    lacking = missing() or (None if FOOTAGE.exists() else f"there is no {FOOTAGE}; fetch it by: make setup")
    if lacking is not None:
        print(f"error: {lacking}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="camserver-screenshots-") as folder:
        asyncio.run(take(Path(folder)))
    for picture in IMAGES.glob("*.png"):
        make_small(picture)
    print(f"Wrote every page into {EVERYTHING}")
    print(f"Wrote {', '.join(sorted(path.name for path in IMAGES.glob('*.png')))} in {IMAGES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
