"""Messages between a worker and control: JSON text frames on one WebSocket (docs/protocol.md).

Each message is a frozen model with a `type`; both ends validate what they send and what they get, and refuse
fields that are not named here. This module knows what a message looks like, not what follows from it.
"""

from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationError,
)

from camserver.base.errors import BadInput, Bug
from camserver.base.secrets import Secret
from camserver.domain.clips import CLIP_SEC
from camserver.domain.leases import Fault
from camserver.domain.polygons import POINTS_MAX, POINTS_MIN, POLYGONS_MAX, ZONE_NAME_MAX_CHARS
from camserver.domain.workers import WorkerState
from camserver.wire.message import CameraId, EpochMs, Message, Number, WorkerId, problems

PROTOCOL: Final = 1
SOCKET_PATH: Final = "/v1/worker"
MESSAGE_MAX_BYTES: Final = 65_536
# So many cameras fit into one HEARTBEAT and one RENEWED with the longest ids there are.
CAMERAS_MAX: Final = 400
VERDICTS_MAX: Final = 100
METRICS_MAX: Final = 64
LABELS_MAX: Final = 32

# Answers echo it, so it is as narrow as a UUID needs.
IntentId = Annotated[str, Field(pattern=r"^[0-9a-zA-Z-]{1,36}$")]
Generation = Annotated[int, Field(ge=1, lt=2**63)]
Seq = Annotated[int, Field(ge=1, lt=2**63)]
BootMs = Annotated[int, Field(ge=0, lt=2**63)]  # milliseconds since the sender's boot
Text = Annotated[str, Field(max_length=255)]


def _to_secret(value: object) -> Secret:
    if isinstance(value, Secret):
        return value
    if isinstance(value, str) and len(value) <= 255:
        return Secret(value)
    raise ValueError("must be a text of at most 255 characters")


# Shows itself only in the JSON that is sent, never in a repr or a log line.
SecretText = Annotated[
    Secret, PlainValidator(_to_secret), PlainSerializer(Secret.reveal, return_type=str, when_used="json")
]


class Held(Message):
    """A camera at a generation: what a lease is on the wire."""

    camera_id: CameraId
    generation: Generation


class Lost(Held):
    """A lease that is not the worker's (any more)."""

    reason: Annotated[str, Field(max_length=64)]


class Capacity(Message):
    slots: Annotated[int, Field(ge=1, le=CAMERAS_MAX)]  # cameras at once
    cpu: Annotated[Number, Field(ge=0)] = 0.0
    gpu: Annotated[Number, Field(ge=0)] = 0.0
    mem: Annotated[Number, Field(ge=0)] = 0.0


# ---------------------------------------------------------------------------------------------------------------
# Worker → server
# ---------------------------------------------------------------------------------------------------------------


class Register(Message):
    """The first message of a connection. `holding` is what the worker believes it still holds."""

    type: Literal["REGISTER"] = "REGISTER"
    protocol: int
    worker_id: WorkerId
    site: Annotated[str, Field(max_length=128)]  # name or UUID
    version: Annotated[str, Field(max_length=32)] = ""
    labels: Annotated[
        dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=128)]],
        Field(max_length=LABELS_MAX),
    ] = Field(default_factory=dict)
    capacity: Capacity
    boot_id: Annotated[str, Field(min_length=1, max_length=64)]
    boot_ms: BootMs  # at sending
    holding: Annotated[tuple[Held, ...], Field(max_length=CAMERAS_MAX)] = ()


class Heartbeat(Message):
    """Sent every `heartbeat_sec`; renews the leases it names."""

    type: Literal["HEARTBEAT"] = "HEARTBEAT"
    worker_id: WorkerId
    heartbeat_seq: Annotated[int, Field(ge=0, lt=2**63)]
    boot_ms: BootMs  # at sending
    state: WorkerState
    metrics: Annotated[dict[Annotated[str, Field(max_length=64)], Number], Field(max_length=METRICS_MAX)] = Field(
        default_factory=dict
    )
    renew: Annotated[tuple[Held, ...], Field(max_length=CAMERAS_MAX)] = ()


class Ack(Message):
    """The answer to an intent. An intent that comes again is answered again."""

    type: Literal["ACK"] = "ACK"
    intent_id: IntentId
    status: Literal["ok", "refused", "failed"]
    details: Text = ""


class Kinds:
    """Known values of a report's `event_type`; others are logged and nothing more."""

    PIPELINE_READY: Final = "pipeline_ready"  # the camera is going: PENDING becomes ACTIVE
    PIPELINE_ERROR: Final = "pipeline_error"  # failed too often; payload is a FaultPayload
    PIPELINE_STOPPED: Final = "pipeline_stopped"  # flushed; the lease is given back
    CAMERA_FAULT: Final = "camera_fault"  # one failed try; payload is a FaultPayload
    LOOK_REFUSED: Final = "look_refused"  # an upload was refused for good and set aside
    SPOOL_FULL: Final = "spool_full"  # looks were dropped
    STREAM_FAULT: Final = "stream_fault"  # one of two streams failed, the other does its work
    STREAM_READY: Final = "stream_ready"  # that stream is back
    FSM_REFUSED: Final = "fsm_refused"  # a move of the worker's state machine was refused


