"""Pictures as they come from a stranger: bounded before they are decoded, then in RGB and in numbers."""

import io
import threading
from collections.abc import Sequence

import numpy as np
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.detections import BRIGHT_ABOVE_LUMA, Quality
from camserver.domain.gate import Measured
from camserver.domain.polygons import Polygon
from camserver.media.cells import per_cell
from camserver.media.change import Gray, Reference, measure
from camserver.media.foreign_picture import UNREADABLE, check_scans, gray_of_bytes, in_rgb, upright
from camserver.media.jpeg_planes import Picture, planes_of
from camserver.media.polygon_pixels import Bools, drawn
from camserver.wire.analyzer import DiffInfo

# Above 6000 x 4000. A few bytes of PNG can ask for gigabytes of memory; this many pixels take 100 MB, twice if they
# are not in RGB. A picture of one line is scaled for seconds.
PIXELS_MAX = 25_000_000
SIDE_MAX = 16_384
# Pictures above this (a screen of 4K) are decoded one at a time, and then made smaller: no model sees more of them.
LARGE_PIXELS = 8_500_000
_one_large = threading.Lock()
# Pixels of other modes are numbers of colours, or bits.
_REDUCED_AS_THEY_ARE = ("L", "LA", "RGB", "RGBA", "CMYK")
# What the model and the measurements see is smaller than this; a JPEG is decoded at a half, a quarter or an eighth.
WIDTH_NEEDED = 640
# As for the looks' own measurements (decisions 2 and 3 of the gate): the numbers are about pictures of this width.
MEASURED_WIDTH = 320
# No camera's picture is as tall; what is costs no more than others.
MEASURED_HEIGHT_MAX = 4 * MEASURED_WIDTH
PIXEL_DELTA = 20
# Parts of the picture that are left out are left out in cells of so many measured pixels.
CELL_PX = 8
# Cells of one single value: a mask that the camera itself draws, crushed shadows. They say nothing about sharpness.
# Where there are only a few of them, or hardly anything else, the picture is taken as it is.
FLAT_LEAST, FLAT_MOST = 0.05, 0.8


def open_picture(content: bytes, name: str) -> Picture:
    """In planes, if it is as most cameras send it, otherwise in RGB; upright. BadInput when it is no picture."""
    check_scans(content, name)
    return planes_of(content, 2 * WIDTH_NEEDED) or decode(content, name)


def decode(content: bytes, name: str) -> Image.Image:
    """The picture in RGB, upright; BadInput when it is neither JPEG nor PNG, too large, endless, or cut off."""
    check_scans(content, name)
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG")) as picture:
            width, height = picture.size
            if width * height > PIXELS_MAX or max(width, height) > SIDE_MAX:
                raise BadInput(
                    f"{name} has {width}x{height} pixels; at most {PIXELS_MAX} and {SIDE_MAX} a side are allowed"
                )
            picture.draft("RGB", (min(WIDTH_NEEDED, width), 1))
            if width * height <= LARGE_PIXELS:
                return upright(in_rgb(picture), picture)
            with _one_large:
                return upright(_made_small(picture), picture)
    except UNREADABLE as error:
        raise BadInput(f"{name} is no readable JPEG or PNG ({type(error).__name__})") from None


def _made_small(picture: Image.Image) -> Image.Image:
    """A large picture in RGB, at a size that is enough; the large one is let go."""
    try:
        factor = min(picture.size) // WIDTH_NEEDED
        if factor <= 1:
            return gray_of_bytes(picture).convert("RGB")
        of_bytes = gray_of_bytes(picture)
        if of_bytes.mode not in _REDUCED_AS_THEY_ARE:
            return of_bytes.convert("RGB").reduce(factor)
        return of_bytes.reduce(factor).convert("RGB")
    finally:
        picture.close()


