"""The upload of a look: `POST /v1/looks` with a header and up to two pictures in one body (docs/protocol.md).

    header    a LookHeader
    infer     `infer_bytes` bytes, the picture that is analyzed
    full      `full_bytes` bytes, the picture as it came

This module packs and unpacks; what a look is worth is decided by control.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from camserver.base.errors import BadInput
from camserver.wire.framing import LENGTH_BYTES, framed, header_of, parsed
from camserver.wire.message import CameraId, EpochMs, Message, Number, problems
from camserver.wire.worker import BootMs, Generation, Seq

LOOKS_PATH: Final = "/v1/looks"
CONTENT_TYPE: Final = "application/vnd.camserver.look"
WORKER_HEADER: Final = "X-Camserver-Worker"
HEADER_MAX_BYTES: Final = 40_960
GATE_STATE_MAX_BYTES: Final = 16_384
INFER_MAX_BYTES: Final = 5_000_000
FULL_MAX_BYTES: Final = 20_000_000
BODY_MAX_BYTES: Final = LENGTH_BYTES + HEADER_MAX_BYTES + INFER_MAX_BYTES + FULL_MAX_BYTES
_WHAT: Final = "a look"

Pixels = Annotated[int, Field(ge=0, le=65_535)]


class LookHeader(Message):
    """A look without its pictures. Who sends it, and so whose camera it is, is not said here but proven."""

    camera_id: CameraId
    generation: Generation
    seq: Seq
    boot_id: Annotated[str, Field(min_length=1, max_length=64)]  # of the boot `boot_ms` counts from
    boot_ms: BootMs  # the moment of capture
    captured_at: EpochMs  # the same moment as the worker converts it
    sent_boot_ms: BootMs  # by the clock of the boot that sends, which may be a later one than `boot_id`
    status: Literal["ok", "timeout", "error"]
    error_code: Annotated[str, Field(max_length=64)] | None = None
    error_message: Annotated[str, Field(max_length=255)] | None = None
    verdict: Literal["skip", "analyze", "forced"] = "skip"
    diff_ratio: Annotated[Number, Field(ge=0, le=1)] | None = None
    luma_delta: Annotated[Number, Field(ge=-255, le=255)] | None = None
    blur_score: Annotated[Number, Field(ge=0, le=100)] | None = None
    full_w: Pixels | None = None
    full_h: Pixels | None = None
    infer_w: Pixels | None = None
    infer_h: Pixels | None = None
    letterbox: bool = False
    letterbox_top: Pixels | None = None
    letterbox_left: Pixels | None = None
    letterbox_bottom: Pixels | None = None
    letterbox_right: Pixels | None = None
    infer_hash64_hex: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    structure: Annotated[Number, Field(ge=0, le=1)] | None = None  # how much of the picture has any texture
    view_hex: Annotated[str, Field(pattern=r"^[0-9a-f]{36}$")] | None = (
        None  # where its texture is, see media/view.py
    )
    gate_state: Annotated[str, Field(max_length=22_000)] | None = None  # base64, every 20 looks and with the last
    infer_bytes: Annotated[int, Field(ge=0, le=INFER_MAX_BYTES)] = 0
    full_bytes: Annotated[int, Field(ge=0, le=FULL_MAX_BYTES)] = 0

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.status != "ok" and not self.error_code:
            raise ValueError("a failed look needs an error_code")
        if self.status != "ok" and self.verdict != "skip":
            raise ValueError("a failed look can't be analyzed")
        if self.verdict != "skip" and not self.infer_bytes:
            raise ValueError("a look to be analyzed needs its infer picture")
        return self


@dataclass(frozen=True, slots=True)
class LookUpload:
    header: LookHeader
    infer: bytes
    full: bytes


class Recorded(Message):
    """The acknowledgement: pictures and row are durable, the worker may forget the look."""

    result: Literal["recorded"] = "recorded"
    standing: Literal["live", "late"]
    frame_uuid: Annotated[str, Field(max_length=36)]
    repeat: bool
    server_time: EpochMs


class LookRefused(Message):
    """Refused for good: the worker sets the look aside and reports it."""

    result: Literal["refused"] = "refused"
    reason: Annotated[str, Field(max_length=255)]
    server_time: EpochMs


LookAnswer: TypeAlias = Recorded | LookRefused
_ANSWER: TypeAdapter[LookAnswer] = TypeAdapter(Annotated[LookAnswer, Field(discriminator="result")])


class ErrorBody(Message):
    """The body of every answer other than 200."""

    error_code: Annotated[str, Field(max_length=64)]
    message: Annotated[str, Field(max_length=1024)]


def pack(header: LookHeader, infer: bytes = b"", full: bytes = b"") -> bytes:
    """The body of an upload."""
    if (len(infer), len(full)) != (header.infer_bytes, header.full_bytes):
        raise BadInput(
            f"look {header.camera_id}/{header.generation}/{header.seq} says {header.infer_bytes} and "
            f"{header.full_bytes} bytes of pictures but has {len(infer)} and {len(full)}"
        )
    return framed(_WHAT, header.model_dump_json(exclude_none=True), HEADER_MAX_BYTES, infer, full)


def unpack(body: bytes | bytearray | memoryview) -> LookUpload:
    """The parts of a body, which must be exactly as long as its header says."""
    header, pictures = header_of(_WHAT, LookHeader, body, HEADER_MAX_BYTES)
    if len(pictures) != header.infer_bytes + header.full_bytes:
        raise BadInput(
            f"an upload of {len(body)} bytes does not hold the {header.infer_bytes} and {header.full_bytes} "
            "bytes of pictures that its header names"
        )
    return LookUpload(header, bytes(pictures[: header.infer_bytes]), bytes(pictures[header.infer_bytes :]))


def parse_header(text: str | bytes) -> LookHeader:
    return parsed(_WHAT, LookHeader, text)


def parse_answer(text: str | bytes) -> LookAnswer:
    """The server's answer to an upload."""
    try:
        return _ANSWER.validate_json(text)
    except ValidationError as error:
        raise BadInput(f"the answer to an upload is not understood: {problems(error)}") from None
