"""SQLite's writer processes without their start: forked from one process that has imported everything already.

A store on SQLite starts a process that writes. For a server that happens once; for hundreds of tests with a store
each, starting Python and importing what their operations need took more time than all else they did. The forked
process runs the writer's own `main` with the same sockets, arguments and lock. Tests of the writer itself start it in
earnest: they say `WRITERS_IN_EARNEST = True` in their module.

This file is the process that forks, too (`python -m tests.rig.writers FD`); it ends with the tests.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from camserver.store.sqlite import SqliteStore

MESSAGE_MAX_BYTES = 64 * 1024
START_TIMEOUT_SEC = 120.0
END_TIMEOUT_SEC = 300.0
READY = b"ready"


class ForkedWriter:
    """A writer as its store sees it: the part of `subprocess.Popen` that stores and tests use."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def wait(self) -> None:
        if self._pidfd >= 0:
            ended, _, _ = select.select([self._pidfd], [], [], END_TIMEOUT_SEC)
            if not ended:
                raise TimeoutError(f"SQLite's writer, process {self.pid}, did not end within {END_TIMEOUT_SEC:g} s")
            os.close(self._pidfd)
            self._pidfd = -1

    def kill(self) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):  # it ended by itself
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def __del__(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)


class Nursery:
    """The process that forks; started by the first store that needs a writer."""

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def fork(self, database: str, test_module: str, channel: socket.socket, lock_fd: int) -> ForkedWriter:
        nursery = self._running()
        request = json.dumps({"database": os.path.abspath(database), "module": test_module}).encode()
        socket.send_fds(nursery, [request], [channel.fileno(), lock_fd])
        answer, pidfds, _, _ = socket.recv_fds(nursery, MESSAGE_MAX_BYTES, 1)
        if not answer:
            raise RuntimeError("the process that forks SQLite's writers ended")
        return ForkedWriter(int(answer), pidfds[0])

    def _running(self) -> socket.socket:
        if self._channel is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(START_TIMEOUT_SEC)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.rig.writers", str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    # The folder that a test is in is gone after it; this process stays.
                    cwd=Path(__file__).parents[2],
                )
            if ours.recv(MESSAGE_MAX_BYTES) != READY:
                raise RuntimeError("the process that forks SQLite's writers did not start")
            self._channel = ours
        return self._channel

    def close(self) -> None:
        if self._channel is not None and self._process is not None:
            self._channel.close()
            self._process.wait(START_TIMEOUT_SEC)
            self._channel = None


def install(nursery: Nursery, test_module: str) -> Any:
    """Lets stores fork their writers; returns what puts it back."""
    from camserver.store.sqlite import SqliteStore

    started_in_earnest = SqliteStore._spawn

    def spawn(store: "SqliteStore", theirs: socket.socket) -> ForkedWriter:
        with theirs:
            return nursery.fork(str(store.path), test_module, theirs, store._lock.fd)

    def put_back() -> None:
        SqliteStore._spawn = started_in_earnest  # type: ignore[method-assign]

    SqliteStore._spawn = spawn  # type: ignore[method-assign,assignment]  # Popen, as far as it is used
    return put_back


def serve(channel: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets ended writers by itself
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_store()
    gc.freeze()
    channel.send(READY)
    while True:
        request, fds, _, _ = socket.recv_fds(channel, MESSAGE_MAX_BYTES, 2)
        if not request:
            return
        asked = json.loads(request)
        # Operations of tests are found by name: imported here, once, every writer has them.
        with contextlib.suppress(Exception):
            importlib.import_module(asked["module"])
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become_writer(asked["database"], fds)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(channel, [str(pid).encode()], [pidfd])
        for fd in (*fds, pidfd):
            os.close(fd)


def _import_store() -> None:
    import camserver.store

    package: ModuleType = camserver.store
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not found.ispkg:
            importlib.import_module(found.name)


def _become_writer(database: str, fds: list[int]) -> None:
    """Never returns."""
    from camserver.store import sqlite_writer

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    code = 1
    try:
        sys.argv = ["-c", database, str(fds[0])]
        sqlite_writer.main()
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as given:
        serve(given)
