"""A picture brought to the size that a model sees, and places in it brought back to the picture."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from camserver.media.jpeg_planes import Picture, Planes

# A picture of another shape stands at the upper left corner or in the middle, with bars beside it, or is stretched.
Fit = Literal["corner", "centre", "stretch"]
Place = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Fitted:
    """What the model sees. The picture fills the part of it that the edges name, in shares of width and height."""

    pixels: NDArray[np.uint8]  # rows x columns x RGB
    left: float
    top: float
    width: float
    height: float

    def place(self, x1: float, y1: float, x2: float, y2: float) -> Place | None:
        """A place in what the model sees as one in the picture, at most its own edges; None when nothing is left.

        All in shares of width and height.
        """
        edges = (
            (x1 - self.left) / self.width,
            (y1 - self.top) / self.height,
            (x2 - self.left) / self.width,
            (y2 - self.top) / self.height,
        )
        left, top, right, bottom = (round(min(max(edge, 0.0), 1.0), 4) for edge in edges)
        return (left, top, right, bottom) if left < right and top < bottom else None


def fit(picture: Picture, size: tuple[int, int], how: Fit, bar_grey: int) -> Fitted:
    """The picture at `size`. With bars its shape is kept; stretched, people become too wide to be recognized well."""
    if how == "stretch":
        return Fitted(_scaled(picture, size), 0.0, 0.0, 1.0, 1.0)
    scale = min(size[0] / picture.size[0], size[1] / picture.size[1])
    width, height = (max(round(length * scale), 1) for length in picture.size)
    left, top = ((size[0] - width) // 2, (size[1] - height) // 2) if how == "centre" else (0, 0)
    whole = np.full((size[1], size[0], 3), bar_grey, np.uint8)
    whole[top : top + height, left : left + width] = _scaled(picture, (width, height))
    return Fitted(whole, left / size[0], top / size[1], width / size[0], height / size[1])


def _scaled(picture: Picture, size: tuple[int, int]) -> NDArray[np.uint8]:
    if isinstance(picture, Planes):
        return picture.scaled(size)
    return np.asarray(picture.resize(size, Image.Resampling.BILINEAR))
