"""The processes of a running `camserver up --demo`, by what they are for: CPU used so far and memory held."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from bench._cpu import cpu_seconds

# Plays the demo's cameras, which stand outside the product.
SIMULATOR = "simulate"
SUPERVISOR = "up"


class DemoProcesses:
    """`pid` is that of `camserver up --demo`; a child is known by the command it was started with."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def cpu_sec(self) -> dict[str, float]:
        """CPU seconds by child, with all that it started; the supervisor's are its own."""
        used = {name: cpu_seconds(child.pid) for name, child in self._children()}
        return {SUPERVISOR: cpu_seconds(self._pid) - sum(used.values()), **used}

    def memory_mb(self) -> dict[str, float]:
        """Proportional set size by child: what processes share counts once in the sum."""
        held = {
            name: sum(_pss_mb(one.pid) for one in (child, *child.children(recursive=True)))
            for name, child in self._children()
        }
        return {SUPERVISOR: _pss_mb(self._pid), **held}

    def _children(self) -> Iterator[tuple[str, psutil.Process]]:
        for child in psutil.Process(self._pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = child.cmdline()
                names = [name for name in ("server", "worker", "analyzer", SIMULATOR) if name in words]
                yield (names[0] if names else "others"), child


def product(values: Mapping[str, float]) -> float:
    """The sum without what only plays the cameras."""
    return sum(value for name, value in values.items() if name != SIMULATOR)


def _pss_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # it ended meanwhile
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Pss:"))
