"""The process between a parent and its child: when the parent dies, however it dies, nothing below stays.

    python -I -S child_guard.py PARENT_PID -- COMMAND ARGUMENTS...

It runs the command as its own child, passes SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 on to it, and ends
with the command's exit code (128 + n when signal n ended it). It is a child subreaper: what the command
leaves behind, at any depth, becomes the guard's child and is killed before the guard ends. So a restarted
service never meets the remains of the one before it.

Every death is covered, kill -9 included:
  the parent dies   the kernel sends the guard KILL_ALL; the guard kills everything below it and ends
  the guard dies    the kernel kills the command (its parent-death signal is SIGKILL)
  the command dies  the guard kills what is left of it and ends

The parent may be gone before the kernel is asked to watch it; comparing the parent's pid afterwards closes
that gap. All signals are blocked and taken one by one with sigwait, so none can arrive at a wrong moment.

This file is run by path, without site-packages, so it imports nothing but the standard library.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# Sent by the kernel when the parent dies, and by a parent whose patience is over.
KILL_ALL = signal.SIGRTMIN + 1
PASSED_ON = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
# What a shell says for "found, but can't be run" and "not found".
NOT_RUNNABLE = 126
NOT_FOUND = 127


def guarded(argv: Sequence[str]) -> list[str]:
    """`argv` run under a guard that watches this process. Start it from a thread that lives as long as it."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), "--", *argv]


def prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {argument}): {os.strerror(code)}")


def children_of(pid: int) -> set[int]:
    """The live and the unreaped children of a process, whichever of its threads started them."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(errors="replace")
        except OSError:
            continue  # it ended while we looked
        # The name, in brackets, may hold anything; the fields after the last bracket are plain.
        if int(stat.rpartition(")")[2].split()[1]) == pid:
            found.add(int(entry.name))
    return found


def kill_children(spare: frozenset[int] = frozenset()) -> bool:
    """Kills and reaps every child of this process but `spare`; false when there was none."""
    strays = children_of(os.getpid()) - spare
    for pid in strays:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it was reaped in between
    return bool(strays)


def main(arguments: list[str]) -> int:
    parent, dashes, *argv = arguments
    if dashes != "--" or not argv:
        raise SystemExit("usage: child_guard.py PARENT_PID -- COMMAND ARGUMENTS...")
    waited = {*PASSED_ON, KILL_ALL, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, KILL_ALL)
    if os.getppid() != int(parent):
        return 0
    guard = os.getpid()
    command = os.fork()
    if command == 0:
        _become(argv, guard, waited)
    code = _watch(command, waited)
    # Each round may bring up orphans of those it killed; with no child left there is nobody to leave any.
    while kill_children():
        pass
    return code


def _become(argv: list[str], guard: int, waited: set[signal.Signals | int]) -> None:
    """In the new process: turns into the command. Never returns."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(0)
        # Python ignores these two; a command expects the system's own behaviour.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
        os.execvp(argv[0], argv)
    except OSError as error:
        sys.stderr.write(f"can't run {argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE)


def _watch(command: int, waited: set[signal.Signals | int]) -> int:
    """Passes signals on until the command has ended or the parent has; the command's exit code."""
    while True:
        received = signal.sigwait(waited)
        if received == KILL_ALL:
            return 128 + signal.SIGKILL
        if received == signal.SIGCHLD:
            code = _reap(command)
            if code is not None:
                return code
        else:
            os.kill(command, received)


def _reap(command: int) -> int | None:
    """Reaps whatever has ended, adopted orphans too; the command's exit code if it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == command:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
