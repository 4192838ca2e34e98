"""Pictures and vocabularies that checks send. The pictures are made here, so nothing has to be installed."""

import io
import json
import struct
import zlib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from PIL import Image

from camserver.domain.vocabulary import SHIPPED_FILE
from camserver.wire.analyzer import IMAGE_BYTES_MAX

SIZE: Final = (640, 360)
SEGMENT_BYTES_MAX: Final = 65_533  # of a JPEG comment, without its marker
OTHER_VERSION: Final = "conformance.1"
CUT_AT: Final = 0.5
# Far above what a camera has; decoded it would take 3.6 GB.
BOMB_SIDE: Final = 30_000


def shipped_vocabulary() -> dict[str, Any]:
    text = resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text(encoding="utf-8")
    return dict(json.loads(text))


def other_vocabulary(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same under another name and with the tags of counts only: an analyzer that follows it says little."""
    tags = [tag for tag in document["tags"] if str(tag["id"]).startswith("count.")]
    return {**document, "schema_version": OTHER_VERSION, "tags": tags or list(document["tags"])[:1]}


def scene(form: str = "JPEG") -> bytes:
    """Bars and a gradient: sharp, neither dark nor glaring, and nothing to be recognized in it."""
    picture = Image.linear_gradient("L").resize(SIZE)
    bars = Image.new("L", SIZE)
    for x in range(0, SIZE[0], 16):
        bars.paste(60 + 130 * (x // 16 % 2), (x, 0, x + 16, SIZE[1]))
    return _encoded(Image.blend(picture, bars, 0.7).convert("RGB"), form)


def plain(luma: int) -> bytes:
    """A picture of one shade."""
    return _encoded(Image.new("RGB", SIZE, (luma, luma, luma)), "JPEG")


def cut_off() -> bytes:
    whole = scene()
    return whole[: round(len(whole) * CUT_AT)]


def padded(length: int) -> bytes:
    """A picture of exactly that many bytes, whole and readable: comments fill it."""
    whole = scene()
    fill = length - len(whole)
    comments = bytearray()
    while fill - len(comments) > 0:
        # Never leave less than a comment's own four bytes for the last one.
        left = fill - len(comments)
        take = min(left - 4, SEGMENT_BYTES_MAX)
        if 0 < left - 4 - take < 4:
            take -= 4
        comments += b"\xff\xfe" + struct.pack(">H", take + 2) + bytes(take)
    return whole[:2] + bytes(comments) + whole[2:]


def largest() -> bytes:
    return padded(IMAGE_BYTES_MAX)


def too_large() -> bytes:
    return padded(IMAGE_BYTES_MAX + 1)


def bomb() -> bytes:
    """A PNG of a few kilobytes that asks for gigabytes."""
    header = struct.pack(">IIBBBBB", BOMB_SIDE, BOMB_SIDE, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(2_000_000), 9)
    parts = (_chunk(b"IHDR", header), _chunk(b"IDAT", rows), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _encoded(picture: Image.Image, form: str) -> bytes:
    file = io.BytesIO()
    picture.save(file, form, **({"quality": 90} if form == "JPEG" else {}))
    return file.getvalue()
