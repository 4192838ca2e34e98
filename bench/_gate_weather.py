"""The scenes: day, night, light, swaying leaves, rain, a shaking mast, insects, the infra-red switch, a clock.

Each is made for a background, an interval and a seed. Times are in seconds, so that a shower lasts as long whether it
is looked at every second or every minute; what takes hours is shortened for the short intervals.
"""

from collections.abc import Callable
from typing import TypeAlias

import cv2
import numpy as np

from bench._gate_footage import Floats
from bench._gate_scenes import Weather

Make: TypeAlias = Callable[[Floats, float, np.random.Generator], Weather]

QUIET = ("day", "night", "near")
NIGHT = 0.28  # of the day's light
GRAIN = np.random.default_rng(0).standard_normal((1600, 2000), dtype=np.float32)


def _noise(luma: Floats, sigma: float, random: np.random.Generator) -> Floats:
    """The sensor's: more in the light parts, and some everywhere."""
    # Cut out of one large field at a random place: as good as new numbers, at a tenth of the time.
    top, left = random.integers(0, GRAIN.shape[0] - luma.shape[0]), random.integers(0, GRAIN.shape[1] - luma.shape[1])
    grain = GRAIN[top : top + luma.shape[0], left : left + luma.shape[1]]
    return luma + grain * np.float32(sigma) * (np.float32(0.6) + luma * np.float32(1 / 320))


