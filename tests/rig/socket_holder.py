"""Keeps a port open as a socket unit of systemd does: `socket_holder.py PORT NAME -- COMMAND...`. Standard library.

The command gets the socket as descriptor 3 under that name. SIGUSR1 restarts it in order (SIGTERM, then again), and
"restarted" is printed when the new one was started; SIGTERM ends both.
"""

import os
import signal
import socket
import sys

FIRST_FD = 3
BACKLOG = 2048


def start(listening: socket.socket, name: str, argv: list[str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.dup2(listening.fileno(), FIRST_FD)
    os.set_inheritable(FIRST_FD, True)  # it may have been that number already
    handed = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": name}
    os.execve(argv[0], argv, {**os.environ, **handed})


def main(port: int, name: str, argv: list[str]) -> int:
    watched = {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    with socket.create_server(("127.0.0.1", port), backlog=BACKLOG) as listening:
        pid = start(listening, name, argv)
        while True:
            asked = signal.sigwait(watched)
            if asked != signal.SIGCHLD:
                os.kill(pid, signal.SIGTERM)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if asked != signal.SIGUSR1 or code != 0:
                return code
            signal.sigtimedwait({signal.SIGCHLD}, 0)  # of the one that was just ended
            pid = start(listening, name, argv)
            print("restarted", flush=True)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[4:]))
