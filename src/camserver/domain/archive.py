"""Copies of pictures beside the object store: where they lie, how long, and how much a camera sends (decision 27).

Paths are made of letters, digits and `. _ + -`, so that they mean the same to a folder, a bucket and Google Drive.
Sending, deleting and counting are done elsewhere.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Protocol, TypeAlias

from camserver.domain.deliveries import JsonObject, Receiver
from camserver.domain.policy import setting
from camserver.domain.retention import Retention

DAY_MS = 86_400_000
# No picture and no clip of ours is larger.
COPY_MAX_BYTES = 200_000_000
# A camera that sent its day's bytes to an archive: what a delivery that is left out for it says.
OVER_QUOTA = "over the camera's quota of the day"

CLIP_SUFFIX = ".mp4"

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_PART_CHARS_MAX = 64


@dataclass(frozen=True, slots=True)
class ArchivePolicy:
    """What archives keep, and where folders may be."""

    normal_days: int = setting(14, "Days to keep copies of detected pictures.", min=1, max=3650)
    quarantine_days: int = setting(60, "Days to keep copies of pictures in quarantine.", min=1, max=3650)
    closed_case_days: int = setting(7, "Days to keep the copies of a case after it was closed.", min=0, max=3650)
    camera_day_bytes: int = setting(
        2_000_000_000,
        "Most that one camera sends to one archive on one day, in bytes; pictures past it are left out and counted. "
        "Cases have no such bound.",
        min=1_000_000,
        max=10_000_000_000_000,
    )
    clips: bool = setting(True, "Whether the clips of events are copied, too, beside the pictures.")
    folders: tuple[str, ...] = setting(
        (), "Folders below which archives of the kind folder may lie, with their whole paths. Empty: none may."
    )


@dataclass(frozen=True, slots=True)
class Picture:
    """What the place of a copy follows from. A clip has its event's id, and when it begins."""

    camera_id: str
    frame_uuid: str
    captured_at: int
    suffix: str = ".jpg"


@dataclass(frozen=True, slots=True)
class Copy:
    """One picture on its way to one archive."""

    delivery_uuid: str  # the same in every attempt
    path: str  # below the archive's own root, see `copy_path`
    data: bytes
    sha256: str  # hex
    attempt: int = 1
    progress: JsonObject = field(default_factory=dict)  # what earlier attempts left behind

    @property
    def media_type(self) -> str:
        return media_type(self.path)


@dataclass(frozen=True, slots=True)
class Stored:
    """A copy that arrived. `external_id` is how the archive itself names it, and what removes it again."""

    external_id: str
    result: JsonObject = field(default_factory=dict)


# Keeps what a later attempt needs, also when this one is killed. Known only to one kind of archive.
KeepProgress: TypeAlias = Callable[[JsonObject], Awaitable[None]]


class Archive(Protocol):
    """Archives of one kind. Raises DeliveryError and nothing else that is expected."""

    async def read(self, receiver: Receiver, external_id: str) -> bytes | None:
        """A copy's bytes; None when it is gone. One of more than COPY_MAX_BYTES is refused."""

    async def store(self, receiver: Receiver, copy: Copy, keep: KeepProgress) -> Stored:
        """Stores a copy durably. A repeat with the same delivery stores nothing twice."""

    async def remove(self, receiver: Receiver, external_id: str) -> None:
        """Removes a copy; one that is gone already is fine."""

    async def close(self) -> None: ...


def day_of(at_ms: int, zone: tzinfo) -> str:
    """The site's day, YYYY-MM-DD."""
    return _local(at_ms, zone).strftime("%Y-%m-%d")


def copy_path(picture: Picture, retention: Retention, case_uuid: str | None, zone: tzinfo) -> str:
    """Where a copy lies below the archive's own root; parts are separated by slashes."""
    at = _local(picture.captured_at, zone)
    camera = _safe(picture.camera_id)
    if case_uuid is not None:
        folder = f"case/{_safe(case_uuid)}/{camera}"
    elif retention is Retention.NORMAL:
        folder = f"camera-archive/{at:%Y/%m/%d}/{camera}"
    else:
        folder = f"camera-quarantine/{at:%Y/%m}/{camera}"
    return f"{folder}/{file_name(picture, zone)}"


def file_name(picture: Picture, zone: tzinfo) -> str:
    """The local time in ISO 8601's basic form, because colons are not allowed everywhere, and the frame's id."""
    at = _local(picture.captured_at, zone)
    return f"{at:%Y%m%dT%H%M%S}.{picture.captured_at % 1000:03d}{at:%z}_{_safe(picture.frame_uuid)}{picture.suffix}"


def kept_until(retention: Retention, in_case: bool, archived_at: int, policy: ArchivePolicy) -> int | None:
    """When a copy goes; None while a case keeps it."""
    if in_case:
        return None
    days = policy.normal_days if retention is Retention.NORMAL else policy.quarantine_days
    return archived_at + days * DAY_MS


def fits(sent_bytes: int, picture_bytes: int, policy: ArchivePolicy) -> bool:
    """Whether a camera may send this picture too, having sent so much to the same archive on the same day."""
    return sent_bytes + picture_bytes <= policy.camera_day_bytes


def once_key(frame_id: int, receiver_id: int, case_id: int | None) -> str:
    """Makes a picture go to an archive once, and once more for each case it is in."""
    return f"copy:{frame_id}:{receiver_id}" + ("" if case_id is None else f":case{case_id}")


def clip_once_key(clip_id: int, receiver_id: int | None, case_id: int | None) -> str:
    """The same for a clip; without a receiver, for what fans out into its copies."""
    return f"copy:clip{clip_id}:{receiver_id or 0}" + ("" if case_id is None else f":case{case_id}")


def media_type(path: str) -> str:
    """What a copy is, by its name."""
    return "video/mp4" if is_clip(path) else "image/jpeg"


def is_clip(path: str) -> bool:
    return path.endswith(CLIP_SUFFIX)


def is_safe_path(path: str) -> bool:
    """Whether a path could have been made here: nothing hidden, nothing that leads out."""
    parts: Sequence[str] = path.split("/")
    return all(part and not part.startswith(".") and re.fullmatch(r"[A-Za-z0-9._+-]+", part) for part in parts)


def _local(at_ms: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(zone)


def _safe(part: str) -> str:
    """A part of a path: other characters become `_`, and none is hidden, empty or long."""
    kept = _UNSAFE.sub("_", part)[:_PART_CHARS_MAX]
    return f"_{kept[1:]}" if kept.startswith(".") else kept or "_"
