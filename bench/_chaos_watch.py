"""What a fleet takes while it suffers: of every process memory, descriptors and threads; connections to the database,
temporary files, and rows of tables that hold what is, not what was."""

import asyncio
from dataclasses import dataclass, field
from statistics import median

import psutil

from bench._soak_watch import Course, Sample, course, sample
from camserver.objects.keys import DRAFT_MARK
from tests.chaos.fleet import DATABASE_NAME, Fleet

EVERY_SEC = 4.0
# Of connections, files and rows, between the second third of the time and the last one.
GROWTH_MAX = 20
# Rows of these follow what is there now; all others are a history that grows as it should (errands: for an hour).
STANDING = ("analyzers", "camera_sessions", "cooldowns", "duties", "garbage", "modal_leases", "sessions",
            "streamers", "suggestions", "workers")  # fmt: skip
CONNECTIONS = {
    "postgres": f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{DATABASE_NAME}'",
    "mariadb": f"SELECT count(*) FROM information_schema.processlist WHERE db = '{DATABASE_NAME}'",
}


@dataclass(slots=True)
class FleetWatch:
    """`run` until cancelled; then `table` and `growth`."""

    fleet: Fleet
    processes: dict[str, list[Sample]] = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.to_thread(self._look)
            await asyncio.sleep(EVERY_SEC)

    def _look(self) -> None:
        for name, running in list(self.fleet.running.items()):
            try:
                self.processes.setdefault(name, []).append(sample(running.pid))
            except psutil.Error:
                continue  # it was killed meanwhile
        self._count("temporary files", sum(1 for path in self.fleet.temporary.rglob("*") if path.is_file()))
        self._count("drafts of objects", sum(1 for _ in self.fleet.objects.rglob(f"*{DRAFT_MARK}*")))
        sql = CONNECTIONS[self.fleet.kind] + ";" + ";".join(f"SELECT count(*) FROM {name}" for name in STANDING)
        try:
            answers = [int(line) for line in self.fleet.database.admin(sql, DATABASE_NAME).split()]
        except (RuntimeError, OSError, ValueError):
            return  # it is just being killed
        if len(answers) == len(STANDING) + 1:
            self._count("connections to the database", answers[0])
            for name, rows in zip(STANDING, answers[1:], strict=True):
                self._count(f"rows of {name}", rows)

    def _count(self, name: str, value: int) -> None:
        self.counts.setdefault(name, []).append(value)

    def table(self) -> list[tuple[str, str]]:
        """A line for each process and each count, by the medians of the second and the last third."""
        lines = [(name, str(course(samples))) for name, samples in sorted(self.processes.items()) if samples]
        for name, values in self.counts.items():
            middle, last = _course(values)
            lines.append((name, f"{middle:g} → {last:g}, at most {max(values)}"))
        return lines

    def growth(self) -> list[str]:
        """What is not flat. Processes of one kind are judged together: workers and jobs go from one to the other."""
        kinds: dict[str, list[Course]] = {}
        for name, samples in self.processes.items():
            kinds.setdefault(name.partition("-")[0], []).append(course(samples))
        found = []
        for kind, courses in kinds.items():
            whole = Course(_mean([one.middle for one in courses]), _mean([one.last for one in courses]))
            found += whole.growth(kind)
        for name, values in self.counts.items():
            middle, last = _course(values)
            if last - middle > GROWTH_MAX:
                found.append(f"{name} grew from {middle:g} to {last:g}")
        return found


def _mean(samples: list[Sample]) -> Sample:
    names = ("memory_bytes", "descriptors", "threads")
    return Sample(*(round(sum(getattr(one, name) for one in samples) / len(samples)) for name in names))


def _course(values: list[int]) -> tuple[float, float]:
    third = len(values) // 3
    return median(values[third : 2 * third] or values), median(values[-third:])
