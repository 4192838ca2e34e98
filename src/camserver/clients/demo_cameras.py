"""The demo's cameras: made-up pictures, added to the running server through its API like anybody's."""

from dataclasses import dataclass

from camserver.base.errors import Conflict
from camserver.clients.local_server import LocalServer

INTERVAL_SEC = 5.0


@dataclass(frozen=True, slots=True)
class DemoCamera:
    camera_id: str
    name: str
    url: str


DEMO_CAMERAS = (
    DemoCamera("demo_entrance", "入口 / Entrance", "test://moving?period=20&width=1280&height=720"),
    DemoCamera("demo_yard", "中庭 / Yard", "test://moving?period=7&width=960&height=540"),
    DemoCamera("demo_store", "倉庫 / Store room", "test://still"),
    DemoCamera("demo_gate", "故障中 / Broken camera", "test://broken?fault=no_video"),
)


async def add_demo_cameras(server: LocalServer) -> int:
    """Adds those that are not there yet; how many that were."""
    there = {camera["camera_id"] for camera in await server.cameras()}
    added = 0
    for camera in DEMO_CAMERAS:
        if camera.camera_id in there:
            continue
        try:
            await server.add_camera(
                camera.camera_id, camera.name, camera.url, None, None, polling_interval_sec=INTERVAL_SEC
            )
            added += 1
        except Conflict:
            # Somebody else added it in the meantime; it is there, which is all that is wanted.
            continue
    return added
