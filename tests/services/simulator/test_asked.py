from pathlib import Path

import pytest

from camserver.base.errors import BadInput
from camserver.services.simulator.asked import parse_cameras
from camserver.services.simulator.cameras import CameraAsked


def test_without_any_there_is_one_for_every_scene() -> None:
    assert [(one.name, one.shows) for one in parse_cameras([], [])] == [
        ("quiet", "scene:quiet"),
        ("night", "scene:night"),
        ("moving", "scene:moving"),
    ]


def test_files_scenes_and_times_away(tmp_path: Path) -> None:
    video = tmp_path / "a=b.mp4"
    video.touch()
    assert parse_cameras([f"street={video}", "yard=scene:night"], ["yard=120/30"]) == (
        CameraAsked("street", str(video)),
        CameraAsked("yard", "scene:night", 120, 30),
    )


@pytest.mark.parametrize(
    ("cameras", "offline"),
    [
        (["yard"], []),
        (["=scene:quiet"], []),
        (["yard="], []),
        (["yard=scene:flood"], []),
        (["yard=/no/such/file.mp4"], []),
        (["ya rd=scene:quiet"], []),
        (["../yard=scene:quiet"], []),
        (["yard=scene:quiet", "yard=scene:night"], []),
        (["yard=scene:quiet"], ["gate=1/2"]),
        (["yard=scene:quiet"], ["yard=1"]),
        (["yard=scene:quiet"], ["yard=a/b"]),
        (["yard=scene:quiet"], ["yard=0/5"]),
        (["yard=scene:quiet"], ["yard=5/0"]),
    ],
)
def test_what_makes_no_sense_is_refused(cameras: list[str], offline: list[str]) -> None:
    with pytest.raises(BadInput):
        parse_cameras(cameras, offline)
