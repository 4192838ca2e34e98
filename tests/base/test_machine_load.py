"""What the load guard reads, from files as the kernel writes them."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from camserver.base import machine_load
from camserver.base.machine_load import Meter

TICKS = machine_load._TICKS_SEC
GB = 1024 * 1024 * 1024


@dataclass
class Machine:
    folder: Path
    now_ms: int = 0

    @property
    def proc(self) -> Path:
        return self.folder / "proc"

    @property
    def cgroup(self) -> Path:
        return self.folder / "cgroup"

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cpu(self, user: int = 0, nice: int = 0, idle: int = 0) -> None:
        """Seconds since boot."""
        self.write("proc/stat", f"cpu  {user * TICKS} {nice * TICKS} 0 {idle * TICKS} 0 0 0 0 0 0\ncpu0 1 2 3\n")

    def memory(self, total_kb: int = 8_000_000, available_kb: int = 6_000_000, swapped_kb: int = 0) -> None:
        self.write(
            "proc/meminfo",
            f"MemTotal: {total_kb} kB\nMemFree: 1 kB\nMemAvailable: {available_kb} kB\n"
            f"SwapTotal: 1000000 kB\nSwapFree: {1_000_000 - swapped_kb} kB\n",
        )

    def process(self, pid: int, nice: int, seconds: int) -> None:
        before = " ".join(["S", *["0"] * 10])
        self.write(f"proc/{pid}/stat", f"{pid} (a) b) {before} {seconds * TICKS} 0 0 0 20 {nice} 1 0\n")

    def meter(self) -> Meter:
        return Meter(self.proc, self.cgroup)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    made.cpu()
    made.memory()
    monkeypatch.setattr(machine_load, "boot_time_ms", lambda: made.now_ms)
    return made


def test_processes_of_low_priority_do_not_count_as_load(machine: Machine) -> None:
    meter = machine.meter()
    machine.cpu(user=3, nice=5, idle=2)
    assert meter.read().cpu_percent == 30
    machine.cpu(user=3, nice=5, idle=12)
    assert meter.read().cpu_percent == 0, "since the last time"
    assert meter.read().cpu_percent == 0, "no time has passed"


def test_memory_counts_by_what_is_available(machine: Machine) -> None:
    assert machine.meter().read().memory_percent == 25


def test_swap_counts_by_its_growth(machine: Machine) -> None:
    machine.memory(swapped_kb=500_000)
    meter = machine.meter()
    assert meter.read().swap_mb == 0
    machine.memory(swapped_kb=600_000)
    assert meter.read().swap_mb == 102.4
    machine.memory(swapped_kb=100_000)
    assert meter.read().swap_mb == 0


def container(machine: Machine, path: str = "cgroup") -> None:
    machine.write("proc/self/cgroup", "0::/\n" if path == "cgroup" else f"0::/{path.partition('/')[2]}\n")
    machine.write(f"{path}/cpu.max", "200000 100000\n")
    machine.write(f"{path}/cpu.stat", "usage_usec 0\nuser_usec 0\n")
    machine.write(f"{path}/cgroup.procs", "11\n12\n13\n")
    machine.write(f"{path}/memory.max", f"{GB}\n")
    machine.write(f"{path}/memory.current", f"{GB * 3 // 4}\n")
    machine.write(f"{path}/memory.stat", f"anon 5\ninactive_file {GB // 4}\n")
    machine.write(f"{path}/memory.swap.current", "0\n")
    machine.process(11, 0, 0)
    machine.process(12, 10, 0)


@pytest.mark.parametrize("path", ["cgroup", "cgroup/system.slice/camserver.service"])
def test_a_containers_limits_count_without_its_nice_processes(machine: Machine, path: str) -> None:
    container(machine, path)
    meter = machine.meter()
    machine.now_ms = 10_000
    machine.cpu(user=1, idle=99)
    machine.write(f"{path}/cpu.stat", "usage_usec 18000000\n")
    machine.process(12, 10, 8)
    machine.process(11, 0, 10)
    machine.write(f"{path}/memory.swap.current", "120000000\n")
    found = meter.read()
    assert found.cpu_percent == 50, "10 of 20 seconds of two cores; the nice ones' 8 left out"
    assert found.memory_percent == 50, "files that can be dropped are available"
    assert found.swap_mb == 120


def test_newer_kernels_tell_what_was_nice(machine: Machine) -> None:
    container(machine)
    machine.write("cgroup/cpu.stat", "usage_usec 0\nnice_usec 0\n")
    meter = machine.meter()
    machine.now_ms = 10_000
    machine.write("cgroup/cpu.stat", "usage_usec 18000000\nnice_usec 8000000\n")
    assert meter.read().cpu_percent == 50


def test_limits_further_out_count_for_what_lies_below_them(machine: Machine) -> None:
    container(machine, "cgroup/machine.slice")
    machine.write("proc/self/cgroup", "0::/machine.slice/inner/one\n")
    machine.memory(available_kb=8_000_000)
    assert machine.meter().read().memory_percent == 50


def test_a_limit_beyond_the_machine_is_none(machine: Machine) -> None:
    container(machine)
    machine.write("cgroup/memory.max", f"{100 * GB}\n")
    machine.write("cgroup/cpu.max", "max 100000\n")
    found = machine.meter().read()
    assert (found.memory_percent, found.cpu_percent) == (25, 0)


def test_where_the_kernel_tells_nothing_there_is_no_load(tmp_path: Path) -> None:
    found = Meter(tmp_path, tmp_path).read()
    assert (found.cpu_percent, found.memory_percent, found.swap_mb) == (0, 0, 0)


def test_this_machine_can_be_read() -> None:
    found = Meter().read()
    assert 0 <= found.cpu_percent <= 100
    assert 0 < found.memory_percent <= 100
