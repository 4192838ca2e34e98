"""One trace a look, from the camera to the last message: which steps it took, where, and how long.

A trace's id is its frame's UUID, which every row on the way has or leads to: nothing is carried along and nothing is
stored for it. Whether a look is traced follows from that id alone, so all services decide alike without asking each
other. A worker learns the id with the acknowledgement and tells its steps then.

Steps are told when they are over, to a sink that keeps them or drops them and never waits. Off, which is the default,
every call here returns at once. Ids are told, never a secret, a picture or a word about what is seen in it.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

Value: TypeAlias = str | int | float | bool
# The UUID's digits that decide whether it is traced. Those before them count up within a millisecond.
_DIGITS: Final = 8


class Step(StrEnum):
    LOOK = "look"  # until it is safe in the spool
    GATE = "gate"  # decoded, masked, measured, judged
    SEND = "send"  # the upload that was acknowledged
    RECORD = "record"
    ANALYZE = "analyze"  # from the claim on, each attempt
    DECIDE = "decide"
    APPLY = "apply"
    DELIVER = "deliver"  # each attempt


SERVICE_OF: Final = {
    Step.LOOK: "worker",
    Step.GATE: "worker",
    Step.SEND: "worker",
    Step.RECORD: "control",
    Step.ANALYZE: "dispatcher",
    Step.DECIDE: "dispatcher",
    Step.APPLY: "dispatcher",
    Step.DELIVER: "dispatcher",
}
_PARENT: Final = {
    Step.GATE: Step.LOOK,
    Step.SEND: Step.LOOK,
    Step.RECORD: Step.SEND,
    Step.ANALYZE: Step.RECORD,
    Step.DECIDE: Step.RECORD,
    Step.APPLY: Step.RECORD,
    Step.DELIVER: Step.APPLY,
}
# Those that others hang below happen once a look, so whoever needs their id can work it out.
_PARENTS: Final = frozenset(_PARENT.values())


@dataclass(frozen=True, slots=True)
class Span:
    """A step that is over. Times are UTC epoch nanoseconds."""

    trace_id: int
    span_id: int
    parent_id: int | None
    step: Step
    started_ns: int
    ended_ns: int
    ids: dict[str, Value]
    failed: str | None  # a word for what went wrong


class Sink(Protocol):
    def add(self, span: Span) -> None:
        """Keeps or drops it, and returns at once."""


@dataclass(frozen=True, slots=True)
class _On:
    sink: Sink
    below: int
    offset_ms: Callable[[], int]


_on: _On | None = None


def switch_on(sink: Sink, ratio: float, offset_ms: Callable[[], int]) -> None:
    """From now on this share of looks is traced. `offset_ms` is from the boot-time clock to the one all share."""
    global _on
    _on = _On(sink, round(ratio * 16**_DIGITS), offset_ms)


def switch_off() -> None:
    global _on
    _on = None


def is_on() -> bool:
    return _on is not None


def is_traced(frame_uuid: str | None) -> bool:
    return _on is not None and frame_uuid is not None and int(frame_uuid[-_DIGITS:], 16) < _on.below


def trace_id_of(frame_uuid: str) -> str:
    """As tracing tools write it, and log lines with them."""
    return frame_uuid.replace("-", "")


def now_ns() -> int:
    """A moment, for `add`: of the boot-time clock, which never jumps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def add(
    step: Step,
    frame_uuid: str | None,
    started_ns: int,
    ended_ns: int | None = None,
    *,
    failed: str | None = None,
    ids: Mapping[str, Value | None] = MappingProxyType({}),
) -> None:
    """Tells a step of a look that is traced; of any other, does nothing."""
    if _on is None or frame_uuid is None or not is_traced(frame_uuid):
        return
    offset_ns = _on.offset_ms() * 1_000_000
    parent = _PARENT.get(step)
    _on.sink.add(
        Span(
            int(trace_id_of(frame_uuid), 16),
            _span_id(frame_uuid, step) if step in _PARENTS else secrets.randbits(64) or 1,
            None if parent is None else _span_id(frame_uuid, parent),
            step,
            started_ns + offset_ns,
            (now_ns() if ended_ns is None else ended_ns) + offset_ns,
            {name: value for name, value in ids.items() if value is not None},
            failed,
        )
    )


def _span_id(frame_uuid: str, step: Step) -> int:
    digest = hashlib.blake2b(f"{frame_uuid} {step}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") or 1
