"""How busy the machine is, as the load guard of live view judges it (domain/admission.py).

CPU counts without processes of low priority (a positive nice value, such as the analyzer's): they give way by
themselves. Memory counts by what is available, not by what is free. Swap counts by its growth since the meter was
made: what was swapped out long ago harms nobody. In a container its own limits count where they are the narrower
ones. Reads a few small files of /proc and /sys/fs/cgroup; what is not there does not count.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from camserver.base.clock import boot_time_ms

_MB = 1_000_000
# A container with more processes than this is not looked at one by one.
_PROCESSES_MAX = 4_096
_TICKS_SEC = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Measured:
    cpu_percent: float
    memory_percent: float
    swap_mb: float


@dataclass(frozen=True, slots=True)
class _Ticks:
    """CPU time since boot, in seconds of one core."""

    busy: float  # without what is nice
    total: float


@dataclass(frozen=True, slots=True)
class _Own:
    """Of the container: CPU seconds used, and by whom of low priority."""

    used: float
    nice: dict[int, float]  # by process
    at_ms: int


class Meter:
    """`read` tells the load since the last time it was called; the first one, since the meter was made."""

    def __init__(self, proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc = proc
        self._cgroup = _own_cgroup(proc, cgroup)
        self._ticks = self._read_ticks()
        self._own = self._read_own()
        self._swap_bytes = self._read_swap()

    def read(self) -> Measured:
        memory = self._read_memory()
        grown = max(0, self._read_swap() - self._swap_bytes)
        return Measured(round(self._cpu_percent(), 1), round(memory, 1), round(grown / _MB, 1))

    def _cpu_percent(self) -> float:
        before, self._ticks = self._ticks, self._read_ticks()
        passed = self._ticks.total - before.total
        machine = 100 * (self._ticks.busy - before.busy) / passed if passed > 0 else 0.0
        return min(100.0, max(0.0, machine, self._own_percent()))

    def _own_percent(self) -> float:
        """Of what the container may use; 0 where it has no limit of its own."""
        before, self._own = self._own, self._read_own()
        cores = self._own_cores()
        if cores is None or before is None or self._own is None or self._own.at_ms <= before.at_ms:
            return 0.0
        nice = sum(max(0.0, used - before.nice.get(pid, 0.0)) for pid, used in self._own.nice.items())
        used = max(0.0, self._own.used - before.used - nice)
        return 100 * used / (cores * (self._own.at_ms - before.at_ms) / 1000)

    def _read_ticks(self) -> _Ticks:
        # cpu user nice system idle iowait irq softirq steal guest guest_nice; guests are in user and nice already.
        fields = [int(text) for text in _text(self._proc / "stat").partition("\n")[0].split()[1:9]]
        if len(fields) < 8:
            return _Ticks(0.0, 0.0)
        user, nice, system, idle, iowait, irq, softirq, steal = fields
        busy = user + system + irq + softirq + steal
        return _Ticks(busy / _TICKS_SEC, (busy + nice + idle + iowait) / _TICKS_SEC)

    def _read_own(self) -> _Own | None:
        if self._cgroup is None or self._own_cores() is None:
            return None
        figures = _figures(self._cgroup / "cpu.stat")
        used = figures.get("usage_usec")
        if used is None:
            return None
        if "nice_usec" in figures:  # newer kernels tell it by themselves
            return _Own((used - figures["nice_usec"]) / 1e6, {}, boot_time_ms())
        return _Own(used / 1e6, self._nice_seconds(), boot_time_ms())

    def _own_cores(self) -> float | None:
        if self._cgroup is None:
            return None
        quota, _, period = _text(self._cgroup / "cpu.max").partition(" ")
        if not quota.isdecimal() or not period.strip().isdecimal() or int(period) == 0:
            return None
        return int(quota) / int(period)

    def _nice_seconds(self) -> dict[int, float]:
        assert self._cgroup is not None
        pids = _text(self._cgroup / "cgroup.procs").split()
        if len(pids) > _PROCESSES_MAX:
            return {}
        found = {}
        for pid in pids:
            # What follows the name, which may hold anything: utime and stime are fields 14 and 15, nice is 19.
            fields = _text(self._proc / pid / "stat").rpartition(")")[2].split()
            if len(fields) > 16 and int(fields[16]) > 0:
                found[int(pid)] = (int(fields[11]) + int(fields[12])) / _TICKS_SEC
        return found

    def _read_memory(self) -> float:
        info = _figures(self._proc / "meminfo")
        total, available = info.get("MemTotal", 0), info.get("MemAvailable", 0)
        machine = 100 * (total - available) / total if total else 0.0
        return min(100.0, max(0.0, machine, self._own_memory_percent(total * 1024)))

    def _own_memory_percent(self, machine_bytes: int) -> float:
        if self._cgroup is None:
            return 0.0
        limit = _text(self._cgroup / "memory.max").strip()
        current = _text(self._cgroup / "memory.current").strip()
        if not limit.isdecimal() or not current.isdecimal() or not 0 < int(limit) <= machine_bytes:
            return 0.0
        # Files that could be dropped at any time are available memory.
        droppable = _figures(self._cgroup / "memory.stat").get("inactive_file", 0)
        return 100 * max(0, int(current) - droppable) / int(limit)

    def _read_swap(self) -> int:
        """Bytes swapped out: the container's, or the machine's where that is not known."""
        own = _text(self._cgroup / "memory.swap.current").strip() if self._cgroup is not None else ""
        if own.isdecimal():
            return int(own)
        info = _figures(self._proc / "meminfo")
        return max(0, info.get("SwapTotal", 0) - info.get("SwapFree", 0)) * 1024


def _own_cgroup(proc: Path, root: Path) -> Path | None:
    """The folder of the narrowest cgroup (version 2) that we are in and that limits something.

    Seen from inside a container that is the root itself.
    """
    for line in _text(proc / "self" / "cgroup").splitlines():
        if line.startswith("0::"):
            inner = root / line[3:].strip().lstrip("/")
            around = [one for one in (inner, *inner.parents) if one == root or root in one.parents]
            return next((one for one in around if _has_limit(one)), None)
    return None


def _has_limit(folder: Path) -> bool:
    return any(_text(folder / name).partition(" ")[0].strip().isdecimal() for name in ("cpu.max", "memory.max"))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _figures(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    found = {}
    for line in _text(path).splitlines():
        name, _, rest = line.replace(":", " ").partition(" ")
        value = rest.split()
        if value and value[0].isdecimal():
            found[name] = int(value[0])
    return found
