"""Why the gate let a look pass, as a picture: each cell's z as heat over the gray picture the gate saw.

Yellow has just passed, red stands out twice as far; the cell that stands out most has a white frame. What is not
watched is dark blue, clocks that were found are green. There are no words in it, so it needs no language.
"""

import io

import numpy as np
from PIL import Image, ImageDraw

from camserver.media.change import Gray
from camserver.media.contrast import Bools, Compared, Floats, cell_px, factor_of, grid_of
from camserver.media.watched import Watch, watched_cells

WIDTH_MIN = 960
JPEG_QUALITY = 85
UNWATCHED = (20, 30, 110)
CLOCK = (30, 170, 80)
FRAME = (255, 255, 255)
ZONE = (120, 220, 255)
# How much of the heat covers the picture where it is strongest.
HEAT_MAX = 0.65
TINT = 0.55


def draw(gray: Gray, compared: Compared | None, watch: Watch, z_pass: float) -> bytes:
    """A JPEG. Work for a thread."""
    enlarged = max(-(-WIDTH_MIN // gray.shape[1]), 1)
    side = factor_of(gray.shape) * cell_px(gray.shape) * enlarged
    picture = np.kron(gray, np.ones((enlarged, enlarged), np.uint8))
    colours = np.repeat(picture[:, :, None], 3, axis=2).astype(np.float32)
    grid = grid_of(gray.shape)
    if compared is not None and compared.z is not None:
        _heat(colours, compared.z, z_pass, side)
    watched = watched_cells(watch, *gray.shape, *grid)
    if watched is not None:
        _tint(colours, ~watched, UNWATCHED, side)
    if compared is not None and watch.masks_clocks:
        _tint(colours, compared.scene.clocks.cells, CLOCK, side)
    image = Image.fromarray(colours.astype(np.uint8))
    _lines(image, compared, watch, side)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=JPEG_QUALITY)
    return out.getvalue()


def _heat(colours: Floats, z: Floats, z_pass: float, side: int) -> None:
    """From nothing at half of what passes over yellow to red at twice of it."""
    height, width, _ = colours.shape
    strength = np.clip(z / np.float32(z_pass), 0, 2)
    cover = np.clip((strength - 0.5) * 1.3, 0, 1) * HEAT_MAX
    yellow = np.clip(2 - strength, 0, 1) * 220
    heat = np.stack([np.full_like(yellow, 255), yellow, np.zeros_like(yellow)], axis=2)
    large = np.ones((side, side, 1), np.float32)
    covers = np.kron(cover[:, :, None], large)[:height, :width]
    heats = np.kron(heat, large)[:height, :width]
    # What does not fill a square of pixels at the right and lower edge is not measured.
    part = colours[: covers.shape[0], : covers.shape[1]]
    part += covers * (heats - part)


def _tint(colours: Floats, cells: Bools, colour: tuple[int, int, int], side: int) -> None:
    spots = np.kron(cells, np.ones((side, side), np.bool_))[: colours.shape[0], : colours.shape[1]]
    part = colours[: spots.shape[0], : spots.shape[1]]
    part[spots] += np.float32(TINT) * (np.array(colour, np.float32) - part[spots])


def _lines(image: Image.Image, compared: Compared | None, watch: Watch, side: int) -> None:
    pen = ImageDraw.Draw(image)
    width, height = image.size
    for polygon in watch.zones:
        corners = [(x * width, y * height) for x, y in polygon]
        pen.line([*corners, corners[0]], fill=ZONE, width=2)
    if compared is not None and compared.cell is not None:
        row, column = compared.cell
        pen.rectangle(
            [column * side, row * side, (column + 1) * side - 1, (row + 1) * side - 1], outline=FRAME, width=2
        )
