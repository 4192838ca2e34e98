"""What live view's parts say to each other (docs/design/live.md): feed, sync, and what viewers are told.

feed      worker → streamer   binary messages on a WebSocket, the first byte says which
sync      streamer ↔ control  JSON, where the streamer can't reach the store itself
viewer    streamer → browser  JSON text between the fragments
"""

import base64
import binascii
import json
import struct
from dataclasses import dataclass
from fractions import Fraction
from operator import lt
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from camserver.base.errors import BadInput
from camserver.domain.live_links import Quality
from camserver.wire.message import CameraId, EpochMs, Message, Number, problems

SYNC_PATH: Final = "/v1/streamer/sync"
SYNC_MAX_BYTES: Final = 1_048_576
# More viewings than any budget has.
VIEWINGS_MAX: Final = 5_000
FEED_MESSAGE_MAX_BYTES: Final = 20_000_100
# A feed that says nothing for so long is dead; the worker says something at least every STATUS_EVERY_SEC.
FEED_SILENT_SEC: Final = 15.0
STATUS_EVERY_SEC: Final = 4.0

LiveState: TypeAlias = Literal["connecting", "live", "stalled", "refused", "waiting", "moving", "ended"]
LeaseId = Annotated[str, Field(pattern=r"^[0-9A-Za-z-]{1,64}$")]

# Close codes of the live sockets.
CLOSE_GOING_AWAY: Final = 1001
CLOSE_SESSION_OVER: Final = 4401
CLOSE_OVER: Final = 4404
CLOSE_REPLACED: Final = 4409
CLOSE_GONE: Final = 4410  # to viewers: the camera; to a feed: nobody watches


# ---------------------------------------------------------------------------------------------------------------
# The feed
# ---------------------------------------------------------------------------------------------------------------

STREAM, PACKET, STATUS, SOUND, PICTURE = 1, 2, 3, 4, 5
# All that a streamer ever asks of a worker on a feed.
PICTURE_ASKED: Final = bytes((PICTURE,))
_SOUND: Final = struct.Struct(">BBqQ")
_PACKET: Final = struct.Struct(">BBqqQB")
# Pictures in more pieces are looked through instead.
STARTS_MAX: Final = 64
_STARTS: Final = [struct.Struct(f">{count}I") for count in range(STARTS_MAX + 1)]
_KEYFRAME, _HAS_PTS, _HAS_DTS = 1, 2, 4
PACKET_HEAD_BYTES: Final = _PACKET.size


@dataclass(frozen=True, slots=True)
class FeedSound:
    """The sound beside the pictures; times in ticks of its rate."""

    codec: str  # aac, opus
    config: bytes  # of AAC
    rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class FeedStream:
    """What the packets that follow are of."""

    codec: str
    extradata: bytes  # parameter sets in Annex B; may be empty until the first keyframe
    time_base: Fraction
    note: str = ""
    source_codec: str = ""  # what the camera sends, where that is another one
    sound: FeedSound | None = None


@dataclass(slots=True)
class FeedPacket:
    pts: int | None
    dts: int | None
    is_keyframe: bool
    boot_ms: int  # of the worker's machine
    data: bytes | memoryview
    starts: tuple[int, ...] = ()  # where its NAL units begin, behind their start codes; empty: not known


@dataclass(slots=True)
class FeedSoundPacket:
    pts: int | None
    boot_ms: int  # of the worker's machine
    data: bytes


@dataclass(frozen=True, slots=True)
class FeedPicture:
    """The newest keyframe as a JPEG, which was asked for; empty: none could be made."""

    jpeg: bytes


class FeedStatus(Message):
    """How the camera is, seen from its worker."""

    state: LiveState
    reason: Annotated[str, Field(max_length=64)] = ""
    message: Annotated[str, Field(max_length=255)] = ""


FeedMessage: TypeAlias = FeedStream | FeedPacket | FeedSoundPacket | FeedStatus | FeedPicture


def pack_stream(stream: FeedStream) -> bytes:
    extradata = base64.b64encode(stream.extradata).decode()
    values: list[object] = [stream.codec, extradata, stream.time_base.numerator, stream.time_base.denominator]
    values += [stream.note, stream.source_codec]
    if (sound := stream.sound) is not None:
        values += [sound.codec, base64.b64encode(sound.config).decode(), sound.rate, sound.channels]
    return bytes((STREAM,)) + json.dumps(values).encode()


def sound_head(pts: int | None, boot_ms: int) -> bytes:
    """What stands before a piece of sound."""
    return _SOUND.pack(SOUND, 0 if pts is None else _HAS_PTS, pts or 0, boot_ms)


