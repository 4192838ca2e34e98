"""Draws polygons into pixels: parts of a picture that nobody may see are made black.

Polygons are shares of the picture as it is shown after rotation (domain/polygons.py). What is black here is black in
everything made of the picture: it happens before anything else (decision 9). Work for a thread.
"""

from collections.abc import Sequence

import numpy as np
from av.video.frame import VideoFrame
from numpy.typing import NDArray
from PIL import Image

from camserver.base.errors import Bug
from camserver.domain.polygons import Polygon
from camserver.media.jpeg_picture import JpegPicture
from camserver.media.pictures import Picture
from camserver.media.polygon_pixels import drawn
from camserver.media.video_picture import VideoPicture, with_planes

# Of limited-range video; full-range video shows it as a black that is not quite the deepest.
BLACK_LUMA, NO_COLOUR = 16, 128


def blacken(picture: Picture, polygons: Sequence[Polygon]) -> Picture:
    """The picture with black in place of what the polygons cover; itself when there are none."""
    if not polygons:
        return picture
    drawn = tuple(polygons)
    if isinstance(picture, JpegPicture):
        return picture.edited(lambda image: _blacken_image(image, drawn))
    if isinstance(picture, VideoPicture):
        return VideoPicture(blacken_frame(picture.frame, drawn))
    raise Bug(f"pictures of type {type(picture).__name__} can't be masked")


def blacken_frame(frame: VideoFrame, polygons: tuple[Polygon, ...]) -> VideoFrame:
    """A copy: what a decoder gave may be what it decodes the next picture from."""

    def paint(planes: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        luma, *colours = planes
        covered = drawn(polygons, *luma.shape)
        luma[covered] = BLACK_LUMA
        # Colour has a quarter of the pixels: one that is covered in part has none.
        quarter = covered[0::2, 0::2] | covered[1::2, 0::2] | covered[0::2, 1::2] | covered[1::2, 1::2]
        for colour in colours:
            colour[quarter] = NO_COLOUR
        return planes

    return with_planes(frame, paint)


def _blacken_image(image: Image.Image, polygons: tuple[Polygon, ...]) -> Image.Image:
    covered = Image.fromarray(drawn(polygons, image.height, image.width))
    masked = image.copy()
    masked.paste((0, 0, 0), (0, 0), covered)
    return masked
