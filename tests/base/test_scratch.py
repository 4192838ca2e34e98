import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from camserver.base import scratch

HOLDS = "import sys; from pathlib import Path; from camserver.base.scratch import Scratch\n"
HOLDS += "place = Scratch(Path(sys.argv[1])); (place.path / 'half').write_text('x'); print('held', flush=True)\n"
HOLDS += "sys.stdin.read()"


def test_what_a_killed_process_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".of-somebody.part").mkdir()
    with scratch.Scratch(tmp_path / ".mine.part") as mine:
        argv = [sys.executable, "-c", HOLDS, str(tmp_path / ".other.part")]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            assert scratch.left_in(tmp_path, ".*.part") == scratch.sweep(tmp_path, ".*.part") == []
            os.kill(other.pid, signal.SIGKILL)
        left = [tmp_path / ".other.part"]
        assert scratch.left_in(tmp_path, ".*.part") == left
        assert scratch.sweep(tmp_path, ".*.part") == left
        assert mine.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == [".of-somebody.part"]


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with scratch.Scratch(tmp_path / ".one"), pytest.raises(FileExistsError):
        scratch.Scratch(tmp_path / ".one")
