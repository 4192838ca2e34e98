"""The answer to an errand: `POST /v1/errands` with a header and at most one object in one body (docs/protocol.md).

    header    an ErrandHeader
    object    `bytes` bytes: a JPEG picture or an MP4 clip

The question is `Errand` in wire/worker.py. This module packs and unpacks; who may answer is decided by control.
"""

from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, JsonValue, TypeAdapter, ValidationError, model_validator

from camserver.base.errors import BadInput
from camserver.wire.framing import LENGTH_BYTES, framed, header_of
from camserver.wire.message import EpochMs, Message, problems
from camserver.wire.worker import IntentId

ERRANDS_PATH: Final = "/v1/errands"
CONTENT_TYPE: Final = "application/vnd.camserver.errand"
HEADER_MAX_BYTES: Final = 262_144
OBJECT_MAX_BYTES: Final = 64_000_000
BODY_MAX_BYTES: Final = LENGTH_BYTES + HEADER_MAX_BYTES + OBJECT_MAX_BYTES
JPEG: Final = "image/jpeg"
MP4: Final = "video/mp4"

ObjectType: TypeAlias = Literal["", "image/jpeg", "video/mp4"]
_WHAT: Final = "an errand"


class ErrandHeader(Message):
    errand_id: IntentId
    ok: bool
    message: Annotated[str, Field(max_length=255)] = ""  # for people: what is wrong, or what was found
    result: dict[str, JsonValue] = Field(default_factory=dict)
    content_type: ObjectType = ""
    bytes: Annotated[int, Field(ge=0, le=OBJECT_MAX_BYTES)] = 0

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if bool(self.content_type) != bool(self.bytes):
            raise ValueError("an object needs both its content_type and its bytes")
        return self


@dataclass(frozen=True, slots=True)
class ErrandUpload:
    header: ErrandHeader
    body: bytes


class ErrandRecorded(Message):
    """The answer is durable; the worker may forget the errand. A repeat gets the same."""

    result: Literal["recorded"] = "recorded"
    repeat: bool
    server_time: EpochMs


class ErrandRefused(Message):
    """Nobody waits for it (any more), or it is another worker's: the worker forgets the errand."""

    result: Literal["refused"] = "refused"
    reason: Annotated[str, Field(max_length=255)]
    server_time: EpochMs


ErrandAnswer: TypeAlias = ErrandRecorded | ErrandRefused
_ANSWER: TypeAdapter[ErrandAnswer] = TypeAdapter(Annotated[ErrandAnswer, Field(discriminator="result")])


def pack(header: ErrandHeader, body: bytes = b"") -> bytes:
    """The body of an upload."""
    if len(body) != header.bytes:
        raise BadInput(f"errand {header.errand_id} says {header.bytes} bytes but has {len(body)}")
    return framed(_WHAT, header.model_dump_json(), HEADER_MAX_BYTES, body)


def unpack(data: bytes | bytearray | memoryview) -> ErrandUpload:
    """The parts of a body, which must be exactly as long as its header says."""
    header, body = header_of(_WHAT, ErrandHeader, data, HEADER_MAX_BYTES)
    if len(body) != header.bytes:
        raise BadInput(f"an upload of {len(data)} bytes does not hold the {header.bytes} bytes its header names")
    return ErrandUpload(header, bytes(body))


def parse_answer(text: str | bytes) -> ErrandAnswer:
    """The server's answer to an upload."""
    try:
        return _ANSWER.validate_json(text)
    except ValidationError as error:
        raise BadInput(f"the answer to an errand is not understood: {problems(error)}") from None
