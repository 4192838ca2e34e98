"""What processes take while they run for long: memory, descriptors and threads, and whether that stays flat."""

from dataclasses import dataclass
from statistics import median

import psutil

# Between the second third of the time and the last one, by the medians.
MEMORY_GROWTH_MAX = 0.1
MEMORY_GROWTH_MAX_BYTES = 15_000_000
DESCRIPTORS_GROWTH_MAX = 10
THREADS_GROWTH_MAX = 6
# Below this a process still fills what it may fill; then figures are shown and not judged.
JUDGED_FROM_SEC = 300.0


@dataclass(frozen=True, slots=True)
class Sample:
    memory_bytes: int
    descriptors: int
    threads: int


def sample(pid: int) -> Sample:
    """Of a process and all its descendants."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    memory_bytes = descriptors = threads = 0
    for one in family:
        try:
            with one.oneshot():
                figures = one.memory_info().rss, one.num_fds(), one.num_threads()
        except psutil.NoSuchProcess:
            continue
        memory_bytes += figures[0]
        descriptors += figures[1]
        threads += figures[2]
    return Sample(memory_bytes, descriptors, threads)


@dataclass(frozen=True, slots=True)
class Course:
    """The medians of the second and of the last third."""

    middle: Sample
    last: Sample

    def __str__(self) -> str:
        one, other = self.middle, self.last
        return (
            f"memory {one.memory_bytes / 1e6:.0f} → {other.memory_bytes / 1e6:.0f} MB, "
            f"descriptors {one.descriptors} → {other.descriptors}, threads {one.threads} → {other.threads}"
        )

    def growth(self, name: str) -> list[str]:
        """What is not flat."""
        one, other = self.middle, self.last
        allowed_bytes = max(one.memory_bytes * MEMORY_GROWTH_MAX, MEMORY_GROWTH_MAX_BYTES)
        found = []
        if other.memory_bytes - one.memory_bytes > allowed_bytes:
            found.append(
                f"{name}'s memory grew from {one.memory_bytes / 1e6:.0f} to {other.memory_bytes / 1e6:.0f} MB"
            )
        if other.descriptors - one.descriptors > DESCRIPTORS_GROWTH_MAX:
            found.append(f"{name}'s descriptors grew from {one.descriptors} to {other.descriptors}")
        if other.threads - one.threads > THREADS_GROWTH_MAX:
            found.append(f"{name}'s threads grew from {one.threads} to {other.threads}")
        return found


def course(samples: list[Sample]) -> Course:
    third = len(samples) // 3
    return Course(_median(samples[third : 2 * third] or samples), _median(samples[-third:]))


def _median(samples: list[Sample]) -> Sample:
    return Sample(
        *(round(median(getattr(one, name) for one in samples)) for name in ("memory_bytes", "descriptors", "threads"))
    )
