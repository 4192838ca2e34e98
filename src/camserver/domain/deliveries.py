"""What becomes of a delivery: its states, attempts and end (decisions 23 to 27).

A delivery is a durable row that is done at least once. A *receiver* is one configured place that something goes to.
Rules and types only: claiming and the fence are the store's, sending is done by clients, and the dispatcher's
delivery loop puts them together:

    queued ─ claimed ─> running ─ Done ──────────────> done
       ^                   ├───── FanOut ────────────> done, and its children are queued in the same transaction
       │                   ├───── Suppressed ────────> suppressed: not sent on purpose
       └── delayed <───────┤ Later; DeliveryError RETRY, FAILED
                           └ DeliveryError REFUSED, GONE, or too often, or too old ──> dead, until requeued by hand
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol, TypeAlias

from camserver.base.errors import CamError
from camserver.domain.facts import DeliveryKind
from camserver.domain.jobs import Breaker, Dead, Delay, ErrorKind, JobPolicy, backoff_ms
from camserver.domain.messages import Text
from camserver.domain.policy import setting

ERROR_MAX_CHARS: Final = 255
# A receiver that asks for a long pause gets it for that one delivery. All others to it wait no longer than this: what
# it asked about one message may not hold for the next.
LANE_RETRY_AFTER_MAX_SEC: Final = 60.0

JsonObject: TypeAlias = Mapping[str, Any]  # what JSON can hold


class DeliveryStatus(StrEnum):
    QUEUED = "queued"
    DELAYED = "delayed"  # waits for its available_at
    RUNNING = "running"  # locked by a dispatcher under a fence
    DONE = "done"
    DEAD = "dead"  # failed for good; a person may look at it and queue it again
    SKIPPED = "skipped"
    SUPPRESSED = "suppressed"  # not sent on purpose: a cooldown, quiet hours, a quota


class ReceiverKind(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    EMAIL = "email"
    MQTT = "mqtt"
    PUSH = "push"
    FOLDER = "folder"
    S3 = "s3"
    DRIVE = "drive"


ARCHIVES: Final = frozenset({ReceiverKind.FOLDER, ReceiverKind.S3, ReceiverKind.DRIVE})
# Each delivery to these takes a connection of its own or a large file in memory, and they count who is connected.
HEAVY: Final = ARCHIVES | {ReceiverKind.EMAIL}
# Those that people are told through.
TELLING: Final = frozenset(ReceiverKind) - ARCHIVES


@dataclass(frozen=True, slots=True)
class DeliveriesPolicy:
    """Attempts, back-off and bounds of deliveries."""

    max_attempt: int = setting(12, "Attempts after which a failing delivery is dead.", min=1, max=100)
    max_age_sec: int = setting(
        86_400, "How long a delivery is tried; an outage shorter than this loses nothing.", min=60, max=2_592_000
    )
    lock_sec: int = setting(60, "How long a claim holds without being renewed.", min=5, max=3600)
    renew_every_sec: int = setting(20, "How often a live dispatcher renews its claims.", min=1, max=1800)
    backoff_base_sec: float = setting(5.0, "Pause after the first failure; it doubles.", min=0.1, max=3600)
    backoff_cap_sec: float = setting(3600.0, "Longest pause between two attempts.", min=0.1, max=86_400)
    retry_after_cap_sec: float = setting(
        21_600.0, "Longest pause that a receiver's Retry-After is granted.", min=1, max=86_400
    )
    in_flight: int = setting(512, "Deliveries under way at once in a dispatcher.", min=1, max=1000)
    receiver_in_flight: int = setting(32, "Deliveries under way at once to one receiver.", min=1, max=100)
    heavy_in_flight: int = setting(
        4, "The same for receivers that each delivery costs more: archives and mail servers.", min=1, max=100
    )
    timeout_sec: float = setting(15.0, "Longest time that a receiver is waited for.", min=0.1, max=300)
    breaker_failures: int = setting(
        3, "Failures in a row to reach a receiver after which it is left alone for a while.", min=1, max=100
    )
    breaker_open_sec: float = setting(
        5.0, "How long it is left alone at first; it doubles while the receiver is away.", min=0.1, max=3600
    )
    breaker_open_cap_sec: float = setting(300.0, "Longest time between two trials.", min=0.1, max=3600)
    allow_loopback: bool = setting(
        False, "Whether receivers may be at addresses of this machine, such as a broker beside the server."
    )


class Trouble(StrEnum):
    """What an attempt that failed says about what to do."""

    RETRY = "retry"  # the receiver is away or busy, which says nothing about the delivery: no attempt is counted
    FAILED = "failed"  # counts towards max_attempt
    REFUSED = "refused"  # stays wrong however often it is tried: dead at once
    GONE = "gone"  # the receiver's own address is no more: dead at once


class DeliveryError(CamError):
    """An attempt that failed. `progress` is kept with the delivery for the next attempt (`Claimed.result`)."""

    code = "delivery_error"

    def __init__(
        self,
        kind: Trouble,
        message: str,
        retry_after_sec: float | None = None,
        *,
        progress: JsonObject | None = None,
        along: "tuple[Along, ...]" = (),
    ) -> None:
        # Messages quote receivers and are stored with the row; not every database takes every character.
        super().__init__("".join(char if char.isprintable() else " " for char in message))
        self.kind = kind
        self.retry_after_sec = retry_after_sec
        self.progress = progress
        self.along = along

    def __reduce__(self) -> tuple[object, ...]:
        return (DeliveryError, (self.kind, self.message, self.retry_after_sec))


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery under a fence, as its handler gets it."""

    delivery_id: int
    delivery_uuid: str
    token: str
    tenant_id: int
    site_id: int | None
    camera_key: int | None
    kind: DeliveryKind
    reason: str
    frame_id: int | None
    event_id: int | None
    incident_id: int | None
    receiver_id: int | None  # of a message or copy
    parent_id: int | None
    attempt: int  # from 1, this one included
    created_at: int
    request: JsonObject = field(default_factory=dict)  # what its maker added
    result: JsonObject = field(default_factory=dict)  # what earlier attempts left behind
    frame_uuid: str | None = None  # of the look it comes from
    # The receiver as it was when this was claimed; none when its tenant has no such receiver (any more).
    receiver_uuid: str | None = None
    receiver_updated_at: int = 0


