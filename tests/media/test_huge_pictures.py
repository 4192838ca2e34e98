"""Pictures and videos of some bytes that say they are huge are refused before they are decoded, wherever that is."""

import io
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.analysis import Box
from camserver.media import file_packets, rtsp_ffmpeg
from camserver.media.box_picture import draw_boxes
from camserver.media.grid_picture import draw_grid
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.pictures import PIXELS_MAX
from camserver.media.thumbnails import listed, thumbnail
from camserver.services.analyzer.pictures import open_picture
from tests.rig.pictures import jpeg

# The last ones have few pixels, and one side that no camera has.
SIZES = [(50_000, 50_000), (65_535, 65_535), (9_000, 9_000), (60_000, 600), (600, 60_000)]


def huge_jpeg(width: int, height: int) -> bytes:
    head = bytearray(jpeg(size=(16, 16)))
    frame = head.index(b"\xff\xc0")
    head[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    return bytes(head)


def huge_png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer = zlib.compressobj(9)
    line = b"\0" + bytes((width + 7) // 8)
    packed = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


BOX = Box(0.1, 0.1, 0.5, 0.5, "person", 0.5)
READERS: dict[str, Callable[[bytes], object]] = {
    "look": lambda content: JpegPicture(content, 640).full(),
    "list": listed,
    "message": thumbnail,
    "boxes": lambda content: draw_boxes(content, [BOX]),
    "grid": draw_grid,
    "analyzer": lambda content: open_picture(content, "image"),
}


@pytest.fixture
def undecoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("size", SIZES)
def test_a_huge_jpeg_is_not_decoded(reader: str, size: tuple[int, int]) -> None:
    with pytest.raises(BadInput):
        READERS[reader](huge_jpeg(*size))


@pytest.fixture(scope="module")
def pngs() -> list[bytes]:
    return [huge_png(*size) for size in [(50_000, 20_000), (9_000, 9_000), (60_000, 600), (2_000_000, 20)]]


@pytest.mark.usefixtures("undecoded")
@pytest.mark.parametrize("reader", READERS)
def test_a_huge_png_is_not_decoded(reader: str, pngs: list[bytes]) -> None:
    for content in pngs:
        with pytest.raises(BadInput):
            READERS[reader](content)


def test_a_jpeg_of_a_thousand_scans_is_not_drawn_on() -> None:
    out = io.BytesIO()
    Image.new("RGB", (64, 64)).save(out, "JPEG", progressive=True)
    scans = out.getvalue()[:-2] + b"\xff\xda" * 1000
    for reader in ("boxes", "grid"):
        with pytest.raises(BadInput, match="scans"):
            READERS[reader](scans)


_FILM = """
import sys
from fractions import Fraction
from camserver.base.errors import BadInput
from camserver.media.mp4_clip import film
from camserver.media.packets import Packet, Stream

data = bytes.fromhex(sys.argv[1])
stream = Stream("h264", b"", Fraction(1, 90_000))
try:
    film([Packet(stream, 9000 * at, 9000 * at, at == 0, data, 100 * at) for at in range(3)])
except BadInput:
    pass
status = open("/proc/self/status").read().split()
print(int(status[status.index("VmHWM:") + 1]))
"""


def test_a_video_of_huge_pictures_is_put_into_a_film_without_decoding_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def peak_kb(width: int) -> int:
        done = subprocess.run(
            [sys.executable, "-c", _FILM, huge_h264(width, width).hex()],
            capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)},
        )  # fmt: skip
        return int(done.stdout)

    assert PIXELS_MAX < 16_000 * 16_000
    assert peak_kb(16_000) - peak_kb(320) < 300_000


@pytest.mark.parametrize("options", [file_packets.OPTIONS, rtsp_ffmpeg.OPTIONS])
def test_what_ffmpeg_opens_is_bounded(options: dict[str, str]) -> None:
    assert options["max_pixels"] == str(PIXELS_MAX)


def huge_h264(width: int, height: int) -> bytes:
    """Parameter sets of such pictures, and the beginnings of some."""

    def number(value: int) -> str:
        bits = bin(value + 1)[2:]
        return "0" * (len(bits) - 1) + bits

    def unit(head: int, bits: str) -> bytes:
        bits += "1"
        bits += "0" * (-len(bits) % 8)
        made = bytearray()
        for at in range(0, len(bits), 8):
            byte = int(bits[at : at + 8], 2)
            if made[-2:] == b"\0\0" and byte <= 3:
                made.append(3)
            made.append(byte)
        return b"\0\0\0\1" + bytes([head]) + made

    size = number(width // 16 - 1) + number(height // 16 - 1)
    sequence = f"{66:08b}{0:08b}{62:08b}" + number(0) * 2 + number(2) + number(1) + "0" + size + "1000"
    picture = number(0) * 2 + "00" + number(0) * 3 + "000" + number(0) * 3 + "000"
    begun = number(0) + number(7) + number(0) + "0000" + number(0) + "00" + number(0) + "1" * 40
    return unit(0x67, sequence) + unit(0x68, picture) + unit(0x65, begun) * 3
