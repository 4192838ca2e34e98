"""Who may watch live: a streamer's budget, the order of checks, the life of a viewing, the load guard.

Rules only (decisions 30-33). A streamer's budget is the machine's units less what is reserved for looks and for the
suggested camera. What viewings use together never exceeds it, whoever asks at the same time, because the store asks
`decide` under the streamer's lock. Looks and suggestions come first: an overload refuses modal viewings only.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from camserver.base.errors import CamError, Conflict, Unavailable
from camserver.domain.people import Principal
from camserver.domain.policy import setting

# Streamers report every 5 s; one that did not for so long is away.
REPORT_EVERY_SEC = 5
AWAY_AFTER_MS = 15_000
METRICS_EVERY_MS = 60_000
METRICS_KEPT_MS = 24 * 3_600_000
METRICS_PRUNED_EVERY_MS = 3_600_000
# When somebody who was refused may find room: the next round of the cleanup, or the end of an overload.
RETRY_AFTER_SEC = 10
# What a browser plays that says nothing of it.
PLAYS = frozenset({"h264"})


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """The budget of live views, their life, and the load at which none is admitted."""

    total_stream_units: int = setting(50, "Stream units this machine can carry.", min=1, max=100_000)
    max_ui_users: int = setting(
        10, "Users of the pages at one time that a suggestion is reserved for.", min=0, max=10_000
    )
    reserved_baseline_units: int = setting(5, "Units kept for looks and other steady work.", min=0, max=100_000)
    sub_stream_cost: int = setting(1, "Units of a sub stream.", min=1, max=1000)
    main_stream_cost: int = setting(2, "Units of a main stream.", min=1, max=1000)
    transcode_cost: int = setting(
        4, "Units of a stream that is transcoded, for instance under a mask.", min=1, max=1000
    )
    modal_ttl_sec: int = setting(300, "Longest time a live view stays open.", min=10, max=86_400)
    heartbeat_interval_sec: int = setting(30, "How often a live view says that it is still watched.", min=1, max=3600)
    heartbeat_grace_sec: int = setting(45, "A live view silent for longer than this ends.", min=1, max=3600)
    cleanup_interval_sec: int = setting(10, "How often ended live views are cleared away.", min=1, max=3600)
    cpu_warn_percent: float = setting(70.0, "CPU load shown as a warning.", min=1, max=100)
    cpu_reject_percent: float = setting(85.0, "CPU load above which no live view is admitted.", min=1, max=100)
    cpu_recover_percent: float = setting(60.0, "CPU load below which they are admitted again.", min=0, max=100)
    memory_warn_percent: float = setting(75.0, "Memory use shown as a warning.", min=1, max=100)
    memory_reject_percent: float = setting(90.0, "Memory use above which no live view is admitted.", min=1, max=100)
    memory_recover_percent: float = setting(70.0, "Memory use below which they are admitted again.", min=0, max=100)
    swap_warn_mb: int = setting(50, "Growth of swap since the start shown as a warning.", min=0, max=1_000_000)
    swap_reject_mb: int = setting(100, "Growth of swap above which no live view is admitted.", min=0, max=1_000_000)
    swap_recover_mb: int = setting(50, "Growth of swap below which they are admitted again.", min=0, max=1_000_000)
    overload_hold_sec: int = setting(60, "How long after an overload nothing is admitted.", min=0, max=3600)

    def of_units(self, total_units: int) -> "AdmissionPolicy":
        """The same on a machine that carries so many."""
        return replace(self, total_stream_units=total_units)

    def suggest_reserve(self) -> int:
        """Units kept for the suggested camera: one sub stream for every user at worst."""
        return self.max_ui_users * self.sub_stream_cost

    def modal_budget(self) -> int:
        """Units that live views may use together; never negative."""
        return max(0, self.total_stream_units - self.reserved_baseline_units - self.suggest_reserve())


class Quality(StrEnum):
    SUB = "sub"
    MAIN = "main"


class Kind(StrEnum):
    """What a viewing is for, and so out of which part of the budget it is paid."""

    MODAL = "modal"
    SUGGEST = "suggest"  # somebody sees the suggested camera
    PREWARM = "prewarm"  # nobody does yet: the stream is opened, so that it is there when they do


class Note(StrEnum):
    """Why what is shown is not what was asked for; the viewer is told."""

    NONE = ""
    NO_MAIN_STREAM = "no_main_stream"
    NO_SUB_STREAM = "no_sub_stream"
    LOWERED_NO_BUDGET = "lowered_no_budget"
    OTHER_CODEC = "other_codec"  # the stream asked for has a codec that this browser does not play
    TRANSCODED_CODEC = "transcoded_codec"
    TRANSCODED_MASK = "transcoded_mask"


# ---------------------------------------------------------------------------------------------------------------
# Refusals, by the seed's codes
# ---------------------------------------------------------------------------------------------------------------


class SystemOverload(Unavailable):
    code = "SYSTEM_OVERLOAD"


class UserAlreadyHasModal(Conflict):
    code = "USER_ALREADY_HAS_MODAL"


class OverCapacity(Unavailable):
    code = "OVER_CAPACITY"


class NoStreamer(Unavailable):
    code = "NO_STREAMER"


class CameraOff(Conflict):
    code = "CAMERA_OFF"


class NotSuggested(Conflict):
    code = "NOT_SUGGESTED"


class Refusal(StrEnum):
    SYSTEM_OVERLOAD = "SYSTEM_OVERLOAD"
    USER_ALREADY_HAS_MODAL = "USER_ALREADY_HAS_MODAL"
    OVER_CAPACITY = "OVER_CAPACITY"
    NO_STREAMER = "NO_STREAMER"
    CAMERA_OFF = "CAMERA_OFF"
    NOT_SUGGESTED = "NOT_SUGGESTED"


_REFUSALS: Mapping[Refusal, tuple[type[CamError], str]] = {
    Refusal.SYSTEM_OVERLOAD: (SystemOverload, "the server is under high load; please try again after a while"),
    Refusal.USER_ALREADY_HAS_MODAL: (
        UserAlreadyHasModal,
        "you are watching another camera already; close that view first",
    ),
    Refusal.OVER_CAPACITY: (
        OverCapacity,
        "many people are watching and the limit of streams is reached; please try again after a while",
    ),
    Refusal.NO_STREAMER: (NoStreamer, "live view is not running at the moment; please try again after a while"),
    Refusal.CAMERA_OFF: (CameraOff, "this camera is switched off, so it can't be watched"),
    Refusal.NOT_SUGGESTED: (NotSuggested, "this camera is not the suggested one any more"),
}


def refused(refusal: Refusal, **details: object) -> CamError:
    """The error by which a request is refused; its code is the seed's."""
    kind, message = _REFUSALS[refusal]
    return kind(message, reason=refusal.value, **details)


