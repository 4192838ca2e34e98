"""What becomes of a picture once it was caught: masked, measured against the one before, judged, made small.

Decoding and everything else that takes time runs in the worker's picture threads, never on the event loop. Privacy
masks are applied right after decoding, before anything is made of the picture (decision 9).
"""

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass

from camserver.domain.gate import Verdict
from camserver.media.masks import blacken
from camserver.media.pictures import Developed, Picture, develop
from camserver.media.shots import Shot
from camserver.services.worker.gating import Gate
from camserver.wire.worker import LookParams

# Wide enough for any picture: it is decoded as large as it came.
WHOLE_WIDTH = 1 << 16


@dataclass(frozen=True, slots=True)
class Print:
    """A picture that was developed and judged."""

    picture: Picture
    developed: Developed
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Full:
    """The picture to keep."""

    jpeg: bytes
    size: tuple[int, int]


class Darkroom:
    """Of one camera."""

    def __init__(self, params: LookParams, gate: Gate, threads: Executor) -> None:
        self._params = params
        self._gate = gate
        self._threads = threads

    async def develop(self, shot: Shot, captured_at: int) -> Print:
        """BadInput when there is no picture in it."""
        loop = asyncio.get_running_loop()
        picture, developed = await loop.run_in_executor(self._threads, self._develop, shot)
        return Print(picture, developed, self._gate.judge(developed.measured, developed.reference, captured_at))

    async def full_of(self, picture: Picture) -> Full:
        """The picture itself, as large as it came."""
        loop = asyncio.get_running_loop()
        return Full(await loop.run_in_executor(self._threads, picture.full), picture.size)

    async def full_from(self, shot: Shot) -> Full:
        """The same of another shot. BadInput when there is no picture in it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._enlarge, shot)

    def _enlarge(self, shot: Shot) -> Full:
        picture = self._decode(shot, WHOLE_WIDTH)
        return Full(picture.full(), picture.size)

    def _develop(self, shot: Shot) -> tuple[Picture, Developed]:
        params, gate = self._params, self._gate
        picture = self._decode(shot, max(params.infer_width, params.diff_width))
        developed = develop(
            picture,
            infer_width=params.infer_width,
            diff_width=params.diff_width,
            before=gate.reference,
            pixel_delta=gate.policy.pixel_delta,
            with_contrast=gate.with_contrast,
        )
        return picture, developed

    def _decode(self, shot: Shot, width_needed: int) -> Picture:
        picture = shot.decode(width_needed).turned(self._params.rotation)
        return blacken(picture, self._params.privacy_masks)
