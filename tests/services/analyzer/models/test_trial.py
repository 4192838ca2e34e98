"""A model's first picture, in a process that it may take with it."""

import sys
from pathlib import Path

import pytest

from camserver.base.errors import ModelUnusable
from camserver.services.analyzer.models.trial import try_out
from tests.services.analyzer.models.made import BYTES_MAX, Made


async def test_a_model_that_sees_passes_and_one_that_does_not_load_says_why(tmp_path: Path) -> None:
    await try_out(Made().folder(tmp_path / "good"), BYTES_MAX)
    with pytest.raises(ModelUnusable, match=r"ONNX model yard can't be used"):
        await try_out(Made(files={"model.onnx": b"no model"}).folder(tmp_path / "bad"), BYTES_MAX)


async def test_a_process_that_is_killed_is_a_failed_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -9 $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    with pytest.raises(ModelUnusable, match="with -9"):
        await try_out(Made().folder(tmp_path / "good"), BYTES_MAX)