# ---------------------------------------------------------------------------------------------------------------
# The load guard
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Load:
    """Of a streamer's machine: CPU without low-priority processes, memory not available, growth of swap."""

    cpu_percent: float
    memory_percent: float
    swap_mb: float


@dataclass(frozen=True, slots=True)
class Guard:
    overloaded: bool = False
    overload_at: int | None = None  # the last report above a bound


def judged(guard: Guard, load: Load, now_ms: int, policy: AdmissionPolicy) -> Guard:
    """The guard after a report. It comes back later than it tripped, so that it does not flap."""
    if (
        load.cpu_percent > policy.cpu_reject_percent
        or load.memory_percent > policy.memory_reject_percent
        or load.swap_mb > policy.swap_reject_mb
    ):
        return Guard(True, now_ms)
    if not guard.overloaded:
        return guard
    rested = guard.overload_at is None or now_ms - guard.overload_at > policy.overload_hold_sec * 1000
    low = (
        load.cpu_percent < policy.cpu_recover_percent
        and load.memory_percent < policy.memory_recover_percent
        and load.swap_mb < policy.swap_recover_mb
    )
    return replace(guard, overloaded=not (rested and low))


def warnings(load: Load, policy: AdmissionPolicy) -> tuple[str, ...]:
    """What is high, for people to see; it refuses nothing."""
    high = (
        ("cpu", load.cpu_percent > policy.cpu_warn_percent),
        ("memory", load.memory_percent > policy.memory_warn_percent),
        ("swap", load.swap_mb > policy.swap_warn_mb),
    )
    return tuple(name for name, is_high in high if is_high)