def packet_head(
    pts: int | None, dts: int | None, is_keyframe: bool, boot_ms: int, starts: tuple[int, ...] = ()
) -> bytes:
    """What stands before the access unit."""
    count = len(starts) if len(starts) <= STARTS_MAX else 0
    flags = (_KEYFRAME if is_keyframe else 0) | (0 if pts is None else _HAS_PTS) | (0 if dts is None else _HAS_DTS)
    head = _PACKET.pack(PACKET, flags, pts or 0, dts or 0, boot_ms, count)
    return head + _STARTS[count].pack(*starts) if count else head


def pack_status(status: FeedStatus) -> bytes:
    return bytes((STATUS,)) + status.model_dump_json().encode()


def unpack_feed(message: bytes | memoryview) -> FeedMessage:
    """A message of a feed, or BadInput. Of a view a picture's data is one, too."""
    kind = message[0] if message else 0
    if kind == PACKET:
        if len(message) <= PACKET_HEAD_BYTES:
            raise BadInput("a packet of a feed is cut off")
        _, flags, pts, dts, boot_ms, count = _PACKET.unpack_from(message)
        begin = PACKET_HEAD_BYTES + 4 * count
        if count > STARTS_MAX or len(message) <= begin:
            raise BadInput("a packet of a feed is cut off")
        starts = _STARTS[count].unpack_from(message, PACKET_HEAD_BYTES)
        # In order and inside, or else they are no places in it.
        if count and (starts[0] < 4 or starts[-1] > len(message) - begin or not _is_rising(starts)):
            raise BadInput("a packet of a feed has its units elsewhere")
        return FeedPacket(
            pts if flags & _HAS_PTS else None,
            dts if flags & _HAS_DTS else None,
            bool(flags & _KEYFRAME),
            boot_ms,
            message[begin:],
            starts,
        )
    if kind == SOUND:
        if len(message) <= _SOUND.size:
            raise BadInput("a piece of a feed's sound is cut off")
        _, flags, pts, boot_ms = _SOUND.unpack_from(message)
        return FeedSoundPacket(pts if flags & _HAS_PTS else None, boot_ms, bytes(message[_SOUND.size :]))
    if kind == PICTURE:
        return FeedPicture(bytes(message[1:]))
    if kind == STREAM:
        return _stream(bytes(message[1:]))
    if kind == STATUS:
        try:
            return FeedStatus.model_validate_json(bytes(message[1:]))
        except ValidationError as error:
            raise BadInput(f"the status of a feed is none: {problems(error)}") from None
    raise BadInput(f"a feed has no messages of kind {kind}")


def _is_rising(places: tuple[int, ...]) -> bool:
    return len(places) == 1 or all(map(lt, places, places[1:]))


def _stream(text: bytes) -> FeedStream:
    try:
        codec, extradata, above, below, note, source_codec, *sound = json.loads(text)
        time_base = Fraction(above, below)
        if not all(isinstance(one, str) for one in (codec, note, source_codec)) or time_base <= 0:
            raise ValueError
        return FeedStream(
            codec[:16],
            base64.b64decode(extradata, validate=True),
            time_base,
            note[:64],
            source_codec[:16],
            _sound(*sound) if sound else None,
        )
    except (ValueError, TypeError, ZeroDivisionError, binascii.Error):
        raise BadInput("what a feed says about its stream makes no sense") from None


def _sound(codec: object, config: str, rate: object, channels: object) -> FeedSound:
    if not isinstance(codec, str) or not isinstance(rate, int) or not isinstance(channels, int):
        raise ValueError
    if not 1_000 <= rate <= 192_000 or not 1 <= channels <= 8:
        raise ValueError
    return FeedSound(codec[:16], base64.b64decode(config, validate=True), rate, channels)


# ---------------------------------------------------------------------------------------------------------------
# Sync
# ---------------------------------------------------------------------------------------------------------------


class Load(Message):
    cpu_percent: Annotated[Number, Field(ge=0)]
    memory_percent: Annotated[Number, Field(ge=0)]
    swap_mb: Annotated[Number, Field(ge=0)]


FeedWish: TypeAlias = Literal["wanted", "fed", "idle"]


class Watched(Message):
    """What an attached viewing, or one that nobody is attached to, needs."""

    lease_id: LeaseId
    feed: FeedWish


