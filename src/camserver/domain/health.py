"""Whether a camera works, as one rule with numbers (decisions 4); and what people are told about it.

`take_in` folds one look after another into a `Memory`; `pass_time` does what time alone does. Both are pure, and the
memory is the server's, so neither a worker's nor a server's restart changes anything. Whoever applies the rule opens
an event for each issue that is `told` and closes it when it is no more: never one a look.

A camera is down after a few failed looks in a row, after one that found its open connection silent, or when looks
have failed for long; so is one whose worker is there and sends no looks (`no_looks`). It is told when it was down for
a while, and back after a few good looks. A camera that nobody looks at is not down but unattended: of what it shows
nothing is known, so nothing begins and nothing ends. That itself is an issue when it lasts, and over as soon as a
worker has the camera again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from camserver.base.records import fields_of, record
from camserver.domain.looks import LookPolicy
from camserver.domain.sight import HealthPolicy, Picture, Sight, look_at
from camserver.domain.suspicions import Suspicion, denied, held, shown, told_when_due

# The error code of a look whose open connection gave no packet for `down_after_silence_sec`.
STALLED = "stalled"
# Sources whose pictures come from a camera; the others may stand still for ever and be well.
LIVE_SOURCES = frozenset({"rtsp", "http", "webcam"})
CAMERA_ISSUE = "camera_issue"  # the primary event of all issues
# After people changed a camera, looks made before its worker heard of it may still come.
CHANGE_SETTLES_MS = 30_000
# The cause of a camera that a worker holds and no looks come from.
NO_LOOKS = "no_looks"
# Looks that are missed by more than this when it is found out were missed by the server, which was away itself.
MISSED_MS_MAX = 60_000


class Issue(StrEnum):
    """What may be wrong with a camera; the subject of its event."""

    OFFLINE = "offline"
    UNATTENDED = "unattended"
    COVERED = "covered"
    MOVED = "moved"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class IssueKind:
    tag_id: str
    severity: int


ISSUES: Mapping[Issue, IssueKind] = {
    Issue.OFFLINE: IssueKind("camera.offline", 3),
    Issue.UNATTENDED: IssueKind("camera.unattended", 3),
    Issue.COVERED: IssueKind("camera.occluded", 2),
    Issue.MOVED: IssueKind("camera.moved", 2),
    Issue.FROZEN: IssueKind("camera.frozen", 2),
}


class Standing(StrEnum):
    """Whether anybody looks at the camera."""

    ATTENDED = "attended"
    UNATTENDED = "unattended"  # it should be looked at, and no worker does
    OFF = "off"  # people switched it off, or want it not to be processed


@dataclass(frozen=True, slots=True)
class CameraFacts:
    """What the rule has to know about a camera besides its looks."""

    standing: Standing
    interval_ms: int
    is_live: bool


@record
class Look:
    """A look as this rule sees it. `cause` is '' for a good one and the error code of a failed one."""

    frame_id: int
    captured_at: int
    cause: str = ""
    has_picture: bool = False
    hash_hex: str | None = None
    structure: float | None = None
    view_hex: str | None = None


@record
class Memory:
    last_at: int | None = None  # captured_at of the newest look
    cause: str = ""  # why looks fail, as long as they do
    picture_frame_id: int | None = None  # the newest look with a picture
    offline: Suspicion | None = None
    attended_at: int | None = None  # since when a worker has it, or when looks last came
    unattended: Suspicion | None = None
    sight: Sight = field(default_factory=Sight)
    view_key: str | None = None  # names where it stands: its address, masks and rotation
    sight_from: int = 0  # pictures from before say nothing


@dataclass(frozen=True, slots=True)
class Policies:
    health: HealthPolicy = field(default_factory=HealthPolicy)
    looks: LookPolicy = field(default_factory=LookPolicy)


class State(StrEnum):
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Status:
    """What is shown of a camera. `cause` is an error code, or why nothing is known."""

    state: State
    cause: str
    since: int | None  # of being down; of other states the time they were found out


def take_in(memory: Memory, look: Look, camera: CameraFacts, policies: Policies) -> Memory:
    """After one more look. One that comes behind a newer one changes nothing."""
    if memory.last_at is not None and look.captured_at < memory.last_at:
        return memory
    memory = replace(memory, last_at=look.captured_at)
    if look.cause:
        # It says nothing about what the camera would show.
        suspicion = shown(memory.offline, look.captured_at, look.frame_id)
        if look.cause == STALLED or suspicion.looks >= policies.looks.down_after_looks:
            suspicion = held(suspicion, look.captured_at)
        return replace(memory, offline=suspicion, cause=look.cause)
    offline = denied(memory.offline, policies.looks.up_after_looks)
    return replace(
        memory,
        offline=offline,
        cause=memory.cause if offline else "",
        picture_frame_id=look.frame_id if look.has_picture else memory.picture_frame_id,
        sight=_seen(memory, look, camera, policies),
    )


def _seen(memory: Memory, look: Look, camera: CameraFacts, policies: Policies) -> Sight:
    if look.captured_at < memory.sight_from:
        return memory.sight
    picture = Picture(look.captured_at, look.frame_id, look.hash_hex, look.structure, look.view_hex)
    over_after_looks = policies.looks.up_after_looks
    return look_at(memory.sight, picture, camera.is_live, camera.interval_ms, over_after_looks, policies.health)


def follow_change(memory: Memory, view_key: str, now_ms: int) -> Memory:
    """After people changed a camera's address, masks or rotation: its view is learned anew, and what was wrong with
    the old one is over. Another name or interval changes nothing of what it shows."""
    if memory.view_key == view_key:
        return memory
    if memory.view_key is None:
        return replace(memory, view_key=view_key)
    return replace(memory, view_key=view_key, sight=Sight(), sight_from=now_ms + CHANGE_SETTLES_MS)


def pass_time(memory: Memory, camera: CameraFacts, policies: Policies, now_ms: int) -> Memory:
    """What is so at this moment; asked again at `due_at`, or sooner."""
    if camera.standing is Standing.OFF:
        sight = _unsuspicious(memory.sight)
        return replace(memory, offline=None, cause="", attended_at=None, unattended=None, sight=sight)
    if camera.standing is Standing.UNATTENDED:
        return replace(memory, attended_at=None, unattended=_unattended(memory, policies, now_ms))
    memory = _without_looks(memory, camera, policies, now_ms)
    offline = memory.offline
    if offline is not None:
        if now_ms - offline.since >= _failing_ms(camera, policies):
            offline = held(offline, now_ms)
        offline = told_when_due(offline, policies.looks.down_report_after_sec * 1000, now_ms)
    sight = memory.sight
    return replace(
        memory,
        offline=offline,
        sight=replace(
            sight,
            covered=_told_now(sight.covered, now_ms),
            moved=_told_now(sight.moved, now_ms),
            frozen=_told_now(sight.frozen, now_ms),
        ),
    )


def _unattended(memory: Memory, policies: Policies, now_ms: int) -> Suspicion | None:
    """That nobody looks. Of a camera that people know to be offline it is no further news."""
    if memory.offline is not None and memory.offline.told:
        return memory.unattended
    frame_id = memory.picture_frame_id or 0
    since = memory.unattended or Suspicion(now_ms, now_ms, frame_id, looks=0, held_at=now_ms)
    return told_when_due(since, policies.health.unattended_told_after_sec * 1000, now_ms)


def _without_looks(memory: Memory, camera: CameraFacts, policies: Policies, now_ms: int) -> Memory:
    """A worker has the camera; whether its looks have stopped coming."""
    memory = replace(memory, unattended=None)
    if memory.attended_at is None:
        return replace(memory, attended_at=now_ms)
    missed_ms = now_ms - _looks_end(memory, camera, policies)
    if memory.offline is not None or missed_ms < 0:
        return memory
    if missed_ms > MISSED_MS_MAX:
        return replace(memory, attended_at=now_ms)
    since = max(memory.last_at or 0, memory.attended_at)
    suspicion = Suspicion(since, since, memory.picture_frame_id or 0, looks=0, held_at=now_ms)
    return replace(memory, offline=suspicion, cause=NO_LOOKS)


def _looks_end(memory: Memory, camera: CameraFacts, policies: Policies) -> int:
    """Until when a look must have come."""
    return max(memory.last_at or 0, memory.attended_at or 0) + _failing_ms(camera, policies)


def due_at(memory: Memory, camera: CameraFacts, policies: Policies) -> int | None:
    """When time alone changes something next, if no look comes before; None: never."""
    if camera.standing is Standing.UNATTENDED:
        nobody = memory.unattended
        if nobody is None or nobody.told or nobody.held_at is None:
            return None
        return nobody.held_at + policies.health.unattended_told_after_sec * 1000
    offline = memory.offline
    if camera.standing is Standing.OFF or (offline is not None and offline.told):
        return None
    if offline is None:
        return _looks_end(memory, camera, policies)
    if offline.held_at is None:
        return offline.since + _failing_ms(camera, policies)
    return offline.held_at + policies.looks.down_report_after_sec * 1000


def told(memory: Memory) -> dict[Issue, Suspicion]:
    """The issues people are to know of now."""
    sight = memory.sight
    found = (
        (Issue.OFFLINE, memory.offline),
        (Issue.UNATTENDED, memory.unattended),
        (Issue.COVERED, sight.covered),
        (Issue.MOVED, sight.moved),
        (Issue.FROZEN, sight.frozen),
    )
    return {issue: suspicion for issue, suspicion in found if suspicion is not None and suspicion.told}


def status(memory: Memory, standing: Standing, now_ms: int) -> Status:
    if standing is not Standing.ATTENDED:
        return Status(State.UNKNOWN, standing.value, now_ms)
    if memory.offline is not None and memory.offline.held_at is not None:
        return Status(State.DOWN, memory.cause, memory.offline.since)
    if memory.last_at is None:
        return Status(State.UNKNOWN, "", now_ms)
    return Status(State.UP, memory.cause, now_ms)


def to_plain(memory: Memory) -> dict[str, Any]:
    """The memory as JSON holds it. Not by `asdict`, which copies deeply and would be the dearest step of a look."""
    plain = fields_of(memory)
    sight = plain["sight"] = fields_of(memory.sight)
    for holder, names in ((plain, ("offline", "unattended")), (sight, ("covered", "moved", "frozen"))):
        for name in names:
            if holder[name] is not None:
                holder[name] = fields_of(holder[name])
    return plain


def from_plain(plain: Mapping[str, Any] | None) -> Memory:
    """What `to_plain` gave. A memory of another version that does not fit is begun anew."""
    try:
        values = dict(plain or {})
        values.pop("configured_at", None)  # of the version before
        sight = dict(values.pop("sight", {}))
        for name in ("covered", "moved", "frozen"):
            sight[name] = _suspicion(sight.get(name))
        sight["views"] = tuple(sight.get("views", ()))
        offline, unattended = (_suspicion(values.pop(name, None)) for name in ("offline", "unattended"))
        return Memory(**values, offline=offline, unattended=unattended, sight=Sight(**sight))
    except (TypeError, ValueError):
        return Memory()


def seems_covered(plain: Mapping[str, Any] | None) -> bool:
    """Whether the memory that `to_plain` gave suspects a covered camera; a claim asks this of every job."""
    sight = (plain or {}).get("sight")
    return isinstance(sight, Mapping) and sight.get("covered") is not None


def _suspicion(plain: Mapping[str, Any] | None) -> Suspicion | None:
    return None if plain is None else Suspicion(**plain)


def _failing_ms(camera: CameraFacts, policies: Policies) -> int:
    return max(policies.health.failing_sec * 1000, policies.looks.down_after_looks * camera.interval_ms)


def _told_now(suspicion: Suspicion | None, now_ms: int) -> Suspicion | None:
    return None if suspicion is None else told_when_due(suspicion, 0, now_ms)


def _unsuspicious(sight: Sight) -> Sight:
    return replace(sight, covered=None, moved=None, frozen=None, other_view="")
