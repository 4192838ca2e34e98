from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from camserver.base.errors import BadInput
from camserver.domain.gate import GateMemory as Memory
from camserver.domain.gate import GatePolicy, Verdict, judge
from camserver.media.change import Reference, measure
from camserver.media.clips import is_servable, read_clip
from camserver.media.scenes import SCENES, draw_scene, encode_scene
from camserver.media.video_picture import VideoPicture


def test_a_scene_is_made_once(tmp_path: Path) -> None:
    made = encode_scene("quiet", 320, tmp_path)
    assert is_servable(made)
    assert read_clip(made).size == (320, 180)
    before = made.stat()
    assert encode_scene("quiet", 320, tmp_path) == made
    assert made.stat().st_mtime_ns == before.st_mtime_ns


def test_unknown_scene(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="quiet, night, moving"):
        encode_scene("flood", 320, tmp_path)


def test_night_is_dark() -> None:
    day, night = (float(VideoPicture(next(draw_scene(SCENES[name]))).gray(320).mean()) for name in ("quiet", "night"))
    assert night < 60 < 120 < day


def looks(name: str, count: int) -> list[NDArray[np.uint8]]:
    """A look a second."""
    pictures = [VideoPicture(frame).gray(320) for frame in list(draw_scene(SCENES[name]))[::10]]
    return [pictures[number % len(pictures)] for number in range(count)]


@pytest.mark.parametrize(
    ("usual", "name", "passes"),
    [("quiet", "quiet", False), ("night", "night", False), ("quiet", "moving", True)],
)
def test_only_the_moving_scene_passes_the_gate(usual: str, name: str, passes: bool) -> None:
    """What is usual is learned first: of the same place, with nobody in it."""
    policy = GatePolicy(learn_looks=20)
    reference, memory, verdicts = Reference(), Memory(), []
    for number, picture in enumerate(looks(usual, 40) + looks(name, 12)):
        measured, reference = measure(picture, reference, 20, True)
        verdict, memory, _ = judge(measured, number, memory, policy)
        verdicts.append(verdict)
    assert (Verdict.ANALYZE in verdicts[40:]) == passes
