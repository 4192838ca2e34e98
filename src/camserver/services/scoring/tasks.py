"""What goes through the stages: chunks that are being worked on, and tasks, one row and one block each.

Nothing marks the end of a chunk in a queue: a mark could overtake a task that is sent again. What is outstanding is
counted, and a chunk is over when nothing is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from camserver.domain.scoring import ChunkPlan, PauseReason
from camserver.domain.scoring_prompts import BlockQuestion
from camserver.store.scoring_chunks import ChunkCounts


class Interrupted(Exception):
    """The run can't go on before a person did something."""

    def __init__(self, reason: PauseReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class ChunkFailed(Exception):
    """A chunk can't be worked through now; it is tried again later."""


@dataclass(slots=True, eq=False)
class OpenChunk:
    plan: ChunkPlan
    retry_count: int
    on_over: Callable[["OpenChunk"], None]
    tasks: int = 0
    done: int = 0
    failed: int = 0
    left: int = 1  # tasks that are not in the journal; one more while the chunk is still being read
    error: str | None = None  # it failed: what is left of it is dropped
    is_abandoned: bool = False  # some of it was given up although nothing failed: the work is being stopped

    def add(self) -> None:
        self.tasks += 1
        self.left += 1

    def settle(self, is_scored: bool) -> None:
        if is_scored:
            self.done += 1
        else:
            self.failed += 1
        self.drop()

    def drop(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.on_over(self)

    def abandon(self) -> None:
        """One of its tasks ends without a result."""
        self.is_abandoned = True
        self.drop()

    def fail(self, error: str) -> None:
        self.error = self.error or error

    @property
    def counts(self) -> ChunkCounts:
        return ChunkCounts(self.plan.number, self.tasks, self.done, self.failed)


@dataclass(slots=True, eq=False)
class Task:
    chunk: OpenChunk
    row: int
    identity: str
    text: str
    question: BlockQuestion
    key: str
    picture: str = ""  # of the row
    followers: list["Task"] = field(default_factory=list)  # the same question, asked once


def pictures_of(picture: str) -> tuple[str, ...]:
    """The pictures that belong to a question, by name."""
    return (picture,) if picture else ()


class Verdict(NamedTuple):
    """What came of a question: scores and who gave them, or why there are none."""

    scores: tuple[float, ...] | None
    model: str | None
    key: str  # under which the answer is kept: of the model that gave it
    note: str | None = None
