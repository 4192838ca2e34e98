"""Listening sockets, taken before anything else is started.

A port that is in use is found out at once and not after the database was opened, and the error says who holds it
where the system lets us see that. The socket is handed to the HTTP server; nobody binds a second time.
"""

import errno
import os
import socket
from pathlib import Path

from camserver.base.errors import BadSettings, PortUnusable

BACKLOG = 2048
# Where a service manager puts the sockets that it hands over (sd_listen_fds).
FIRST_FD = 3


def handed_over(setting: str) -> socket.socket | None:
    """The socket that systemd keeps for us under this name, listening already. It stays open between two runs, so
    that whoever connects during a restart waits a moment instead of being refused."""
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")[: int(os.environ.get("LISTEN_FDS", "0"))]
    if setting not in names:
        return None
    sock = socket.socket(fileno=FIRST_FD + names.index(setting))
    os.set_inheritable(sock.fileno(), False)
    sock.setblocking(False)
    return sock


def listen(host: str, port: int, setting: str) -> socket.socket:
    """A listening TCP socket. `setting` names where the port is chosen, such as `web.port`."""
    if (kept := handed_over(setting)) is not None:
        return kept
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise BadSettings(
            f"the host {host!r} to listen on is unknown ({error.strerror}); "
            f"set {_section(setting)}.host to an address of this machine, such as 127.0.0.1"
        ) from error
    sock = socket.socket(family, kind, protocol)
    try:
        # A port whose last connections are winding down is free; a restart must not wait a minute for them.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        # Only listening makes it ours: two sockets may be bound to one port until one of them listens.
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _explain(error, host, port, setting) from error
    return sock


def _section(setting: str) -> str:
    return setting.partition(".")[0]


def _explain(error: OSError, host: str, port: int, setting: str) -> PortUnusable | BadSettings:
    choose = f"choose another with {setting} in camserver.toml or {env_name(setting)}=… in the environment"
    if error.errno == errno.EADDRINUSE:
        holder = holder_of(port)
        held = f"by {holder}" if holder else "by a process that this user may not see"
        return PortUnusable(f"port {port} on {host} is in use {held}; stop it, or {choose}", port=port, holder=holder)
    if error.errno == errno.EADDRNOTAVAIL:
        return BadSettings(
            f"{host} is not an address of this machine; set {_section(setting)}.host to one that is, "
            "such as 127.0.0.1"
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return PortUnusable(
            f"this user may not listen on port {port} (ports below 1024 need a privilege); {choose}",
            port=port,
        )
    return PortUnusable(f"can't listen on {host} port {port}: {error.strerror}; {choose}", port=port)


def env_name(setting: str) -> str:
    """The environment variable of a setting: `web.port` → `CAMSERVER_WEB_PORT`."""
    return "CAMSERVER_" + setting.replace(".", "_").upper()


def holder_of(port: int) -> str | None:
    """Name and pid of the process listening on `port`, as far as this user may see it."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and _has_open(process, wanted):
            try:
                name = (process / "comm").read_text().strip()
            except OSError:
                name = "a program"
            me = " (this process)" if int(process.name) == os.getpid() else ""
            return f"{name}, process {process.name}{me}"
    return None


def _listening_inodes(port: int) -> set[str]:
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue  # no IPv6 in this kernel
        for row in rows:
            fields = row.split()
            # Field 1 is the local "address:port" in hexadecimal, state 0A is LISTEN, field 9 is the inode.
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(fields[9])
    return inodes


def _has_open(process: Path, wanted: set[str]) -> bool:
    try:
        return any(os.readlink(fd) in wanted for fd in (process / "fd").iterdir())
    except OSError:
        return False  # it ended, or belongs to another user
