"""Looks at a place with truth: what the sky, the camera and the people do to a still background, repeatable by seed.

A scene is a function that turns the clean luma of a look into what the camera would send; people are put in before
it. Every look then goes through a lossy encoder and is averaged to the width of the gate.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from bench._gate_footage import WALKERS_FPS, Cutout, Floats

Gray: TypeAlias = NDArray[np.uint8]
Weather: TypeAlias = Callable[[Floats, int], Floats]

LEARN_LOOKS = 60
ENCODER_QUALITY = 75
# Share of the picture that a person covers.
SIZES = (0.0005, 0.008)
NEAR_SIZES = (0.02, 0.25)
LOW_CONTRAST = 0.5  # of what a person differs from what is behind
STANDS_SEC = (60.0, 240.0)
STANDS_LOOKS_MAX = 20
GAP_LOOKS = (14, 40)


@dataclass(frozen=True, slots=True)
class Visit:
    first: int  # look
    last: int
    cutouts: tuple[Cutout, ...]  # one a look
    places: tuple[tuple[float, float], ...]  # middle, in pixels
    scale: float
    share: float  # of the picture
    contrast: float
    stands: bool


@dataclass(frozen=True, slots=True)
class Look:
    number: int
    gray: Gray
    visit: int | None  # which one is in it


def plan(
    tracks: list[list[Cutout]],
    shape: tuple[int, int],
    looks: int,
    interval_sec: float,
    sizes: tuple[float, float],
    random: np.random.Generator,
) -> list[Visit]:
    """Who comes when: a third hardly stands out, a quarter stands still. Nobody comes while the gate learns."""
    visits: list[Visit] = []
    at = LEARN_LOOKS + int(random.integers(*GAP_LOOKS))
    order = random.permutation(len(tracks))
    while True:
        number = len(visits)
        track = tracks[order[number % len(tracks)]]
        share = float(np.exp(random.uniform(*np.log(sizes))))
        visit = _visit(track, shape, at, interval_sec, share, number % 3 == 1, number % 4 == 2, random)
        if visit.last + 8 >= looks:
            return visits
        visits.append(visit)
        at = visit.last + 1 + int(random.integers(*GAP_LOOKS))


def _visit(
    track: list[Cutout],
    shape: tuple[int, int],
    first: int,
    interval_sec: float,
    share: float,
    pale: bool,
    stands: bool,
    random: np.random.Generator,
) -> Visit:
    height, width = shape
    step = max(round(interval_sec * WALKERS_FPS), 1)
    if stands:
        count = min(max(round(float(random.uniform(*STANDS_SEC)) / interval_sec), 1), STANDS_LOOKS_MAX)
        # Nobody is a statue: three pictures around one moment, in turn.
        moment = int(random.integers(0, len(track) - 3))
        cutouts = [track[moment + number % 3] for number in range(count)]
    else:
        begin = int(random.integers(0, min(step, len(track))))
        cutouts = track[begin::step]
    scale = float(np.sqrt(share * width * height / np.mean([one.alpha.sum() for one in cutouts])))
    margin = 0.06
    start = (random.uniform(0.1, 0.9) * width, random.uniform(0.3, 0.9) * height)
    places = []
    for one in cutouts:
        x = start[0] + (0.0 if stands else (one.x - cutouts[0].x) * min(scale * 1.5, 1.0))
        y = start[1] + (0.0 if stands else (one.y - cutouts[0].y) * min(scale * 1.5, 1.0))
        places.append(
            (
                float(np.clip(x, margin * width, (1 - margin) * width)),
                float(np.clip(y, 1.5 * margin * height, (1 - 1.5 * margin) * height)),
            )
        )
    contrast = LOW_CONTRAST if pale else 1.0
    return Visit(first, first + len(cutouts) - 1, tuple(cutouts), tuple(places), scale, share, contrast, stands)


def put(luma: Floats, visit: Visit, number: int) -> Floats:
    """The picture with the visitor of that look in it."""
    cutout, (x, y) = visit.cutouts[number - visit.first], visit.places[number - visit.first]
    size = tuple(max(round(side * visit.scale), 1) for side in reversed(cutout.alpha.shape))
    alpha = cv2.resize(cutout.alpha, size, interpolation=cv2.INTER_AREA)
    person = cv2.resize(cutout.luma, size, interpolation=cv2.INTER_AREA)
    left, top = round(x - size[0] / 2), round(y - size[1] / 2)
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + size[0], luma.shape[1]), min(top + size[1], luma.shape[0])
    if x1 <= x0 or y1 <= y0:
        return luma
    seen: Any = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
    there: Any = np.s_[y0:y1, x0:x1]
    behind = luma[there]
    delta = person[seen] - behind
    # A person whose clothes happen to have the luma of the ground can't be seen by anybody.
    weak = float((np.abs(delta) * alpha[seen]).sum() / max(float(alpha[seen].sum()), 1e-6))
    if weak < 30:
        delta = np.where(behind > 127, delta - 35, delta + 35)
    out = luma.copy()
    out[there] = behind + visit.contrast * alpha[seen] * delta
    return out


def play(
    background: Floats, visits: list[Visit], weather: Weather, looks: int, random: np.random.Generator
) -> Iterator[Look]:
    waiting = list(enumerate(visits))
    for number in range(looks):
        while waiting and waiting[0][1].last < number:
            waiting.pop(0)
        present = waiting[0] if waiting and waiting[0][1].first <= number else None
        luma = background if present is None else put(background, present[1], number)
        seen = np.clip(weather(luma, number), 0, 255).astype(np.uint8)
        yield Look(number, _sent(seen), None if present is None else present[0])


def _sent(picture: Gray) -> Gray:
    """As it comes out of the camera's encoder, averaged to half its width."""
    _, jpeg = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, ENCODER_QUALITY])
    back: Any = cv2.imdecode(jpeg, cv2.IMREAD_GRAYSCALE)
    return np.asarray(cv2.resize(back, (picture.shape[1] // 2, picture.shape[0] // 2), interpolation=cv2.INTER_AREA))
