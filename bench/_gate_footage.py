"""Footage with truth for the gate's figures: still backgrounds and walkers cut out of real video.

Walkers come from a fixed camera over a place with people (Debian's opencv-doc): what differs from the median picture
is a person, followed from frame to frame. Backgrounds: that median, one shot of the street footage that set-up
fetches, and photos. The rule's numbers were chosen on the first three, and on all walkers at other times and places;
the last two were not looked at before the rule was settled.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from camserver.base import assets

Floats: TypeAlias = NDArray[np.float32]

WIDTH = 640
EXAMPLES = Path("/usr/share/doc/opencv-doc/examples/data")
WALKERS_FPS = 10
# A shot without a cut; cars pass in it, the median of its frames is without them.
SHOT = range(160, 205)
TRACK_FRAMES_MIN = 40
AREA_MIN_PX, AREA_MAX_PX = 250, 9000
DIFFERENT_BY = 26


@dataclass(frozen=True, slots=True)
class Cutout:
    """One picture of a walker."""

    luma: Floats
    alpha: Floats  # 0..1
    x: float  # of its middle, in pixels of the footage
    y: float


@dataclass(frozen=True, slots=True)
class Footage:
    backgrounds: dict[str, Floats]  # luma, WIDTH wide
    tracks: list[list[Cutout]]  # ten pictures a second

    @property
    def judging(self) -> list[str]:
        """Backgrounds on which nothing was chosen."""
        return ["facade", "home"]


def load() -> Footage:
    """Reads everything; ends the program with a clear word when something is missing."""
    video = EXAMPLES / "vtest.avi"
    street = assets.find(assets.FOOTAGE, Path("no data folder"))
    if not video.exists() or street is None:
        missing = "opencv-doc (apt install opencv-doc)" if street else f"{assets.FOOTAGE} (make setup)"
        sys.exit(f"error: the footage is missing: {missing}")
    frames = _luma_frames(video)
    median = np.median(np.stack(frames[::12]), axis=0).astype(np.float32)
    shot = np.median(np.stack([frame for n, frame in enumerate(_luma_frames(street)) if n in SHOT]), axis=0)
    backgrounds = {
        "yard": _wide(median[60:492]),
        "street": _wide(shot.astype(np.float32)),
        "houses": _photo("leuvenA.jpg"),
        "facade": _photo("building.jpg"),
        "home": _photo("home.jpg"),
    }
    return Footage(backgrounds, _tracks(frames, median))


def _luma_frames(video: Path) -> list[NDArray[np.uint8]]:
    with av.open(str(video)) as container:
        return [np.asarray(frame.to_ndarray(format="gray"), np.uint8) for frame in container.decode(video=0)]


def _photo(name: str) -> Floats:
    return _wide(np.asarray(cv2.imread(str(EXAMPLES / name), cv2.IMREAD_GRAYSCALE), np.float32))


def _wide(luma: Floats) -> Floats:
    """WIDTH wide and of an even height, so that halving it loses nothing."""
    height = round(luma.shape[0] * WIDTH / luma.shape[1]) // 2 * 2
    return np.asarray(cv2.resize(luma, (WIDTH, height), interpolation=cv2.INTER_AREA), np.float32)


def _tracks(frames: list[NDArray[np.uint8]], median: Floats) -> list[list[Cutout]]:
    """Follows each person by the nearest middle; a track ends where two people meet or one is lost."""
    open_tracks: list[list[Cutout]] = []
    done: list[list[Cutout]] = []
    for frame in frames:
        found = _people(frame, median)
        going: list[list[Cutout]] = []
        for track in open_tracks:
            near = [one for one in found if _follows(track[-1], one)]
            if len(near) == 1:
                found = [one for one in found if one is not near[0]]
                track.append(near[0])
                going.append(track)
            else:
                done.append(track)
        open_tracks = going + [[one] for one in found]
    return [track for track in done + open_tracks if len(track) >= TRACK_FRAMES_MIN]


def _follows(before: Cutout, now: Cutout) -> bool:
    size_before, size_now = float(before.alpha.sum()), float(now.alpha.sum())
    return abs(before.x - now.x) < 14 and abs(before.y - now.y) < 14 and 0.5 < size_now / size_before < 2.0


def _people(frame: NDArray[np.uint8], median: Floats) -> list[Cutout]:
    different = (np.abs(frame - median) > DIFFERENT_BY).astype(np.uint8)
    closed = cv2.morphologyEx(different, cv2.MORPH_CLOSE, np.ones((9, 5), np.uint8))
    clean = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    count, labels, stats, middles = cv2.connectedComponentsWithStats(clean)
    found = []
    for number in range(1, count):
        left, top, width, height, area = (int(value) for value in stats[number])
        whole = left > 0 and top > 0 and left + width < frame.shape[1] and top + height < frame.shape[0]
        if not whole or not AREA_MIN_PX <= area <= AREA_MAX_PX or height < 1.3 * width:
            continue
        place: Any = np.s_[top : top + height, left : left + width]
        alpha = cv2.GaussianBlur((labels[place] == number).astype(np.float32), (3, 3), 0)
        found.append(
            Cutout(
                frame[place].astype(np.float32),
                np.asarray(alpha, np.float32),
                float(middles[number][0]),
                float(middles[number][1]),
            )
        )
    return found