class Report(Message):
    """EVENT: something that happened at the worker. Without a camera when it concerns the worker as a whole."""

    type: Literal["EVENT"] = "EVENT"
    camera_id: CameraId | None = None
    generation: Generation | None = None
    seq: Annotated[int, Field(ge=0, lt=2**63)] = 0
    event_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    ts: EpochMs
    boot_ms: BootMs
    payload: dict[str, JsonValue] = Field(default_factory=dict)


class FaultPayload(Message):
    """Payload of camera_fault and pipeline_error: the back-off, so that it stays with the camera when it moves."""

    fault: Fault
    failures: Annotated[int, Field(ge=0, lt=2**31)]  # in a row
    auth_failures: Annotated[int, Field(ge=0, lt=2**31)]
    next_attempt_at: EpochMs
    credential_version: Annotated[int, Field(ge=0, lt=2**31)] = 0
    message: Text = ""
    intent_id: IntentId | None = None  # of the START that it follows from


# ---------------------------------------------------------------------------------------------------------------
# Server → worker
# ---------------------------------------------------------------------------------------------------------------


class Registered(Message):
    """The answer to REGISTER. What is in neither list was not asked about."""

    type: Literal["REGISTERED"] = "REGISTERED"
    worker_id: WorkerId
    server_time: EpochMs
    ttl_ms: Annotated[int, Field(gt=0)]
    heartbeat_sec: Annotated[int, Field(gt=0)]
    tenant_id: Annotated[int, Field(ge=0)] | None = None  # for the worker's log
    site_id: Annotated[int, Field(ge=0)] | None = None
    kept: tuple[Held, ...] = ()
    lost: tuple[Lost, ...] = ()


class CameraVerdict(Message):
    """What the analyzer said about the newest analyzed picture of a camera."""

    camera_id: CameraId
    captured_at: EpochMs
    detected: bool


class Renewed(Message):
    """The answer to HEARTBEAT; leases hold for `ttl_ms` from the moment that heartbeat was *sent*."""

    type: Literal["RENEWED"] = "RENEWED"
    heartbeat_seq: Annotated[int, Field(ge=0, lt=2**63)]
    renewed: tuple[Held, ...] = ()
    lost: tuple[Lost, ...] = ()
    ttl_ms: Annotated[int, Field(gt=0)]
    server_time: EpochMs
    verdicts: Annotated[tuple[CameraVerdict, ...], Field(max_length=VERDICTS_MAX)] = ()


class Source(Message):
    """Where the pictures come from; credentials apart from the address."""

    type: Literal["rtsp", "http", "webcam", "file", "test"]
    url: Annotated[str, Field(max_length=1024)]
    user: Annotated[str, Field(max_length=128)] | None = Field(default=None, repr=False)
    password: SecretText | None = None


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Over the picture as it is shown after rotation; see domain/polygons.py.
PolygonPoints = Annotated[tuple[tuple[Share, Share], ...], Field(min_length=POINTS_MIN, max_length=POINTS_MAX)]
Polygons = Annotated[tuple[PolygonPoints, ...], Field(max_length=POLYGONS_MAX)]
TlsPin = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ZoneParams(Message):
    name: Annotated[str, Field(min_length=1, max_length=ZONE_NAME_MAX_CHARS)]
    points: PolygonPoints


class LookParams(Message):
    """How the camera is looked at, its own values already put in."""

    polling_interval_sec: Annotated[Number, Field(gt=0)]
    infer_width: Annotated[int, Field(gt=0)]
    diff_width: Annotated[int, Field(gt=0)]
    connect_timeout_sec: Annotated[Number, Field(gt=0)]
    force_infer_every_n: Annotated[int, Field(ge=1)]
    detect_every_n_frames: Annotated[int, Field(ge=1)] = 1
    do_not_process: bool = False
    transport: Literal["tcp", "udp"] = "tcp"
    tls_pin: TlsPin | None = None  # sha256 of the certificate; None: checked against the CAs
    rotation: Literal[0, 90, 180, 270] = 0  # clockwise
    ignore_masks: Polygons = ()  # the gate does not watch there
    privacy_masks: Polygons = ()  # black before anything else sees the picture
    zones: Annotated[
        tuple[ZoneParams, ...], Field(max_length=POLYGONS_MAX)
    ] = ()  # if any: the gate watches there only
    mask_clock: bool = True  # burned-in clocks that are found are masked
    device: Annotated[str, Field(max_length=128)] = ""  # cameras with the same one share it; "": host and port
    streams_max: Annotated[int, Field(ge=1, le=64)] | None = None  # of that device; None: as the worker finds fit
    clip_sec: Annotated[Number, Field(ge=0, le=60)] = CLIP_SEC  # 0: no clips
    live_sound: bool = True  # False: its sound is never asked for, whatever the worker allows