def is_available(reported_at: int | None, now_ms: int) -> bool:
    """Whether a streamer can be given viewings, by its last report."""
    return reported_at is not None and now_ms - reported_at <= AWAY_AFTER_MS


# ---------------------------------------------------------------------------------------------------------------
# The life of a viewing
# ---------------------------------------------------------------------------------------------------------------


def viewer_of(principal: Principal) -> str:
    """Who watches: the login, not the person (decision 33)."""
    if principal.session_id is not None:
        return f"session:{principal.session_id}"
    return "local" if principal.token_id is None else f"token:{principal.token_id}"


def expires_at(created_at: int, policy: AdmissionPolicy) -> int:
    return created_at + policy.modal_ttl_sec * 1000


def valid_until(expires_at: int, last_heartbeat: int, policy: AdmissionPolicy) -> int:
    """Through which moment a viewing is valid: its time is not over, and its heartbeat's grace is not."""
    return min(expires_at, last_heartbeat + policy.heartbeat_grace_sec * 1000)


def why_over(expires_at: int, now_ms: int) -> str:
    return "ttl" if now_ms > expires_at else "heartbeat"


# ---------------------------------------------------------------------------------------------------------------
# What a camera can be watched in, and what that costs
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CameraStreams:
    """What of a camera can be watched. A codec is None while nobody has probed the stream."""

    has_main: bool
    has_sub: bool
    main_codec: str | None = None
    sub_codec: str | None = None
    is_masked: bool = False  # a privacy mask: nothing leaves the worker as the camera sent it

    def has(self, quality: Quality) -> bool:
        return self.has_main if quality is Quality.MAIN else self.has_sub

    def plays_as_it_is(self, quality: Quality, plays: Collection[str]) -> bool:
        codec = self.main_codec if quality is Quality.MAIN else self.sub_codec
        return codec is None or codec in plays


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to show a camera."""

    quality: Quality
    units: int
    transcode_units: int = 0  # on top, once for all who watch the same
    transcode: bool = False
    note: Note = Note.NONE


def offers(
    camera: CameraStreams, asked: Quality, plays: Collection[str], policy: AdmissionPolicy
) -> tuple[Offer, ...]:
    """Ways to show a camera to somebody who asked for a quality, the best first; none when it has no stream.

    As the camera sends it, if need be in the other quality, before a transcode, which costs quality and units.
    """
    other = Quality.SUB if asked is Quality.MAIN else Quality.MAIN
    qualities = [quality for quality in (asked, other) if camera.has(quality)]
    transcoded = [_transcoded(camera, quality, policy) for quality in qualities]
    if camera.is_masked:
        return tuple(transcoded)
    plain = [
        Offer(quality, _units(quality, policy), note=_note(camera, asked, quality, plays))
        for quality in qualities
        if camera.plays_as_it_is(quality, plays)
    ]
    # Whoever asked for the small picture gets the large one only where there is no small one to show.
    if plain and asked is Quality.SUB:
        return (plain[0],)
    return tuple(plain) or tuple(transcoded)


def _units(quality: Quality, policy: AdmissionPolicy) -> int:
    return policy.main_stream_cost if quality is Quality.MAIN else policy.sub_stream_cost


def _transcoded(camera: CameraStreams, quality: Quality, policy: AdmissionPolicy) -> Offer:
    units = _units(quality, policy)
    note = Note.TRANSCODED_MASK if camera.is_masked else Note.TRANSCODED_CODEC
    return Offer(quality, units, max(0, policy.transcode_cost - units), True, note)


def _note(camera: CameraStreams, asked: Quality, offered: Quality, plays: Collection[str]) -> Note:
    if offered is asked:
        return Note.NONE
    if not camera.has(asked):
        return Note.NO_MAIN_STREAM if asked is Quality.MAIN else Note.NO_SUB_STREAM
    return Note.LOWERED_NO_BUDGET if camera.plays_as_it_is(asked, plays) else Note.OTHER_CODEC


# ---------------------------------------------------------------------------------------------------------------
# The decision
# ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Held:
    """Valid viewings of one kind, camera and quality on a streamer, taken together."""

    kind: Kind
    camera_key: int
    quality: Quality
    units: int
    transcode_units: int = 0


_PAID_FROM_RESERVE = frozenset({Kind.SUGGEST, Kind.PREWARM})


def budget_of(kind: Kind, policy: AdmissionPolicy) -> int:
    return policy.suggest_reserve() if kind in _PAID_FROM_RESERVE else policy.modal_budget()


def used(held: Iterable[Held], kind: Kind) -> int:
    """Units in use in the part of the budget that viewings of a kind are paid from."""
    same = [one for one in held if (one.kind in _PAID_FROM_RESERVE) == (kind in _PAID_FROM_RESERVE)]
    transcodes: dict[tuple[int, Quality], int] = {}
    for one in same:
        stream = (one.camera_key, one.quality)
        transcodes[stream] = max(transcodes.get(stream, 0), one.transcode_units)
    return sum(one.units for one in same) + sum(transcodes.values())


def costs(held: Iterable[Held]) -> list[int]:
    """What each of these viewings takes, the longest there first: who watches a transcode first pays for it."""
    paid: dict[tuple[bool, int, Quality], int] = {}
    found = []
    for one in held:
        stream = (one.kind in _PAID_FROM_RESERVE, one.camera_key, one.quality)
        before = paid.get(stream, 0)
        paid[stream] = max(before, one.transcode_units)
        found.append(one.units + paid[stream] - before)
    return found


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to watch, and the ways it could be shown to them, the best first."""

    camera_key: int
    kind: Kind
    offers: tuple[Offer, ...]
    has_one_already: bool = False  # a valid viewing of this kind in the same login


