"""docs/quality.md is about the model and the threshold that are the default now, and what it says meets the aims."""

import re
from pathlib import Path

from bench.quality import AIMS, DEFAULT_THRESHOLD, DEFAULT_WAY
from camserver.base import assets
from camserver.domain.detections import DetectionPolicy

PAGE = (Path(__file__).parents[2] / "docs" / "quality.md").read_text()


def test_the_figures_are_those_of_the_default() -> None:
    marked = re.findall(r"^\| \*\*(\S+)\*\* \| \*\*(\S+)\*\* \|(.*)$", PAGE, re.MULTILINE)
    ((way, threshold, rest),) = marked
    assert (way, float(threshold)) == (DEFAULT_WAY, DEFAULT_THRESHOLD) == (way, DetectionPolicy().min_confidence)
    assert Path(assets.MODEL).stem.endswith(f"-{way}")
    said = [float(share) for share in re.findall(r"(\d+) %", rest)]
    wanted = [aim for kind in ("person", "vehicle") for aim in AIMS[kind]]
    assert len(said) == len(wanted)
    assert all(share >= aim for share, aim in zip(said, wanted, strict=True))


def test_the_aims_are_written_down() -> None:
    for aim in {aim for aims in AIMS.values() for aim in aims}:
        assert f"{aim:g} %" in PAGE