class Start(Message):
    """Look at this camera. One that is held at this generation already goes on with these values."""

    type: Literal["START"] = "START"
    intent_id: IntentId
    camera_id: CameraId
    generation: Generation
    source: Source  # the main stream
    sub: Source | None = None  # the small one, for the gate and the infer picture
    model_ver: Annotated[str, Field(max_length=64)] = ""
    params: LookParams
    next_seq: Seq  # of the first look; a worker with later ones in its spool goes on after those
    next_attempt_at: EpochMs | None = None  # no try before
    failures: Annotated[int, Field(ge=0)] = 0
    auth_failures: Annotated[int, Field(ge=0)] = 0
    credential_version: Annotated[int, Field(ge=0)] = 0
    gate_state: Annotated[str, Field(max_length=22_000)] | None = None  # base64


class Stop(Message):
    """Flush what is under way, then report pipeline_stopped."""

    type: Literal["STOP"] = "STOP"
    intent_id: IntentId
    camera_id: CameraId
    generation: Generation
    reason: Text


class Reload(Message):
    type: Literal["RELOAD"] = "RELOAD"
    intent_id: IntentId


class Drain(Message):
    """Stop every camera, then end."""

    type: Literal["DRAIN"] = "DRAIN"
    intent_id: IntentId


class LiveStart(Message):
    """Send a camera's packets to a streamer, on a binary socket of its own that the worker opens (decision 34)."""

    type: Literal["LIVE_START"] = "LIVE_START"
    intent_id: IntentId
    camera_id: CameraId
    generation: Generation  # the worker sends only as the holder of it
    streamer_url: Annotated[str, Field(pattern=r"^wss?://[^\s]{1,1000}$")]
    # Good for one connection, for half a minute. No Secret: those are remembered for ever, to keep them out of logs.
    ticket: Annotated[str, Field(min_length=1, max_length=1024, repr=False)]
    quality: Literal["main", "sub"] = "sub"
    transcode: bool = False


class LiveStop(Message):
    """Nobody watches any more. One that was never begun is acknowledged all the same."""

    type: Literal["LIVE_STOP"] = "LIVE_STOP"
    intent_id: IntentId
    camera_id: CameraId
    generation: Generation
    quality: Literal["main", "sub"] = "sub"
    transcode: bool = False
    reason: Text = ""


ErrandKind: TypeAlias = Literal["probe", "discover", "look", "explain", "clip"]


class Errand(Message):
    """A short task, answered once by an upload (wire/errands.py). It may come again until the answer is there."""

    type: Literal["ERRAND"] = "ERRAND"
    errand_id: IntentId
    kind: ErrandKind
    camera_id: CameraId | None = None
    generation: Generation | None = None  # with a camera that this worker holds
    source: Source | None = None  # what a probe opens
    params: dict[str, JsonValue] = Field(default_factory=dict)
    left_ms: Annotated[int, Field(ge=0)]  # until nobody waits for the answer any more


class Refused(Message):
    """The last message was not accepted. The connection lives on, except after a refused REGISTER."""

    type: Literal["REFUSED"] = "REFUSED"
    error_code: Annotated[str, Field(max_length=64)]
    message: Annotated[str, Field(max_length=1024)]


FromWorker: TypeAlias = Register | Heartbeat | Ack | Report
FromServer: TypeAlias = Registered | Renewed | Start | Stop | Reload | Drain | LiveStart | LiveStop | Errand | Refused

M = TypeVar("M")
_FROM_WORKER: TypeAdapter[FromWorker] = TypeAdapter(Annotated[FromWorker, Field(discriminator="type")])
_FROM_SERVER: TypeAdapter[FromServer] = TypeAdapter(Annotated[FromServer, Field(discriminator="type")])


def parse_from_worker(text: str | bytes) -> FromWorker:
    """A worker's message, or BadInput that says what is wrong with it."""
    return _parse(_FROM_WORKER, text)


def parse_from_server(text: str | bytes) -> FromServer:
    """The server's message, or BadInput that says what is wrong with it."""
    return _parse(_FROM_SERVER, text)


def parse_fault(payload: dict[str, JsonValue]) -> FaultPayload:
    """The payload of a report about a camera's fault."""
    try:
        # Strict models take an enum's text only from JSON, and a payload has already been read from there.
        return FaultPayload.model_validate(payload, strict=False)
    except ValidationError as error:
        raise BadInput(f"the payload is not that of a camera fault: {problems(error)}") from None


def encode(message: Message) -> str:
    """The text of a message. One that is too long is a mistake of whoever made it."""
    text = message.model_dump_json()
    if len(text.encode()) > MESSAGE_MAX_BYTES:
        kind = getattr(message, "type", type(message).__name__)
        raise Bug(f"a {kind} message is {len(text.encode())} bytes long, more than {MESSAGE_MAX_BYTES}")
    return text


def _parse(adapter: TypeAdapter[M], text: str | bytes) -> M:
    size_bytes = len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else len(text)
    if size_bytes > MESSAGE_MAX_BYTES:
        raise BadInput(f"a message of {size_bytes} bytes is longer than {MESSAGE_MAX_BYTES}")
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise BadInput(f"the message is not understood: {problems(error)}") from None
