"""A program of a bench in a process of its own, told and answering by lines."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.rig.processes import REPOSITORY

END_SEC = 20


class Child:
    """A program that is told by lines, first what is asked of it, and answers by lines."""

    def __init__(self, name: str, asked: dict[str, Any], argv: Sequence[str] = (), folder: Path = REPOSITORY) -> None:
        """One of this bench by its module's name, unless `argv` says otherwise."""
        self._name = name
        self._process = subprocess.Popen(
            argv or [sys.executable, "-m", f"bench.{name}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        self.tell(json.dumps(asked))

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._name} ended with {self._process.wait()}")
        return line

    def tell(self, line: str = "") -> None:
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_SEC)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def child(module: str, **asked: Any) -> Iterator[Child]:
    with closing(Child(module, asked)) as started:
        yield started
