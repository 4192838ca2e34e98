"""What a check is and what it finds."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from camserver.domain.phrases import Phrase

if TYPE_CHECKING:
    from camserver.clients.conformance.talking import Stage


NO_REASON = Phrase("", "")


class Standing(StrEnum):
    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one check ended; `why` is empty when it is ok."""

    name: str
    title: Phrase
    standing: Standing
    why: Phrase = NO_REASON


class Ended(Exception):
    """A check that did not end well: no error of ours."""

    standing = Standing.FAILED

    def __init__(self, ja: str, en: str) -> None:
        super().__init__(en)
        self.why = Phrase(ja, en)


class Failed(Ended):
    """The analyzer does not keep the contract here."""


class Skipped(Ended):
    """Nothing can be said."""

    standing = Standing.SKIPPED


@dataclass(frozen=True, slots=True)
class Check:
    """`disturbs`: other users of the analyzer notice it."""

    name: str
    title: Phrase
    run: Callable[["Stage"], Awaitable[None]]
    disturbs: bool = False
