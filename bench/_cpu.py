"""CPU seconds that a process and its children have used."""

import contextlib
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class CpuUsed:
    """Seconds of the program under test and of the database server."""

    client: float
    server: float

    @property
    def total(self) -> float:
        return self.client + self.server

    def __sub__(self, earlier: "CpuUsed") -> "CpuUsed":
        return CpuUsed(self.client - earlier.client, self.server - earlier.server)


def cpu_seconds(pid: int) -> float:
    """Of a process, its ended children, and its living descendants with theirs."""
    process = psutil.Process(pid)
    total = _own(process)
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += _own(child)
    return total


def _own(process: psutil.Process) -> float:
    used = process.cpu_times()
    return float(used.user + used.system + used.children_user + used.children_system)
