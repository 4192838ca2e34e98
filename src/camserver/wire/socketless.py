"""A worker without a socket: the same messages as in `wire.worker`, one to a request (docs/protocol.md)."""

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from camserver.base.errors import BadInput
from camserver.wire.message import Message, WorkerId, problems
from camserver.wire.worker import CAMERAS_MAX, Start, Stop

REGISTER_PATH: Final = "/v1/workers/{worker_id}/register"
RENEW_PATH: Final = "/v1/leases/renew"
ASSIGN_PATH: Final = "/v1/assign"
MESSAGES_PATH: Final = "/v1/messages"
# So many intents come in one answer; the next request brings the others.
INTENTS_MAX: Final = 50


class AssignAsked(Message):
    """Asks for further cameras, and for everything that this worker has not acknowledged."""

    worker_id: WorkerId
    most: Annotated[int, Field(ge=0, le=CAMERAS_MAX)] = CAMERAS_MAX  # further cameras


class Assigned(Message):
    intents: Annotated[
        tuple[Annotated[Start | Stop, Field(discriminator="type")], ...], Field(max_length=INTENTS_MAX)
    ]


class Taken(Message):
    """An ACK or an EVENT was taken."""

    result: Literal["taken"] = "taken"


def parse_assign(text: bytes) -> AssignAsked:
    try:
        return AssignAsked.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(f"the request is not understood: {problems(error)}") from None
