"""Reads the multipart body of an analysis request piece by piece and holds no more of it than the contract allows."""

import asyncio
import re
from dataclasses import dataclass, field

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from camserver.base.errors import BadInput, CamError, Unavailable
from camserver.wire.analyzer import IMAGE_BYTES_MAX

PICTURES = ("infer_image", "prev_infer_image")
TEXT_BYTES_MAX = 64_000
PARTS_MAX = 32
HEADER_BYTES_MAX = 8_000
# A client that is refused while it still sends would see a broken connection instead of the reason. So what is too
# much is still read and thrown away, up to here.
READ_BYTES_MAX = 64_000_000


# A body of two pictures at the widths that are recommended is smaller; it is read when all of it is here.
AT_ONCE_BYTES_MAX = 1_000_000
# A part's headers as nearly everybody writes them.
_PLAIN_HEADERS = re.compile(
    rb'\r\nContent-Disposition: form-data; name="(\w{1,80})"(?:; filename="[\w.-]{0,80}")?'
    rb"(?:\r\nContent-Type: [\w/;=. -]{1,80})?"
)


class Unfinished(CamError):
    """More of the body may follow, so the connection is of no further use."""


class TooMuch(Unfinished, BadInput): ...


class TooSlow(Unfinished, Unavailable):
    """Says nothing about the picture."""


@dataclass(slots=True)
class Form:
    texts: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)


async def read_form(request: Request, timeout_sec: float) -> Form:
    """The parts of the body; BadInput when it is no form, cut off or too large."""
    boundary = _boundary(request)
    reader = _Reader(boundary)
    try:
        return await _read(reader, boundary, request, timeout_sec)
    finally:
        reader.close()


async def _read(reader: "_Reader", boundary: bytes, request: Request, timeout_sec: float) -> Form:
    problem: BadInput | None = None
    read_bytes = 0
    held = bytearray()
    try:
        async with asyncio.timeout(timeout_sec):
            async for piece in request.stream():
                read_bytes += len(piece)
                if read_bytes > READ_BYTES_MAX:
                    raise TooMuch(f"the body has more than {READ_BYTES_MAX} bytes")
                if read_bytes <= AT_ONCE_BYTES_MAX:
                    held += piece
                    continue
                if held:
                    problem = reader.take(bytes(held))
                    held = bytearray()
                if problem is None:
                    problem = reader.take(piece)
    except TimeoutError:
        raise TooSlow(f"the body did not arrive within {timeout_sec:g} s; try again") from None
    except ClientDisconnect:
        raise BadInput("the body was cut off") from None
    if held:
        form = _at_once(bytes(held), boundary)
        if form is not None:
            return form
        problem = reader.take(bytes(held))
    try:
        if problem is not None:
            raise problem
        return reader.form()
    finally:
        del problem  # an error and the frame that raised it would hold each other


def _at_once(body: bytes, boundary: bytes) -> Form | None:
    """The form, if all of it is here and it is written as nearly everybody does: many times quicker than piece by
    piece. None: it has to be read that way, which also says what is wrong with it."""
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if len(parts) > PARTS_MAX + 2 or parts[0] or parts[-1] != b"--\r\n":
        return None
    form = Form()
    for part in parts[1:-1]:
        headers, _, content = part.partition(b"\r\n\r\n")
        plain = _PLAIN_HEADERS.fullmatch(headers)
        if plain is None:
            return None
        name = plain[1].decode()
        if name in form.texts or name in form.pictures:
            return None
        if len(content) > (IMAGE_BYTES_MAX if name in PICTURES else TEXT_BYTES_MAX):
            return None
        if name in PICTURES:
            form.pictures[name] = content
            continue
        try:
            form.texts[name] = content.decode("utf-8")
        except UnicodeDecodeError:
            return None
    return form


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        shown = kind.decode("latin-1")[:80] or "of no kind"
        raise BadInput(f"the body is {shown}; it must be multipart/form-data with a boundary")
    return options[b"boundary"]


class _Reader:
    """Fed with pieces; `take` answers what is wrong as soon as it is known."""

    def __init__(self, boundary: bytes) -> None:
        self._texts: dict[str, str] = {}
        self._pictures: dict[str, bytes] = {}
        self._parts = 0
        self._name = ""
        self._content = bytearray()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._disposition = b""
        self._complete = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._part_begin,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value_piece,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._headers_finished,
                    "on_part_data": self._part_data,
                    "on_part_end": self._part_end,
                    "on_end": self._end,
                },
            )
        except FormParserError as error:
            raise BadInput(f"the body's boundary can't be used: {error}") from None

    def take(self, piece: bytes) -> BadInput | None:
        try:
            self._parser.write(piece)
        except BadInput as error:
            self._content.clear()
            return error
        except FormParserError as error:
            return BadInput(f"the body is no multipart form: {error}")
        return None

    def form(self) -> Form:
        if not self._complete:
            raise BadInput("the body ends in the middle of the form")
        return Form(self._texts, self._pictures)

    def close(self) -> None:
        """Lets go of everything. Parser and reader hold each other, so pictures of megabytes would stay until such
        garbage is looked for, which is seldom."""
        del self._parser
        self._texts, self._pictures, self._content = {}, {}, bytearray()

    def _part_begin(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise BadInput(f"the form has more than {PARTS_MAX} parts")
        self._name, self._disposition = "", b""
        self._content = bytearray()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]
        self._bound_header()

    def _header_value_piece(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]
        self._bound_header()

    def _bound_header(self) -> None:
        if len(self._header_name) + len(self._header_value) > HEADER_BYTES_MAX:
            raise BadInput("a part of the form has a header that is too long")

    def _header_end(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if not self._name:
            raise BadInput("a part of the form has no name")
        if self._name in self._texts or self._name in self._pictures:
            raise BadInput(f"{self._name[:80]} is in the form twice")

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        allowed = IMAGE_BYTES_MAX if self._name in PICTURES else TEXT_BYTES_MAX
        if len(self._content) + end - start > allowed:
            raise BadInput(f"{self._name[:80]} has more than {allowed} bytes")
        self._content += data[start:end]

    def _part_end(self) -> None:
        if self._name in PICTURES:
            self._pictures[self._name] = bytes(self._content)
        else:
            try:
                self._texts[self._name] = self._content.decode("utf-8")
            except UnicodeDecodeError:
                raise BadInput(f"{self._name[:80]} is no text in UTF-8") from None
        self._content = bytearray()

    def _end(self) -> None:
        self._complete = True