def day(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    phase = random.uniform(0, 6)

    def weather(luma: Floats, number: int) -> Floats:
        gain = 1 + 0.08 * np.sin(phase + number * interval_sec / 3000)
        return _noise(luma * np.float32(gain), 2.5, random)

    return weather


def night(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    def weather(luma: Floats, number: int) -> Floats:
        return _noise(luma * np.float32(NIGHT), 6.0, random)

    return weather


def light(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """Clouds, steps of the exposure, a lamp that goes on and off, the edge of a shadow that crosses the picture."""
    height, width = background.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    lamp_at = random.uniform(0.2, 0.8), random.uniform(0.2, 0.5)
    lamp = 60 * np.exp(-((x - lamp_at[0] * width) ** 2 + (y - lamp_at[1] * height) ** 2) / (2 * (0.12 * width) ** 2))
    state = {"step": 1.0, "cloud": 0.0, "lamp": 0.0}

    def weather(luma: Floats, number: int) -> Floats:
        state["cloud"] = 0.9 * state["cloud"] + random.normal(0, 0.05)
        if random.random() < 0.02:
            state["step"] = random.uniform(0.75, 1.2)
        if random.random() < 0.015:
            state["lamp"] = 1.0 - state["lamp"]
        edge = (number * 1.3) % (1.6 * width) - 0.3 * width
        shadow = 1 - 0.35 / (1 + np.exp(np.clip((x + 0.3 * y - edge) / 6, -30, 30)))
        lit = luma * (np.float32(state["step"] + state["cloud"]) * shadow) + np.float32(state["lamp"]) * lamp
        return _noise(lit.astype(np.float32), 2.5, random)

    return weather


def sway(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """A tree hangs into the picture, its leaves move by up to some pixels, and a flag waves; gusts come and go."""
    height, width = background.shape
    leaves = random.integers(0, 255, (height // 5 + 1, width // 5 + 1)).astype(np.float32)
    texture = cv2.resize(leaves, (width, height), interpolation=cv2.INTER_CUBIC) * np.float32(0.5) + np.float32(20)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    crown = ((x - 0.35 * width) / (0.45 * width)) ** 2 + (y / (0.24 * height)) ** 2 < 1
    alpha = cv2.GaussianBlur(crown.astype(np.float32), (9, 9), 0)
    flag = np.zeros((height, width), np.bool_)
    flag[height // 16 : height // 16 + height // 9, -width // 6 : -width // 12] = True
    state = {"gust": 0.5}

    def weather(luma: Floats, number: int) -> Floats:
        state["gust"] = float(np.clip(state["gust"] + random.normal(0, 0.12), 0.1, 1.0))
        reach = np.float32(4 * state["gust"])
        a, b, c = random.uniform(0, 6.28, 3)
        moved = cv2.remap(
            texture,
            x + reach * np.sin(y / 23 + np.float32(a)),
            y + reach * np.sin(x / 31 + np.float32(b)) / 2,
            cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REFLECT,
        )
        mixed = luma * (1 - alpha) + moved * alpha
        stripes = 130 + 90 * np.sign(np.sin((y + 4 * reach * np.sin(x / 12 + np.float32(c))) / 3))
        return _noise(np.where(flag, stripes, mixed).astype(np.float32), 2.5, random)

    return weather


def rain(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """Showers that begin and end; each drop is a pale streak, and the picture loses contrast."""
    height, width = background.shape
    lengths = _spells(random, 60, 200)

    def weather(luma: Floats, number: int) -> Floats:
        strength = lengths(number)
        streaks = np.zeros((height, width), np.uint8)
        for _ in range(round(350 * strength)):
            x0, y0 = int(random.integers(0, width)), int(random.integers(-20, height))
            fall = int(random.integers(8, 34))
            cv2.line(
                streaks, (x0, y0), (x0 + fall // 6, y0 + fall), int(random.integers(20, 70)), 1, lineType=cv2.LINE_AA
            )
        grayed = luma * np.float32(1 - 0.15 * strength) + np.float32(20 * strength)
        return _noise(grayed + streaks, 3.0, random)

    return weather


def shake(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """A mast in the wind: the whole picture moves by up to four of its pixels, and calms down in between."""
    gusts = _spells(random, 40, 120)

    def weather(luma: Floats, number: int) -> Floats:
        reach = 0.15 + 2.0 * gusts(number)
        move = np.array([[1, 0, random.normal(0, reach)], [0, 1, random.normal(0, reach)]], np.float32)
        size = (luma.shape[1], luma.shape[0])
        moved = cv2.warpAffine(luma, move, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return _noise(np.asarray(moved, np.float32), 2.5, random)

    return weather


def insects(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """A night with infra-red light: now and then one flies through it, near the lens, bright and blurred."""

    def weather(luma: Floats, number: int) -> Floats:
        dark = luma * np.float32(NIGHT * 1.4)
        if random.random() < 0.06:
            height, width = luma.shape
            glow = np.zeros((height, width), np.float32)
            x0, y0 = random.uniform(0, width), random.uniform(0, height)
            turn, length = random.uniform(0, 6.28), random.uniform(5, 60)
            end = (round(x0 + length * np.cos(turn)), round(y0 + length * np.sin(turn)))
            cv2.line(glow, (round(x0), round(y0)), end, random.uniform(60, 180), int(random.integers(3, 12)))
            dark = dark + cv2.GaussianBlur(glow, (0, 0), random.uniform(2, 5))
        return _noise(np.asarray(dark, np.float32), 5.0, random)

    return weather


def infrared(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """The filter goes in and out: by day as it is; by night lit from the camera, leaves pale, grainy."""
    height, width = background.shape
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    beam = np.exp(-((x / width - 0.5) ** 2 + (y / height - 0.55) ** 2) / 0.18).astype(np.float32)
    every = int(random.integers(140, 190))

    def weather(luma: Floats, number: int) -> Floats:
        if (number // every) % 2 == 0:
            return _noise(luma, 2.5, random)
        lit = (255 * (np.clip(luma, 0, 255) / 255) ** np.float32(0.6) * beam * np.float32(0.7) + 8).astype(np.float32)
        return _noise(lit, 6.0, random)

    return weather


def clock(background: Floats, interval_sec: float, random: np.random.Generator) -> Weather:
    """By day, with date and time written into the picture, white with a black rim."""
    height, width = background.shape
    begin_sec = int(random.integers(0, 86_400))
    at = [(8, 20), (width - 208, 20), (8, height - 10)][int(random.integers(0, 3))]
    sky = day(background, interval_sec, random)

    def weather(luma: Floats, number: int) -> Floats:
        seen = np.clip(sky(luma, number), 0, 255).astype(np.uint8)
        sec = begin_sec + int(number * interval_sec + random.uniform(0, 0.3))
        text = f"2026-11-{15 + sec // 86_400:02} {sec // 3600 % 24:02}:{sec // 60 % 60:02}:{sec % 60:02}"
        for shade, thick in ((0, 4), (255, 1)):
            cv2.putText(seen, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.55, shade, thick, cv2.LINE_AA)
        return seen.astype(np.float32)

    return weather


def _spells(random: np.random.Generator, shortest: int, longest: int) -> Callable[[int], float]:
    """A strength 0..1 that is zero for a while, then rises within some looks, stays and goes."""
    ends: list[tuple[int, float]] = [(int(random.integers(80, 80 + longest)), 0.0)]

    def strength(number: int) -> float:
        while number >= ends[-1][0]:
            wet = ends[-1][1] == 0
            ends.append(
                (
                    ends[-1][0] + int(random.integers(shortest, longest)),
                    float(random.uniform(0.4, 1.0)) if wet else 0.0,
                )
            )
        this = ends[-1][1]
        before, since = (ends[-2][1], number - ends[-2][0]) if len(ends) > 1 else (0.0, 9)
        return before + (this - before) * min((since + 1) / 6, 1.0)

    return strength


# "near" is a day on which people come close; bench/gate.py makes them large.
SCENES: dict[str, Make] = {
    "day": day,
    "night": night,
    "light": light,
    "sway": sway,
    "rain": rain,
    "shake": shake,
    "insects": insects,
    "infrared": infrared,
    "clock": clock,
    "near": day,
}