@dataclass(frozen=True, slots=True)
class Along:
    """A store operation that is written in the transaction which ends the attempt, and only under its fence.

    `operation(tx, *args)`: as every store operation a function of a module, with arguments that can be pickled.
    """

    operation: Callable[..., Awaitable[object]]
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """It arrived. `result` is kept with the delivery: external ids, HTTP status. Never a secret."""

    result: JsonObject = field(default_factory=dict)
    along: tuple[Along, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A delivery that another one fans out into. Whatever it is about, it has from its parent."""

    kind: DeliveryKind
    receiver_id: int | None
    request: JsonObject = field(default_factory=dict)
    available_at: int | None = None  # None: at once
    once_key: str | None = None  # None: made from the parent and the receiver, so that a repeat adds nothing

    def key(self, parent_uuid: str) -> str:
        return self.once_key or f"{parent_uuid}:{self.kind.value}:{self.receiver_id or 0}"


@dataclass(frozen=True, slots=True)
class FanOut:
    """It is done by others, which are queued in the same transaction. None is fine: nobody wants it."""

    children: tuple[Child, ...] = ()
    result: JsonObject = field(default_factory=dict)
    along: tuple[Along, ...] = ()


@dataclass(frozen=True, slots=True)
class Suppressed:
    """It is not sent, on purpose."""

    reason: str
    along: tuple[Along, ...] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """Not now, by nobody's fault: it is delayed until then. No attempt is counted, and it says nothing about its
    receiver."""

    at_ms: int
    reason: str
    along: tuple[Along, ...] = ()


Ending: TypeAlias = Done | FanOut | Suppressed | Later
Handler: TypeAlias = Callable[[Claimed], Awaitable[Ending]]


class Hidden(Protocol):
    """A secret in memory, such as base.secrets.Secret: it shows itself to nobody else."""

    def reveal(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Receiver:
    """A configured place, with its secrets opened. Lives in memory only."""

    receiver_id: int
    receiver_uuid: str
    tenant_id: int
    name: str
    kind: ReceiverKind
    config: JsonObject  # as checked by its model in wire/api/receivers.py
    language: str = "ja"
    hourly_cap: int | None = None
    enabled: bool = True
    secrets: Mapping[str, Hidden] = field(default_factory=dict)
    updated_at: int = 0  # grows with every change of it


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message for one receiver, ready to be sent."""

    delivery_uuid: str  # the same in every attempt; the receiver can drop a repeat by it
    text: Text  # for people
    body: JsonObject  # the same as data, for programs
    tag: str = ""  # messages with the same tag are about the same thing, so a newer one may replace an older one
    picture: bytes | None = None  # a small JPEG
    attempt: int = 1
    progress: JsonObject = field(default_factory=dict)  # what earlier attempts left behind, see DeliveryError
    tenant_id: int = 0
    site_id: int | None = None
    camera_key: int | None = None
    translations: Mapping[str, Text] = field(default_factory=dict)  # by language, where people choose their own


class Sender(Protocol):
    """Sends messages to receivers of one kind. Raises DeliveryError and nothing else that is expected."""

    async def send(self, receiver: Receiver, outgoing: Outgoing) -> Done | Suppressed:
        """Suppressed: there is nobody behind the receiver who could be told."""

    async def close(self) -> None: ...


# ---------------------------------------------------------------------------------------------------------------
# Rules
# ---------------------------------------------------------------------------------------------------------------


def trouble_of_status(status: int) -> Trouble:
    """What an HTTP status that is no success says."""
    if status in (408, 425, 429, 502, 503):
        return Trouble.RETRY
    if status == 410:
        return Trouble.GONE
    if status in (400, 413, 415, 422):
        return Trouble.REFUSED
    # A wrong path or password may be mended within the attempts that are left; so may a broken receiver.
    return Trouble.FAILED


def after_trouble(
    kind: Trouble,
    *,
    attempt: int,
    created_at: int,
    now_ms: int,
    policy: DeliveriesPolicy,
    jitter: float,
    retry_after_sec: float | None = None,
) -> Delay | Dead:
    """What becomes of a delivery after a failed attempt, which `attempt` includes; `jitter` is random, 0..1."""
    if kind in (Trouble.REFUSED, Trouble.GONE):
        return Dead(kind.value)
    if now_ms - created_at > policy.max_age_sec * 1000:
        return Dead(f"tried for {policy.max_age_sec} s")
    refund = kind is Trouble.RETRY
    if not refund and attempt >= policy.max_attempt:
        return Dead(f"{kind.value} in attempt {attempt} of {policy.max_attempt}")
    pause_ms = backoff_ms(attempt, jitter, policy.backoff_base_sec, policy.backoff_cap_sec)
    if retry_after_sec is not None and math.isfinite(retry_after_sec) and retry_after_sec >= 0:
        pause_ms = round(min(retry_after_sec, policy.retry_after_cap_sec) * 1000)
    return Delay(available_at=now_ms + pause_ms, refund=refund)


def most_in_flight(kind: ReceiverKind | None, policy: DeliveriesPolicy) -> int:
    """How many deliveries may be under way at once to a receiver of that kind."""
    return policy.heavy_in_flight if kind in HEAVY else policy.receiver_in_flight


def new_breaker(policy: DeliveriesPolicy, in_flight: int) -> Breaker:
    """For one receiver: the circuit breaker of domain.jobs, with the bounds of deliveries."""
    return Breaker.new(
        JobPolicy(
            batch=in_flight,
            retry_after_cap_sec=min(policy.retry_after_cap_sec, LANE_RETRY_AFTER_MAX_SEC),
            breaker_failures=policy.breaker_failures,
            breaker_open_sec=policy.breaker_open_sec,
            breaker_open_cap_sec=policy.breaker_open_cap_sec,
            breaker_probe_sec=max(30.0, 2 * policy.timeout_sec),
        )
    )


def breaker_after(breaker: Breaker, error: DeliveryError, now_ms: int, jitter: float) -> Breaker:
    """What a failed attempt says about its receiver."""
    if error.kind is Trouble.RETRY:
        # One that says when to come back is there, and busy.
        kind = ErrorKind.UNAVAILABLE if error.retry_after_sec is None else ErrorKind.OVERLOADED
        return breaker.failed(kind, now_ms, jitter, error.retry_after_sec)
    if error.kind is Trouble.FAILED:
        return breaker.failed(ErrorKind.SERVER_ERROR, now_ms, jitter, error.retry_after_sec)
    return breaker.succeeded()  # it answered in good order
