"""How uploads are laid out: a header in JSON behind its length, then the objects it names, one after the other.

4 bytes   length of the header, big-endian
header    JSON
objects   as long as the header says
"""

import struct
from typing import Final, TypeVar

from pydantic import ValidationError

from camserver.base.errors import BadInput
from camserver.wire.message import Message, problems

H = TypeVar("H", bound=Message)

LENGTH_BYTES: Final = 4
_LENGTH = struct.Struct("!I")


def framed(what: str, header: str, header_max_bytes: int, *objects: bytes) -> bytes:
    """`what` names it in errors: "a look"."""
    text = header.encode()
    if len(text) > header_max_bytes:
        raise _too_long(what, len(text), header_max_bytes)
    return b"".join((_LENGTH.pack(len(text)), text, *objects))


def header_of(
    what: str, model: type[H], body: bytes | bytearray | memoryview, header_max_bytes: int
) -> tuple[H, memoryview]:
    """The header and what follows it, of which nothing is checked yet. BadInput when there is no such header."""
    view = memoryview(body)
    if len(view) < LENGTH_BYTES:
        raise BadInput(f"an upload of {len(view)} bytes is cut off before its header")
    (header_bytes,) = _LENGTH.unpack_from(view)
    if header_bytes > header_max_bytes:
        raise _too_long(what, header_bytes, header_max_bytes)
    start = LENGTH_BYTES + header_bytes
    if len(view) < start:
        raise BadInput(f"an upload of {len(view)} bytes is cut off within its header of {header_bytes}")
    return parsed(what, model, bytes(view[LENGTH_BYTES:start])), view[start:]


def parsed(what: str, model: type[H], text: str | bytes) -> H:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(f"the header of {what} is not understood: {problems(error)}") from None


def _too_long(what: str, header_bytes: int, header_max_bytes: int) -> BadInput:
    return BadInput(f"the header of {what} is {header_bytes} bytes long, more than {header_max_bytes}")