def measured_of(picture: Image.Image) -> Image.Image:
    """The picture at the size that is measured, averaged over area."""
    width, height = picture.size
    scale = min(MEASURED_WIDTH / width, MEASURED_HEIGHT_MAX / height)
    if scale >= 1:
        return picture
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    factor = width // size[0]
    if (size[0] * factor, size[1] * factor) == picture.size:
        return picture.reduce(factor)  # the same mean, in a quarter of the time
    return picture.resize(size, Image.Resampling.BOX)


def gray_of(picture: Image.Image) -> Gray:
    """Its luma at the size that is measured."""
    return np.asarray(measured_of(picture).convert("L"))


def hidden_pixels(shape: tuple[int, int], masks: Sequence[Polygon]) -> Bools | None:
    """What masks and their soft edges cover in a picture of this shape; None: nothing."""
    return _pixels(_widened(_drawn_cells(shape, masks)), shape) if masks else None


def region_pixels(shape: tuple[int, int], region: Polygon) -> Bools:
    """What a region covers, to a cell."""
    return _pixels(_drawn_cells(shape, (region,)), shape)


def quality_of(gray: Gray, hidden: Bools | None = None) -> Quality:
    """The picture in numbers, without what is hidden on purpose."""
    seen = gray if hidden is None else gray[~hidden]
    if not seen.size:
        return Quality(blur_score=0.0, mean_luma=128.0, bright_share=0.0)  # nothing to complain of
    return Quality(
        blur_score=_blur_score(gray, hidden),
        mean_luma=float(seen.mean(dtype=np.float64)),
        bright_share=int(np.count_nonzero(seen > BRIGHT_ABOVE_LUMA)) / seen.size,
    )


def diff_of(gray: Gray, before: Gray | None) -> DiffInfo:
    measured: Measured = measure(gray, Reference(before), PIXEL_DELTA, with_contrast=False)[0]
    comparable = before is not None and before.shape == gray.shape
    return DiffInfo(
        used_prev_image=comparable,
        diff_ratio=round(measured.diff_ratio, 6),
        luma_delta=round(measured.luma_delta, 3),
    )


def _blur_score(gray: Gray, hidden: Bools | None) -> float:
    """As `media.change.blur_score`, of what can be sharp: neither hidden nor without any structure at all.

    The edges of both are left out as well. They are sharp in the most blurred of pictures.
    """
    if min(gray.shape) < 3:
        return 100.0  # no pixel has neighbours on all sides
    wide = gray.astype(np.int16)
    inner = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * wide[1:-1, 1:-1]
    left_out = _left_out(gray, hidden)
    if left_out is not None:
        inner = inner[~left_out[1:-1, 1:-1]]
    variance = float(inner.var(dtype=np.float64)) if inner.size else 0.0
    return 100.0 / (1.0 + variance / 100.0)


def _left_out(gray: Gray, hidden: Bools | None) -> Bools | None:
    flat = per_cell(np.maximum, gray, CELL_PX) == per_cell(np.minimum, gray, CELL_PX)
    if not FLAT_LEAST <= np.count_nonzero(flat) / flat.size <= FLAT_MOST:
        return hidden
    # Twice: a mask that ends within a cell, and the ripples that a JPEG has beside it, leave some that are not flat.
    pixels = _pixels(_widened(_widened(flat)), gray.shape)
    both = pixels if hidden is None else pixels | hidden
    return hidden if np.count_nonzero(both) > (1 - FLAT_LEAST) * both.size else both


def _drawn_cells(shape: tuple[int, int], polygons: Sequence[Polygon]) -> Bools:
    """Drawn into cells, not pixels: what is drawn is kept for the next picture, and callers choose the polygons."""
    return drawn(tuple(polygons), -(-shape[0] // CELL_PX), -(-shape[1] // CELL_PX))


def _widened(cells: Bools) -> Bools:
    """With the cells around them."""
    padded = np.pad(cells, 1)
    across = padded[:, :-2] | padded[:, 1:-1] | padded[:, 2:]
    return across[:-2] | across[1:-1] | across[2:]


def _pixels(cells: Bools, shape: tuple[int, ...]) -> Bools:
    return cells.repeat(CELL_PX, axis=0).repeat(CELL_PX, axis=1)[: shape[0], : shape[1]]