@dataclass(frozen=True, slots=True)
class Refused:
    refusal: Refusal
    units_used: int = 0
    units_budget: int = 0


def decide(asked: Asked, guard: Guard, held: Collection[Held], policy: AdmissionPolicy) -> Offer | Refused:
    """Whether a viewing is admitted and how, in the seed's order: overload, the user's own viewing, the budget."""
    if guard.overloaded and asked.kind is Kind.MODAL:
        return Refused(Refusal.SYSTEM_OVERLOAD)
    if asked.has_one_already:
        return Refused(Refusal.USER_ALREADY_HAS_MODAL)
    if not asked.offers:
        return Refused(Refusal.CAMERA_OFF)
    budget = budget_of(asked.kind, policy)
    before = used(held, asked.kind)
    for offer in asked.offers:
        one_more = Held(asked.kind, asked.camera_key, offer.quality, offer.units, offer.transcode_units)
        if used([*held, one_more], asked.kind) <= budget:
            return offer
    return Refused(Refusal.OVER_CAPACITY, before, budget)


def bears_transcode(held: Collection[Held], camera_key: int, quality: Quality, policy: AdmissionPolicy) -> int | None:
    """The units that transcoding a stream adds which is watched already; None when there is no room for them."""
    extra = max(0, policy.transcode_cost - _units(quality, policy))
    dearer = [
        replace(one, transcode_units=max(one.transcode_units, extra))
        if (one.camera_key, one.quality) == (camera_key, quality)
        else one
        for one in held
    ]
    fits = all(used(dearer, kind) <= budget_of(kind, policy) for kind in (Kind.MODAL, Kind.SUGGEST))
    return extra if fits else None
