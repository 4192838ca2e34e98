"""Which MQTT topics an installation has, and what its cameras' states say there. Publishing is elsewhere.

    camserver/3f9c21ab/availability            online, offline (last will)
    camserver/3f9c21ab/notices                 JSON, messages that belong to no camera; not retained
    camserver/3f9c21ab/cam_2f_19/availability  online while the camera sees something
    camserver/3f9c21ab/cam_2f_19/state         JSON, see `state`
    camserver/3f9c21ab/cam_2f_19/image         JPEG of the newest event
    camserver/3f9c21ab/cam_2f_19/events        JSON, one a message; not retained

Everything else is retained, so that whoever comes later knows how things stand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from camserver.base.errors import BadInput

ONLINE = "online"
OFFLINE = "offline"
# MQTT allows 65,535 bytes; brokers and people like less.
PREFIX_MAX_CHARS = 128
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~-")
_PREFIX = re.compile(r"[A-Za-z0-9_.~-]+(?:/[A-Za-z0-9_.~-]+)*")
# Which primary event makes which binary sensor "on".
SENSED: Mapping[str, str] = {"person": "human", "vehicle": "vehicle", "animal": "animal"}


@dataclass(frozen=True, slots=True)
class LastEvent:
    event_uuid: str
    primary_event: str
    severity: int
    start_at: int
    last_seen_at: int
    open: bool


@dataclass(frozen=True, slots=True)
class Picture:
    """What the object of a picture is found by."""

    epoch_id: int
    captured_at: int
    frame_uuid: str


@dataclass(frozen=True, slots=True)
class Standing:
    """How a camera stands at a moment."""

    camera_key: int
    camera_id: str
    name: str
    site: str
    health: str  # up, down, unknown, unattended, off
    cause: str
    issues: tuple[str, ...]
    last_look_at: int | None
    open_event: str | None  # the primary event of what goes on now
    open_severity: int
    last_event: LastEvent | None
    picture: Picture | None  # of the newest event that has one and may be shown


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics below one prefix. `installation` tells two of them on one broker apart."""

    prefix: str
    installation: str

    @property
    def root(self) -> str:
        return f"{self.prefix}/{level(self.installation)}"

    @property
    def availability(self) -> str:
        return f"{self.root}/availability"

    @property
    def notices(self) -> str:
        """Messages that belong to no camera: trials and summaries."""
        return f"{self.root}/notices"

    @property
    def every_camera(self) -> str:
        """A filter for what says of every camera, also of removed ones, that it was published."""
        return f"{self.root}/+/availability"

    def camera(self, camera_id: str) -> "CameraTopics":
        return CameraTopics(f"{self.root}/{level(camera_id)}")

    def camera_level(self, topic: str) -> str | None:
        """The camera's part of a topic that `every_camera` matched."""
        parts = topic.removeprefix(f"{self.root}/").split("/")
        return parts[0] if topic.startswith(f"{self.root}/") and parts[1:] == ["availability"] else None


@dataclass(frozen=True, slots=True)
class CameraTopics:
    root: str

    @property
    def availability(self) -> str:
        return f"{self.root}/availability"

    @property
    def state(self) -> str:
        return f"{self.root}/state"

    @property
    def image(self) -> str:
        return f"{self.root}/image"

    @property
    def events(self) -> str:
        return f"{self.root}/events"

    @property
    def retained(self) -> tuple[str, ...]:
        """What is to be emptied when the camera is gone. The mark by which it is found again goes last."""
        return (self.state, self.image, self.availability)


def level(name: str) -> str:
    """A name as one level of a topic: what separates levels, and wildcards, are written as %xx."""
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02X}" for byte in name.encode())


def check_prefix(prefix: str) -> str:
    """The prefix of topics, without slashes at its ends; BadInput when it can't be one."""
    stripped = prefix.strip("/")
    if len(stripped) > PREFIX_MAX_CHARS or _PREFIX.fullmatch(stripped) is None:
        raise BadInput(
            f"the MQTT topic prefix must be letters, digits and _ . ~ - in levels parted by /, at most "
            f"{PREFIX_MAX_CHARS} characters; choose one like camserver or home/cameras",
            reason="mqtt_prefix",
        )
    return stripped


def installation_of(tenant_uuid: str) -> str:
    """Short, and different on every installation: the random end of its tenant's id."""
    return tenant_uuid.replace("-", "")[-8:]


def is_seen(standing: Standing) -> bool:
    """Whether "nobody there" means so: a camera that is down can't tell."""
    return standing.health == "up"


def state(standing: Standing, now_ms: int) -> dict[str, object]:
    """What the state topic says. Times are UTC; ages are of the moment it is published."""
    last = standing.last_event
    look_at = standing.last_look_at
    return {
        "health": standing.health,
        "cause": standing.cause or None,
        "issues": list(standing.issues),
        "problem": _on(standing.health == "down" or bool(standing.issues)),
        **{sensor: _on(standing.open_event == event) for sensor, event in SENSED.items()},
        "severity": standing.open_severity,
        "last_event": None
        if last is None
        else {
            "event_uuid": last.event_uuid,
            "primary_event": last.primary_event,
            "severity": last.severity,
            "start_at": iso(last.start_at),
            "last_seen_at": iso(last.last_seen_at),
            "open": last.open,
        },
        "last_look_at": None if look_at is None else iso(look_at),
        "last_look_age_sec": None if look_at is None else max(0, (now_ms - look_at) // 1000),
    }


def _on(value: bool) -> str:
    return "ON" if value else "OFF"


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
