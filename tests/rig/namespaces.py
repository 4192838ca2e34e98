"""Network namespaces for tests: machines of their own on this one, joined to it by links that can be cut.

Each has two links: `lan`, where cameras are, and `wan`, where the server is. Needs root and iproute2; where they are
missing the test is skipped and says so, and with CI=true a missing program is a failure.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from tests.rig.polling import until
from tests.rig.ports import LOOPBACK, free_port
from tests.rig.processes import REPOSITORY, Launcher

PROGRAM_TIMEOUT_SEC = 60
# Private, and seldom anybody's: of 10.64.0.0/10 one /16 for each run, chosen by chance.
FIRST, LAST = 64, 127
ATTEMPTS_MAX = 5
RELAY = REPOSITORY / "tests" / "rig" / "relay.py"


@dataclass(frozen=True, slots=True)
class Namespace:
    """One machine. `within` runs a command in it."""

    name: str
    wan: str  # the server's end of the link
    server_address: str  # of that end
    address: str  # of its own end

    @property
    def within(self) -> tuple[str, ...]:
        return (ip_program(), "netns", "exec", self.name)

    def cut(self) -> None:
        """No packet passes to or from the server; nobody is told."""
        _ip("link", "set", self.wan, "down")

    def join(self) -> None:
        _ip("link", "set", self.wan, "up")


@dataclass(frozen=True, slots=True)
class Machines:
    camera_address: str  # reached from every namespace by its lan
    namespaces: tuple[Namespace, ...]


def ip_program() -> str:
    return shutil.which("ip") or shutil.which("ip", path="/usr/sbin:/sbin") or ""


def need_namespaces() -> None:
    """Skips, loudly, where namespaces can't be made."""
    if not ip_program():
        text = "network namespaces need the package iproute2"
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(f"{text} (skipped where CI is not set)", pytrace=False)
        pytest.skip(text)
    if os.geteuid() != 0:
        pytest.skip("network namespaces can be made by root only")
    probe = f"cs-probe-{os.getpid()}"
    try:
        _ip("netns", "add", probe)
        _ip("link", "add", f"csp{os.getpid()}"[:15], "type", "veth", "peer", "name", "x0", "netns", probe)
    except RuntimeError as error:
        pytest.skip(f"this machine lets nobody make network namespaces: {error}")
    finally:
        with suppress(RuntimeError):
            _ip("netns", "del", probe)


@contextmanager
def machines(count: int) -> Iterator[Machines]:
    """So many namespaces, gone at the end with their links."""
    made: list[Namespace] = []
    run = f"{os.getpid() % 100_000:x}"
    net = 0
    try:
        for attempt in range(ATTEMPTS_MAX):
            net = random.randint(FIRST, LAST)
            try:
                _ip("address", "add", f"10.{net}.255.1/32", "dev", "lo")
                break
            except RuntimeError:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
        for number in range(count):
            made.append(_make(f"cs-{run}-{number}", f"cs{run}{number}", net, number))
        yield Machines(f"10.{net}.255.1", tuple(made))
    finally:
        for number in range(count):
            with suppress(RuntimeError):
                _ip("netns", "del", f"cs-{run}-{number}")
        with suppress(RuntimeError):
            _ip("address", "del", f"10.{net}.255.1/32", "dev", "lo")


async def reach(launcher: Launcher, place: Namespace, port: int) -> int:
    """Two relays, one at each end of the link, bring a port of this machine's loopback to that one's; its number."""
    near, far = free_port(), free_port()
    python = (sys.executable, "-I", "-S", str(RELAY))
    ends = [
        (*python, place.server_address, str(far), LOOPBACK, str(port)),
        (*place.within, *python, LOOPBACK, str(near), place.server_address, str(far)),
    ]
    for argv in ends:
        running = launcher.start("relay", argv)
        await until(lambda path=running.stdout_path: "ready" in path.read_text(), f"relay of {place.name}")  # type: ignore[misc]
    return near


def _make(name: str, prefix: str, net: int, number: int) -> Namespace:
    _ip("netns", "add", name)
    _ip("-n", name, "link", "set", "lo", "up")
    for kind, half in (("l", 0), ("w", 100)):
        ours, theirs = f"{prefix}{kind}", f"{kind}0"
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
        _ip("address", "add", f"10.{net}.{half + number}.1/30", "dev", ours)
        _ip("link", "set", ours, "up")
        _ip("-n", name, "address", "add", f"10.{net}.{half + number}.2/30", "dev", theirs)
        _ip("-n", name, "link", "set", theirs, "up")
    _ip("-n", name, "route", "add", f"10.{net}.255.1/32", "via", f"10.{net}.{number}.1")
    return Namespace(name, f"{prefix}w", f"10.{net}.{100 + number}.1", f"10.{net}.{100 + number}.2")


def _ip(*arguments: str) -> None:
    done = subprocess.run(
        [ip_program(), *arguments], capture_output=True, text=True, timeout=PROGRAM_TIMEOUT_SEC, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
