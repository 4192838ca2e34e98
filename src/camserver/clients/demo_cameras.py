"""The demo's cameras: played by the simulator, and added to the running server through its API like anybody's."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base.errors import Conflict
from camserver.base.log import get_logger

if TYPE_CHECKING:
    # The supervisor asks for the simulator's options long before it has a server to talk to.
    from camserver.clients.local_server import LocalServer

log = get_logger(__name__)

INTERVAL_SEC = 2.0
# Not any free one, because the cameras' addresses are kept in the database.
SIMULATOR_PORT = 8554


@dataclass(frozen=True, slots=True)
class DemoCamera:
    """`shows` is a scene of the simulator; None is the street footage where it is installed."""

    stream: str
    name: str
    shows: str | None
    offline: str = ""  # every how many seconds / for how many
    port: int = SIMULATOR_PORT
    # Names that the analyzer is told to leave alone.
    excluded: tuple[str, ...] = ()

    @property
    def camera_id(self) -> str:
        return f"demo_{self.stream}"

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/{self.stream}"


DEMO_CAMERAS = (
    # The footage is cut from several views: a camera on a mast would be said to have moved.
    DemoCamera("street", "通り / Street", None, excluded=("camera.moved", "camera.occluded")),
    DemoCamera("yard", "中庭 / Quiet yard", "scene:quiet"),
    DemoCamera("night", "夜の駐車場 / Car park at night", "scene:night"),
    DemoCamera("gate", "ときどき切れる門 / Gate, offline now and then", "scene:moving", offline="90/30"),
)


def simulator_options(footage: Path | None, port: int = SIMULATOR_PORT) -> list[str]:
    """What `camserver simulate` is told for the demo; without the footage the street is a made-up scene too."""
    options = ["--port", str(port)]
    for camera in DEMO_CAMERAS:
        shows = camera.shows or (str(footage) if footage is not None else "scene:moving")
        options += ["--camera", f"{camera.stream}={shows}"]
        if camera.offline:
            options += ["--offline", f"{camera.stream}={camera.offline}"]
    return options


async def add_demo_cameras(server: "LocalServer", port: int = SIMULATOR_PORT) -> int:
    """Adds those that are not there yet; how many that were."""
    there = {camera["camera_id"]: camera["source"]["url"] for camera in await server.cameras()}
    added = 0
    for camera in (replace(one, port=port) for one in DEMO_CAMERAS):
        if camera.camera_id in there:
            _tell_if_elsewhere(camera, there[camera.camera_id])
            continue
        try:
            values: dict[str, object] = {"polling_interval_sec": INTERVAL_SEC}
            if camera.excluded:
                values["hints"] = {"excluded_objects": list(camera.excluded)}
            await server.add_camera(camera.camera_id, camera.name, camera.url, None, None, **values)
            added += 1
        except Conflict:
            # Somebody else added it in the meantime; it is there, which is all that is wanted.
            continue
    return added


def _tell_if_elsewhere(camera: DemoCamera, url: str) -> None:
    """Added when the simulator had another port, it would stay offline without a word."""
    if url != camera.url:
        log.warning(
            "a demo camera has another address than the simulator plays it at",
            camera_id=camera.camera_id,
            played_at=camera.url,
            next_step=f"camserver camera remove {camera.camera_id}, then start again",
        )
