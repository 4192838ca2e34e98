"""Pictures as they come from a stranger: bounded before they are decoded, then in RGB and in numbers."""

import io

import numpy as np
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.detections import BRIGHT_ABOVE_LUMA, Quality
from camserver.domain.gate import Measured
from camserver.media.change import Gray, Reference, blur_score, measure
from camserver.wire.analyzer import DiffInfo

# Above 6000 x 4000. A few bytes of PNG can ask for gigabytes of memory; this many pixels take 75 MB.
PIXELS_MAX = 25_000_000
# What the model and the measurements see is smaller than this; a JPEG is decoded at a half, a quarter or an eighth.
WIDTH_NEEDED = 640
# As for the looks' own measurements (decisions 2 and 3 of the gate): the numbers are about pictures of this width.
MEASURED_WIDTH = 320
PIXEL_DELTA = 20

# Pillow has no tree of its own for what is wrong with a file.
_UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)


def decode(content: bytes, name: str) -> Image.Image:
    """The picture in RGB; BadInput when it is neither JPEG nor PNG, too large, or cut off."""
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as picture:
            width, height = picture.size
            if width * height > PIXELS_MAX:
                raise BadInput(f"{name} has {width}x{height} pixels; at most {PIXELS_MAX} are allowed")
            picture.draft("RGB", (min(WIDTH_NEEDED, width), 1))
            return picture.convert("RGB")
    except _UNREADABLE as error:
        raise BadInput(f"{name} is no readable JPEG or PNG ({type(error).__name__})") from None


def gray_of(picture: Image.Image) -> Gray:
    """Its luma at the width that is measured, averaged over area."""
    width, height = picture.size
    if width > MEASURED_WIDTH:
        picture = picture.resize(
            (MEASURED_WIDTH, max(round(height * MEASURED_WIDTH / width), 1)), Image.Resampling.BOX
        )
    return np.asarray(picture.convert("L"))


def quality_of(gray: Gray) -> Quality:
    return Quality(
        blur_score=blur_score(gray),
        mean_luma=float(gray.mean(dtype=np.float64)),
        bright_share=int(np.count_nonzero(gray > BRIGHT_ABOVE_LUMA)) / gray.size,
    )


def diff_of(gray: Gray, before: Gray | None) -> DiffInfo:
    measured: Measured = measure(gray, Reference(before), PIXEL_DELTA, with_contrast=False)[0]
    comparable = before is not None and before.shape == gray.shape
    return DiffInfo(
        used_prev_image=comparable,
        diff_ratio=round(measured.diff_ratio, 6),
        luma_delta=round(measured.luma_delta, 3),
    )
