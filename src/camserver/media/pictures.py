"""What is done with one picture: made small for analysis, measured against the picture before.

All of it is work for a thread, never for an event loop. The numbers are recorded and judged by `domain.gate`;
nothing is decided here. Decisions 1 to 3 say what the numbers mean.
"""

import io
from dataclasses import dataclass

from PIL import Image, ImageChops, ImageFilter, ImageStat

from camserver.base.errors import BadInput
from camserver.domain.gate import FIRST_DIFF_RATIO, FIRST_LUMA_DELTA

JPEG_QUALITY = 80
# 8K video has 33 million; beyond it a few bytes could ask for gigabytes of memory.
PIXELS_MAX = 40_000_000
# Halved and moved by half the range, the second derivative fits into a byte wherever it is below 256.
_LAPLACE_SCALE = 2
_LAPLACE = ImageFilter.Kernel((3, 3), (0, 1, 0, 1, -4, 1, 0, 1, 0), scale=_LAPLACE_SCALE, offset=128)

# What Pillow raises for a broken file; it has no tree of its own for that.
_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


@dataclass(frozen=True, slots=True)
class Gray:
    """A picture's luma at diff width: what the next look is compared with."""

    size: tuple[int, int]
    luma: bytes


@dataclass(frozen=True, slots=True)
class Change:
    diff_ratio: float  # share of pixels that changed, 0..1
    luma_delta: float  # mean luma now minus before, -255..255


@dataclass(frozen=True, slots=True)
class Developed:
    """A picture ready to be judged and sent."""

    full_size: tuple[int, int]
    infer_size: tuple[int, int]
    infer_jpeg: bytes
    infer_hash64_hex: str
    gray: Gray
    change: Change
    blur_score: float  # 0..100, higher is blurrier


def develop(jpeg: bytes, *, infer_width: int, diff_width: int, before: Gray | None, pixel_delta: int) -> Developed:
    """Makes the infer picture of `jpeg` and measures it. BadInput when it is no readable JPEG.

    The infer picture is never wider than the picture itself: enlarging adds nothing.
    """
    full_size, picture = _decode(jpeg, max(infer_width, diff_width))
    infer = _to_width(picture, infer_width)
    gray_picture = _to_width(picture.convert("L"), diff_width)
    gray = Gray(gray_picture.size, gray_picture.tobytes())
    out = io.BytesIO()
    infer.save(out, "JPEG", quality=JPEG_QUALITY)
    return Developed(
        full_size=full_size,
        infer_size=infer.size,
        infer_jpeg=out.getvalue(),
        infer_hash64_hex=difference_hash(infer),
        gray=gray,
        change=measure_change(gray, before, pixel_delta),
        blur_score=blur_score(gray_picture),
    )


def measure_change(now: Gray, before: Gray | None, pixel_delta: int) -> Change:
    """How much changed. Without a picture before, or with one of another size, everything did."""
    if before is None or before.size != now.size:
        return Change(FIRST_DIFF_RATIO, FIRST_LUMA_DELTA)
    new, old = (Image.frombytes("L", gray.size, gray.luma) for gray in (now, before))
    changed = sum(ImageChops.difference(new, old).histogram()[pixel_delta + 1 :])
    delta = ImageStat.Stat(new).mean[0] - ImageStat.Stat(old).mean[0]
    return Change(changed / (now.size[0] * now.size[1]), delta)


def blur_score(gray: Image.Image) -> float:
    """100 / (1 + variance of the Laplacian / 100)."""
    if gray.width < 3 or gray.height < 3:
        return 100.0  # no pixel has neighbours on all sides
    # The filter leaves a rim of one pixel as it was, which is no derivative.
    inner = gray.filter(_LAPLACE).crop((1, 1, gray.width - 1, gray.height - 1))
    variance = ImageStat.Stat(inner).var[0] * _LAPLACE_SCALE**2
    return 100.0 / (1.0 + variance / 100.0)


def difference_hash(picture: Image.Image) -> str:
    """64 bits of which neighbour is brighter: equal for pictures that look equal."""
    small = picture.convert("L").resize((9, 8), Image.Resampling.BOX).tobytes()
    bits = 0
    for row in range(8):
        for column in range(8):
            left = row * 9 + column
            bits = bits << 1 | (small[left] > small[left + 1])
    return f"{bits:016x}"


def _decode(jpeg: bytes, width_needed: int) -> tuple[tuple[int, int], Image.Image]:
    """The full size, and the picture decoded at least as wide as needed (or as it is)."""
    try:
        picture = Image.open(io.BytesIO(jpeg), formats=("JPEG",))
        full_size = picture.size
        if full_size[0] * full_size[1] > PIXELS_MAX:
            raise BadInput(f"a picture of {full_size[0]}x{full_size[1]} is too large to be decoded")
        # A JPEG is decoded at a half, a quarter or an eighth for a fraction of the work.
        picture.draft("RGB", (min(width_needed, full_size[0]), 1))
        return full_size, picture.convert("RGB")
    except BadInput:
        raise
    except _UNREADABLE as error:
        raise BadInput(f"the picture is no readable JPEG: {type(error).__name__}") from None


def _to_width(picture: Image.Image, width: int) -> Image.Image:
    if picture.width <= width:
        return picture
    height = max(round(picture.height * width / picture.width), 1)
    return picture.resize((width, height), Image.Resampling.BOX)
