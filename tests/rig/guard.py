"""A small process between the tests and a server, so that the server never outlives the tests.

Run as a script, with the standard library only. Two ways:

    guard.py serve PARENT_PID FOLDER USER STOP_SIGNAL -- ARGV...
        Runs ARGV as USER ("-": as we are) and prints its pid. Told "stop" on stdin, it sends STOP_SIGNAL.
        When the parent dies, kill -9 included, it ends it too and removes FOLDER. When the guard itself is
        killed, the kernel sends the server STOP_SIGNAL.
    guard.py exec PARENT_PID -- ARGV...
        Becomes ARGV, which the kernel kills when the parent's starting thread ends.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

PR_SET_PDEATHSIG = 1
STOP_TIMEOUT_SEC = 30


def die_with_parent(signal_number: int, parent_pid: int) -> None:
    """Asks the kernel for `signal_number` when the parent ends, and ends now if that has happened already."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os._exit(1)


def become(parent_pid: int, argv: list[str]) -> None:
    die_with_parent(signal.SIGKILL, parent_pid)
    os.execvp(argv[0], argv)


def serve(parent_pid: int, folder: str, user: str, stop_signal: int, argv: list[str]) -> int:
    parent = os.pidfd_open(parent_pid)
    if os.getppid() != parent_pid:
        return 1
    guard_pid = os.getpid()
    server = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,  # the log file; stdout belongs to the one line below
        user=None if user == "-" else user,
        group=None if user == "-" else user,
        extra_groups=None if user == "-" else [],
        # Runs after the change of user, which would clear the setting; this process has one thread.
        preexec_fn=lambda: die_with_parent(stop_signal, guard_pid),
    )
    print(server.pid, flush=True)
    told_to_stop = _wait(parent, os.pidfd_open(server.pid))
    _end(server, stop_signal)
    if not told_to_stop:
        shutil.rmtree(folder, ignore_errors=True)
    return server.returncode


def _wait(parent: int, server: int) -> bool:
    """Until there is nothing left to guard. False when the parent is gone without having said "stop"."""
    stdin = sys.stdin.fileno()
    while True:
        ready, _, _ = select.select([stdin, parent, server], [], [])
        if stdin in ready:
            return os.read(stdin, 64).startswith(b"stop")
        if parent in ready:
            return False
        if server in ready:
            return True


def _end(server: "subprocess.Popen[bytes]", stop_signal: int) -> None:
    server.send_signal(stop_signal)
    try:
        server.wait(STOP_TIMEOUT_SEC)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def main(arguments: list[str]) -> int:
    split = arguments.index("--")
    options, argv = arguments[:split], arguments[split + 1 :]
    if options[0] == "exec":
        become(int(options[1]), argv)
    _, parent_pid, folder, user, stop_signal = options
    # Ctrl-C at a terminal is for the tests, which then tell us to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return serve(int(parent_pid), folder, user, int(stop_signal), argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
