"""A server program under `guard.py`: start, stop, crash and start again; it never outlives the tests."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from tests.rig.polling import poll

GUARD = Path(__file__).with_name("guard.py")
LOG_TAIL_CHARS = 4000
# Until the guard tells the server's pid.
START_TIMEOUT_SEC = 60
# Above what the guard itself waits before it kills.
END_TIMEOUT_SEC = 90


class GuardedServer:
    """One server program with its log file; `folder` is removed by the guard when the tests die."""

    def __init__(self, argv: list[str], *, folder: Path, user: str | None, stop_signal: signal.Signals) -> None:
        self._argv = argv
        self._folder = folder
        self._user = user
        self._stop_signal = stop_signal
        self._guard: subprocess.Popen[bytes] | None = None
        self.log_path = folder / "server.log"
        self.pid = 0  # of the server, not of its guard

    def start(self) -> None:
        if self._guard is not None:
            raise RuntimeError(f"{self._argv[0]} is running already, as process {self.pid}")
        options = [
            "serve",
            str(os.getpid()),
            str(self._folder),
            self._user or "-",
            str(int(self._stop_signal)),
        ]
        with self.log_path.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *options, "--", *self._argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd=self._folder,
            )
        assert self._guard.stdout is not None
        is_told, _, _ = select.select([self._guard.stdout], [], [], START_TIMEOUT_SEC)
        if not is_told:
            self._guard.kill()
        first_line = self._guard.stdout.readline()
        if not first_line:
            self._reap()
            raise RuntimeError(f"{self._argv[0]} did not start: {self.log_tail()}")
        self.pid = int(first_line)

    @property
    def running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    def stop(self) -> None:
        """Ends the server with its stop signal; nothing happens when it is not running."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        with suppress(BrokenPipeError):  # the server ended by itself and its guard with it
            self._guard.stdin.write(b"stop\n")
            self._guard.stdin.flush()
        self._reap()

    def crash(self) -> None:
        """kill -9 of the server and of the processes it made; returns when they are gone."""
        children = self._children()
        self._send_all(signal.SIGKILL, children)
        self._reap()
        poll(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children), f"end of {children}")

    def freeze(self) -> None:
        """Nobody there does anything any more, and nobody is told: connections stay open and are silent."""
        os.kill(self.pid, signal.SIGSTOP)  # first, so that it makes no more processes
        children = self._children()
        self._send_all(signal.SIGSTOP, children)
        # A thread that runs on another core stands still a moment later: until then it may answer.
        poll(lambda: all(_stands_still(pid) for pid in (self.pid, *children)), f"{self.pid} stands still")

    def thaw(self) -> None:
        self._send_all(signal.SIGCONT, self._children())

    def _children(self) -> list[int]:
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def _send_all(self, number: signal.Signals, children: list[int]) -> None:
        for pid in (self.pid, *children):
            with suppress(ProcessLookupError):  # a child may have ended by itself or with its parent
                os.kill(pid, number)

    def _reap(self) -> None:
        assert self._guard is not None
        guard, self._guard = self._guard, None
        try:
            guard.wait(END_TIMEOUT_SEC)
        except subprocess.TimeoutExpired:
            guard.kill()  # the kernel then ends the server
            guard.wait()
        for stream in (guard.stdin, guard.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # what was left to write had no reader any more
                stream.close()
        poll(lambda: not Path(f"/proc/{self.pid}").exists(), f"end of process {self.pid}")

    def log_tail(self) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return text[-LOG_TAIL_CHARS:]


def _stands_still(pid: int) -> bool:
    """Whether each thread of the process is stopped, or the process is gone."""
    try:
        stats = [(task / "stat").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return not Path(f"/proc/{pid}").exists()
    return all(stat.rpartition(")")[2].split()[0] in "TtZX" for stat in stats)
