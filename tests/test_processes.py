"""`camserver up --demo` and the port its cameras are played at."""

from pathlib import Path

from camserver.base.exits import Exit
from tests.rig.ports import free_port, listening_socket, port_of
from tests.rig.processes import Launcher


async def test_a_demo_whose_port_is_taken_ends_and_says_how_to_choose_another(
    launcher: Launcher, tmp_path: Path
) -> None:
    with listening_socket() as taken:
        port = port_of(taken)
        settings: dict[str, dict[str, object]] = {
            "server": {"data_dir": str(tmp_path / "data")},
            **{name: {"port": free_port()} for name in ("web", "control", "streamer", "analyzer")},
            "demo": {"port": port},
        }
        up = launcher.camserver("up", "--demo", settings=settings)
        assert await up.wait() == Exit.PORT_UNUSABLE
    said = up.output_tail()
    for words in ("simulate can't go on", f"port {port} on 127.0.0.1 is in use", "CAMSERVER_DEMO_PORT"):
        assert words in said
    await launcher.none_left()
