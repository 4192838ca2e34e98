"""How far a whole picture has moved, as on a mast in the wind, and moving it back.

Least squares over all pixels: what a small shift would change is the picture's slope times the shift. Good for a few
pixels; farther moves, turns and zooms are no shifts and are left as they are.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]

ROUNDS = 3
# What differs by more has not moved but is new; it must not pull the whole picture along.
RESIDUE_MAX = 30.0
SHIFT_MIN_PX = 0.1
SHIFT_MAX_PX = 6.0
# Moved back, it must be this much more like the reference, or it had not moved.
GAIN = 0.9


def steadied(now: Floats, reference: Floats) -> Floats | None:
    """The picture moved to where the reference is; None when it has not moved, or not simply moved."""
    across, down = shift_between(now, reference)
    size = max(abs(across), abs(down))
    if not SHIFT_MIN_PX <= size <= SHIFT_MAX_PX:
        return None
    back = moved(now, across, down)
    better = np.abs(back - reference).mean() < GAIN * np.abs(now - reference).mean()
    return back if better else None


def shift_between(now: Floats, reference: Floats) -> tuple[float, float]:
    """By how many pixels `now` has to be moved right and down to lie on the reference."""
    if min(now.shape) < 3:
        return 0.0, 0.0
    slope_across, slope_down = np.zeros_like(reference), np.zeros_like(reference)
    slope_across[:, 1:-1] = (reference[:, 2:] - reference[:, :-2]) / 2
    slope_down[1:-1] = (reference[2:] - reference[:-2]) / 2
    a, b = float(np.vdot(slope_across, slope_across)), float(np.vdot(slope_across, slope_down))
    d = float(np.vdot(slope_down, slope_down))
    determinant = a * d - b * b
    if determinant <= 1e-3 * a * d:
        return 0.0, 0.0  # stripes or nothing: a shift along them can't be seen
    across = down = 0.0
    for _ in range(ROUNDS):
        back = now if across == down == 0 else moved(now, across, down)
        residue = np.clip(back - reference, -RESIDUE_MAX, RESIDUE_MAX)
        e, f = float(np.vdot(slope_across, residue)), float(np.vdot(slope_down, residue))
        across, down = across + (d * e - b * f) / determinant, down + (a * f - b * e) / determinant
        if max(abs(across), abs(down)) < SHIFT_MIN_PX / 2 or max(abs(across), abs(down)) > SHIFT_MAX_PX:
            break
    return across, down


def moved(picture: Floats, across: float, down: float) -> Floats:
    """The picture moved right and down, between pixels too; at the edges its last rows and columns are repeated."""
    return _along(_along(picture, down).T, across).T


def _along(picture: Floats, by: float) -> Floats:
    whole = int(np.floor(by))
    part = np.float32(by - whole)
    places = np.arange(picture.shape[0]) - whole
    last = picture.shape[0] - 1
    here, before = picture[np.clip(places, 0, last)], picture[np.clip(places - 1, 0, last)]
    return np.asarray(here + part * (before - here), np.float32)
