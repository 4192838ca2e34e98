"""How far figures moved: those of a process are counted from its start, and a test process runs many tests."""

from camserver.base import figures

Labels = dict[str, str]


def value_of(name: str, **labels: str) -> float:
    """Of this process now; 0 for one that was never counted."""
    return float(figures.REGISTRY.get_sample_value(f"camserver_{name}", labels) or 0.0)


class Moved:
    """`moved = Moved(); …; assert moved.by("jobs_done_total") == 1`."""

    def __init__(self) -> None:
        self._before = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in figures.REGISTRY.collect()
            for sample in family.samples
        }

    def by(self, name: str, **labels: str) -> float:
        before = self._before.get((f"camserver_{name}", tuple(sorted(labels.items()))), 0.0)
        return value_of(name, **labels) - before
