"""The truth of bench/quality_truth.toml, and how finds are held against it.

A find is right when it overlaps a box of its kind that no surer find has taken (intersection over union of at least
`OVERLAP_MIN`). One that is wrong but mostly inside something that the truth calls unsure counts as nothing.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

TRUTH: Final = Path(__file__).with_name("quality_truth.toml")
OVERLAP_MIN: Final = 0.5
INSIDE_MIN: Final = 0.5
KINDS: Final = ("person", "vehicle")


class Place(NamedTuple):
    """In pixels of the source."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def area(self) -> float:
        return max(self.x2 - self.x1, 0.0) * max(self.y2 - self.y1, 0.0)

    def common(self, other: "Place") -> float:
        """The area that both share."""
        return Place(
            max(self.x1, other.x1), max(self.y1, other.y1), min(self.x2, other.x2), min(self.y2, other.y2)
        ).area

    def overlap(self, other: "Place") -> float:
        common = self.common(other)
        return common / (self.area + other.area - common)


@dataclass(frozen=True, slots=True)
class Find:
    kind: str
    sureness: float
    place: Place


FrameName: TypeAlias = int | str | None


@dataclass(frozen=True, slots=True)
class Truth:
    """What is in one picture. `frame` None: the source is a photo."""

    source: str
    frame: FrameName
    there: dict[str, tuple[Place, ...]]
    unsure: dict[str, tuple[Place, ...]]


@dataclass(slots=True)
class Tally:
    """How one way of finding did on one kind of thing."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    # Whole pictures: with at least one such thing, and how many of them had a right find; without any, and how many
    # of them had a wrong one.
    with_any: int = 0
    noticed: int = 0
    without: int = 0
    alarmed: int = 0
    wrong_in: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return 100 * self.right / max(self.right + self.missed, 1)

    @property
    def precision(self) -> float:
        return 100 * self.right / max(self.right + self.wrong, 1)

    @property
    def balance(self) -> float:
        """The harmonic mean of recall and precision (F1)."""
        return 2 * self.recall * self.precision / max(self.recall + self.precision, 1e-9)

    def add(self, truth: Truth, kind: str, finds: Sequence[Find]) -> None:
        right, wrong = judge(truth.there[kind], truth.unsure[kind], [one for one in finds if one.kind == kind])
        self.right += right
        self.wrong += wrong
        self.missed += len(truth.there[kind]) - right
        if wrong:
            self.wrong_in.append(f"{truth.source} {truth.frame}: {wrong}")
        if truth.there[kind]:
            self.with_any += 1
            self.noticed += right > 0
        elif not truth.unsure[kind]:
            self.without += 1
            self.alarmed += wrong > 0


def judge(there: Sequence[Place], unsure: Sequence[Place], finds: Sequence[Find]) -> tuple[int, int]:
    """How many finds of one kind are right, and how many wrong."""
    free = list(there)
    right = wrong = 0
    for find in sorted(finds, key=lambda one: -one.sureness):
        best = max(free, key=find.place.overlap, default=None)
        if best is not None and find.place.overlap(best) >= OVERLAP_MIN:
            free.remove(best)
            right += 1
        elif not any(find.place.common(one) >= INSIDE_MIN * find.place.area for one in unsure):
            wrong += 1
    return right, wrong


def read_truth(path: Path = TRUTH) -> list[Truth]:
    with path.open("rb") as file:
        entries = tomllib.load(file)["picture"]
    return [
        Truth(
            entry["source"],
            entry.get("frame"),
            {kind: _places(entry.get(f"{kind}s", ())) for kind in KINDS},
            {kind: _places(entry.get(f"unsure_{kind}s", ())) for kind in KINDS},
        )
        for entry in entries
    ]


def _places(boxes: Sequence[Sequence[float]]) -> tuple[Place, ...]:
    return tuple(Place(*box) for box in boxes)
