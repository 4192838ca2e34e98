"""RTSP requests and replies as bytes (RFC 2326), with bounds. No network here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD_MAX_BYTES = 16_384
BODY_MAX_BYTES = 65_536
HEADERS_MAX = 100
AGENT = "camserver"
_STATUS = re.compile(r"RTSP/\d\.\d\s+(\d{3})\b")
_END = re.compile(rb"\r?\n\r?\n")


class Unfit(Exception):
    """Nothing is wrong with the camera, but another reader must read it. The text says why, without any secret."""


class BrokenTalk(Exception):
    """What came is no RTSP. The text says what is wrong, without quoting it."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names in lower case
    body: bytes = b""

    def header(self, name: str) -> str:
        return self.headers.get(name, ("",))[0]


def request(method: str, uri: str, cseq: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {uri} RTSP/1.0", f"CSeq: {cseq}", f"User-Agent: {AGENT}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise BrokenTalk("an address or a header holds a line break")
    return "\r\n".join([*lines, "", ""]).encode()


def parse_message(data: bytes | bytearray) -> tuple[Reply | None, int] | None:
    """A message at the beginning of `data` and its length; None while it is incomplete.

    A camera's own requests give (None, length): they are passed over.
    """
    end = _END.search(data, 0, HEAD_MAX_BYTES + 4)
    if end is None:
        if len(data) > HEAD_MAX_BYTES:
            raise BrokenTalk("the head of a message is too long")
        return None
    lines = data[: end.start()].decode("utf-8", "replace").splitlines()
    headers: dict[str, tuple[str, ...]] = {}
    for line in lines[1 : HEADERS_MAX + 1]:
        name, _, value = line.partition(":")
        key = name.strip().lower()
        headers[key] = (*headers.get(key, ()), value.strip())
    length = headers.get("content-length", ("0",))[0]
    if not length.isdecimal() or len(length) > 9 or int(length) > BODY_MAX_BYTES:
        raise BrokenTalk("the body of a message is too long")
    total = end.end() + int(length)
    if len(data) < total:
        return None
    status = _STATUS.match(lines[0])
    if status is None:
        return None, total
    return Reply(int(status[1]), headers, bytes(data[end.end() : total])), total
