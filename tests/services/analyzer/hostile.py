"""Pictures that ask for more than they are worth (bombs, odd forms), cut off and lying; what each gets."""

import io
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from PIL import Image

from camserver.media.foreign_picture import SCANS_MAX
from camserver.services.analyzer.pictures import SIDE_MAX
from tests.services.analyzer.rig import SHARP

# The most pixels that are allowed, in a square.
SIDE = 5000
SIGNATURE = b"\x89PNG\r\n\x1a\n"
BOMB_BYTES = 200_000_000
ROWS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Hostile:
    name: str
    content: bytes
    status: int


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def made(mode: str, size: tuple[int, int], form: str = "PNG", **how: Any) -> bytes:
    out = io.BytesIO()
    Image.new(mode, size, 0).save(out, form, **how)
    return out.getvalue()


def png(
    width: int, height: int, depth: int, colour: int, *, before: bytes = b"", pixels: bytes | None = None
) -> bytes:
    """A PNG whose pixels are all zero (or packed already); `before` are chunks before them."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    packer = zlib.compressobj(1)
    rows = bytes((1 + (width * channels * depth + 7) // 8) * min(height, ROWS_AT_ONCE))
    packed = b"".join(packer.compress(rows) for _ in range(height // min(height, ROWS_AT_ONCE))) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(768)) if colour == 3 else b""
    return (
        SIGNATURE + chunk(b"IHDR", header) + before + palette + chunk(b"IDAT", pixels or packed) + chunk(b"IEND", b"")
    )


@cache
def bomb() -> bytes:
    packer = zlib.compressobj(1)
    piece = bytes(1_000_000)
    return b"".join(packer.compress(piece) for _ in range(BOMB_BYTES // len(piece))) + packer.flush()


def animated() -> bytes:
    out = io.BytesIO()
    frames = [Image.new("RGB", (400, 300), (shade, 0, 0)) for shade in range(0, 250, 5)]
    frames[0].save(out, "PNG", save_all=True, append_images=frames[1:])
    return out.getvalue()


def lying_jpeg(width: int, height: int) -> bytes:
    """A small JPEG whose frame header announces another size."""
    at = SHARP.index(b"\xff\xc0") + 5
    return SHARP[:at] + struct.pack(">HH", height, width) + SHARP[at + 4 :]


def of_scans(count: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """A progressive JPEG whose last scan comes again and again, until there are so many."""
    content = made("RGB", size, "JPEG", progressive=True)
    last, end = content.rindex(b"\xff\xda"), content.rindex(b"\xff\xd9")
    return content[:end] + content[last:end] * (count - content.count(b"\xff\xda")) + content[end:]


def rotated() -> bytes:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    with Image.open(io.BytesIO(SHARP)) as picture:
        picture.save(out, "JPEG", exif=exif)
    return out.getvalue()


def all_hostile() -> Iterator[Hostile]:
    yield from _large()
    yield from _odd()
    yield from _broken()


def _large() -> Iterator[Hostile]:
    for name, depth, colour in (
        ("rgb", 8, 2),
        ("rgba", 8, 6),
        ("gray of 16 bits", 16, 0),
        ("palette", 8, 3),
        ("one bit", 1, 0),
    ):
        yield Hostile(f"25 Mpx png, {name}", png(SIDE, SIDE, depth, colour), 200)
    yield Hostile("25 Mpx jpeg", made("RGB", (SIDE, SIDE), "JPEG"), 200)
    progressive = made("RGB", (SIDE, SIDE), "JPEG", progressive=True, subsampling=0)
    yield Hostile("25 Mpx jpeg, progressive", progressive, 200)
    yield Hostile("25 Mpx jpeg of a thousand scans", of_scans(1000, (SIDE, SIDE)), 400)
    yield Hostile("25 Mpx jpeg, cmyk", made("CMYK", (SIDE, SIDE), "JPEG"), 200)
    yield Hostile("a line", png(25_000_000, 1, 8, 0), 400)
    yield Hostile("a column", png(1, 25_000_000, 1, 0), 400)
    yield Hostile("a long line", png(SIDE_MAX, 1, 8, 0), 200)
    yield Hostile("a long column", png(1, SIDE_MAX // ROWS_AT_ONCE * ROWS_AT_ONCE, 8, 0), 200)
    yield Hostile("a row more", png(SIDE, SIDE + ROWS_AT_ONCE, 1, 0), 400)


def _odd() -> Iterator[Hostile]:
    yield Hostile("animated png", animated(), 200)
    yield Hostile("jpeg that wants to be turned", rotated(), 200)
    yield Hostile("jpeg of as many scans as are allowed", of_scans(SCANS_MAX), 200)
    yield Hostile("jpeg of a scan more", of_scans(SCANS_MAX + 1), 400)
    yield Hostile("jpeg, cmyk", made("CMYK", (64, 48), "JPEG"), 200)
    yield Hostile("one pixel", png(1, 1, 1, 0), 200)
    yield Hostile("bomb in a text", png(8, 8, 8, 2, before=chunk(b"zTXt", b"a\0\0" + bomb())), 400)
    yield Hostile("bomb in a colour profile", png(8, 8, 8, 2, before=chunk(b"iCCP", b"a\0\0" + bomb())), 400)
    yield Hostile("bomb behind one pixel", png(1, 1, 8, 2, pixels=bomb()), 200)


def _broken() -> Iterator[Hostile]:
    yield Hostile("jpeg that says 65535 x 65535", lying_jpeg(65535, 65535), 400)
    yield Hostile("jpeg that says 5000 x 5000", lying_jpeg(SIDE, SIDE), 200)
    yield Hostile("png of no height", png(8, 8, 8, 2)[:20] + bytes(4) + png(8, 8, 8, 2)[24:], 400)
    yield Hostile("half a jpeg", SHARP[: len(SHARP) // 2], 400)
    yield Hostile("jpeg without its end", SHARP[:-2], 400)
    yield Hostile("half a png", png(64, 64, 8, 2)[:60], 400)
    yield Hostile("a tiff", made("RGB", (8, 8), "TIFF"), 400)
    yield Hostile("a page", b"<html><img src=x></html>", 400)
