"""Pictures of a real street: frames of the footage that set-up fetches, and of Debian's opencv-doc where it is there.

A missing asset skips the test that asks for it, loudly; where CI=true it fails it.
"""

import io
import os
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from PIL import Image

from camserver.base import assets

VTEST = Path("/usr/share/doc/opencv-doc/examples/data/vtest.avi")
# A cyclist is near and in full view here; found by every model that was tried.
CYCLIST_FRAME = 125


def asset(name: str) -> Path:
    """A file of assets.toml, fetched by `make setup`."""
    found = assets.find(name, Path("no data folder"))
    return _missing(f"{name} is missing: run `make setup`") if found is None else found


def pedestrians() -> Path:
    """A fixed camera over a place with several people in every frame."""
    if not VTEST.exists():
        # More of what the fetched footage shows already, and a large package: never required.
        pytest.skip("vtest.avi is missing: apt install opencv-doc")
    return VTEST


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(f"{what} (skipped where CI is not set)", pytrace=False)
    pytest.skip(what)


@cache
def frame(video: Path, number: int) -> bytes:
    """One frame of a video as a JPEG."""
    return frames(video, range(number, number + 1))[0]


def frames(video: Path, numbers: range) -> list[bytes]:
    """Some frames of a video as JPEGs, in their order there."""
    import av

    made = []
    with av.open(str(video)) as container:
        for index, picture in enumerate(container.decode(video=0)):
            if index in numbers:
                out = io.BytesIO()
                Image.fromarray(picture.to_ndarray(format="rgb24")).save(out, "JPEG", quality=90)
                made.append(out.getvalue())
            if len(made) == len(numbers):
                return made
    raise ValueError(f"{video} has no frame {numbers[len(made)]}")


def cyclist() -> bytes:
    return frame(asset(assets.FOOTAGE), CYCLIST_FRAME)
