"""A question's way to a provider and back, as the controller knows it."""

from dataclasses import dataclass
from typing import NamedTuple

from camserver.domain.scoring_windows import Moment


class Ticket(NamedTuple):
    """A question that was sent."""

    number: int
    sent_sec: float
    in_flight: int  # itself included, those that wait after a refusal not
    is_full: bool  # the limit held sending back


class Wait(NamedTuple):
    """What a question that came back waits for, keeping its place."""

    since_sec: float
    until_sec: float
    after: int | None  # the last question that was sent before it was refused; None: it was not


@dataclass(slots=True)
class Stop:
    """Nothing is accepted for a while."""

    nothing_left: Moment
    in_flight: int  # when it began
    refused_sec: float = 0.0  # the last trial that was refused was sent then
    was_alone: bool = False  # one that went nearly alone was refused, too
