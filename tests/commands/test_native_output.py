"""Notes of native libraries are kept from whoever runs a command, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from camserver.base import assets
from camserver.commands.native_output import NOTES, STDERR, without_notes
from tests.rig.footage import asset, cyclist


def test_only_notes_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    with without_notes():
        os.write(STDERR, NOTES[0] + b"\nERROR: the model is damaged\n")
    os.write(STDERR, b"afterwards\n")
    assert capfd.readouterr().err == "ERROR: the model is damaged\nafterwards\n"


def test_what_was_written_before_a_failure_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    @without_notes()
    def fail() -> None:
        os.write(STDERR, b"half a line")
        raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        fail()
    assert capfd.readouterr().err == "half a line"


@pytest.mark.parametrize("arguments", [("analyze", "street.jpg", "--no-pictures"), ("models", "check", "default")])
def test_a_command_that_loads_the_model_says_nothing_of_delegates(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    asset(assets.MODEL)
    (tmp_path / "street.jpg").write_bytes(cyclist())
    command = [sys.executable, "-m", "camserver", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