class Sync(Message):
    streamer_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    public_url: Annotated[str, Field(max_length=255)] = ""
    port: Annotated[int, Field(ge=0, le=65_535)]
    feed_url: Annotated[str, Field(max_length=255)]
    total_units: Annotated[int, Field(ge=0)]
    load: Load | None = None
    asked: Annotated[tuple[LeaseId, ...], Field(max_length=VIEWINGS_MAX)] = ()  # why they are gone, if they are
    watched: Annotated[tuple[Watched, ...], Field(max_length=VIEWINGS_MAX)] = ()  # where it changed
    # Those whose video can't be shown as it is: a codec that was not known when they were admitted, or a new mask.
    unplayable: Annotated[tuple[LeaseId, ...], Field(max_length=VIEWINGS_MAX)] = ()
    is_stopping: bool = False


class LiveViewing(Message):
    """A valid viewing of this streamer, and how its camera stands."""

    lease_id: LeaseId
    tenant_id: int
    camera_id: CameraId
    quality: Quality
    transcode: bool
    kind: Annotated[str, Field(max_length=16)]  # modal, suggest; prewarm: fed though nobody is attached
    expires_at: EpochMs
    feed: FeedWish
    feed_reason: Annotated[str, Field(max_length=255)] = ""
    generation: Annotated[int, Field(ge=0)] = 0  # of the camera's lease; 0: it never had one
    is_held: bool = False
    units: Annotated[int, Field(ge=0)] = 0  # of the budget, that it takes now; 0: not said


class Gone(Message):
    """A viewing that is not valid any more, or never was."""

    lease_id: LeaseId
    reason: Annotated[str, Field(max_length=64)]


class Synced(Message):
    server_time: EpochMs
    viewings: tuple[LiveViewing, ...]
    gone: tuple[Gone, ...] = ()
    no_room: tuple[LeaseId, ...] = ()  # of those that were `unplayable`: nothing is left for a transcode


_SYNC: TypeAdapter[Sync] = TypeAdapter(Sync)
_SYNCED: TypeAdapter[Synced] = TypeAdapter(Synced)


def parse_sync(body: bytes) -> Sync:
    try:
        return _SYNC.validate_json(body)
    except ValidationError as error:
        raise BadInput(f"the sync of a streamer is not understood: {problems(error)}") from None


def parse_synced(body: bytes) -> Synced:
    try:
        return _SYNCED.validate_json(body)
    except ValidationError as error:
        raise BadInput(f"the answer to a sync is not understood: {problems(error)}") from None


@dataclass(frozen=True, slots=True)
class WantedFeed:
    """A camera that some viewing of a streamer needs from the worker that holds it."""

    streamer_id: str
    feed_url: str
    tenant_id: int
    camera_key: int
    camera_id: str
    generation: int
    quality: Quality
    transcode: bool
    worker_key: int


# ---------------------------------------------------------------------------------------------------------------
# The viewer
# ---------------------------------------------------------------------------------------------------------------


class ViewerStatus(Message):
    type: Literal["status"] = "status"
    state: LiveState
    reason: Annotated[str, Field(max_length=64)] = ""
    message: Annotated[str, Field(max_length=255)] = ""
    label_en: Annotated[str, Field(max_length=255)] = ""
    label_ja: Annotated[str, Field(max_length=255)] = ""
    since: EpochMs = 0


class ViewerInit(Message):
    """The init segment follows as a binary message."""

    type: Literal["init"] = "init"
    mime: Annotated[str, Field(max_length=128)]
    codec: Annotated[str, Field(max_length=16)]
    width: Annotated[int, Field(ge=1)]
    height: Annotated[int, Field(ge=1)]
    note: Annotated[str, Field(max_length=64)] = ""
    source_codec: Annotated[str, Field(max_length=16)] = ""  # what the camera sends, where it is transcoded


class ViewerSound(Message):
    """What could be heard, whether or not this viewer does; empty: nothing."""

    type: Literal["sound"] = "sound"
    codec: Annotated[str, Field(max_length=16)]


class ViewerCost(Message):
    """What a transcoded viewing takes of the budget; it may have begun without, or share it with others."""

    type: Literal["cost"] = "cost"
    units: Annotated[int, Field(ge=0)]


class ViewerStats(Message):
    type: Literal["stats"] = "stats"
    fps: Annotated[Number, Field(ge=0)]
    kbps: Annotated[Number, Field(ge=0)]
    viewers: Annotated[int, Field(ge=0)]
    skipped: Annotated[int, Field(ge=0)]  # pictures that this viewer was too slow for


class ViewerEnd(Message):
    type: Literal["end"] = "end"
    reason: Annotated[str, Field(max_length=64)]


FeedKey: TypeAlias = tuple[int, str, Quality, bool]  # tenant, camera, quality, transcoded


def feed_key(viewing: LiveViewing) -> FeedKey:
    return viewing.tenant_id, viewing.camera_id, viewing.quality, viewing.transcode
