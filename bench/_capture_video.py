"""What the cameras of the capture bench show: 1080p, 15 pictures a second, a keyframe every 2 s, 3 Mbit/s.

One place is quiet, through the other somebody walks. Made once and kept in a folder of temporary files.
"""

import base64
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import av

from camserver.domain.gate import GatePolicy
from camserver.domain.looks import LookPolicy
from camserver.media.pictures import develop
from camserver.media.scenes import SCENES, draw_scene
from camserver.media.video_picture import VideoPicture
from camserver.services.worker.gating import Gate
from camserver.wire.worker import LookParams

SIZE = (1920, 1080)
FPS = 15
GOP_SEC = 2
BITS_PER_SEC = 3_000_000
SECONDS = 6
_RECIPE = "3"  # counts up when the videos change


def folder() -> Path:
    path = Path(tempfile.gettempdir()) / "camserver-bench-capture"
    path.mkdir(exist_ok=True)
    return path


def videos() -> list[Path]:
    """What the cameras show in turn: every fifth has somebody in it most of the time."""
    return [_video(name) for name in ("quiet", "quiet", "moving", "quiet", "quiet")]


@cache
def learned() -> str:
    """What a gate knows of the place after some time: without it, every look would pass at first."""
    looks, policy = LookPolicy(), GatePolicy()
    params = LookParams(
        polling_interval_sec=1,
        infer_width=looks.infer_width,
        diff_width=looks.diff_width,
        connect_timeout_sec=1,
        force_infer_every_n=policy.force_infer_every_n,
    )
    gate = Gate(policy, params)
    for number, picture in zip(range(2 * policy.learn_looks), cycle(list(_keyframes(_video("quiet")))), strict=False):
        made = develop(
            picture,
            infer_width=looks.infer_width,
            diff_width=looks.diff_width,
            before=gate.reference,
            pixel_delta=policy.pixel_delta,
            with_contrast=gate.with_contrast,
        )
        gate.judge(made.measured, made.reference, number)
    state = gate.state()
    assert state is not None
    return base64.b64encode(state).decode()


def _keyframes(video: Path) -> Iterator[VideoPicture]:
    with av.open(str(video)) as container:
        container.streams.video[0].codec_context.skip_frame = "NONKEY"
        for frame in container.decode(video=0):
            yield VideoPicture(frame)


def _video(name: str) -> Path:
    target = folder() / f"{name}-{_RECIPE}.mp4"
    if target.exists():
        return target
    draft = target.with_suffix(".draft")
    with av.open(str(draft), "w", format="mp4") as container:
        options = {"preset": "superfast", "bf": "0", "sc_threshold": "0", "nal-hrd": "vbr"}
        stream: Any = container.add_stream("libx264", rate=FPS, options=options)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        stream.gop_size = FPS * GOP_SEC
        stream.bit_rate = BITS_PER_SEC
        # Else a picture has as many slices as this machine has cores; most cameras send one.
        stream.codec_context.thread_count = 1
        stream.codec_context.options |= {"maxrate": str(BITS_PER_SEC), "bufsize": str(2 * BITS_PER_SEC)}
        for number, frame in enumerate(islice(draw_scene(SCENES[name]), SECONDS * FPS)):
            scaled = frame.reformat(*SIZE, format="yuv420p")
            scaled.pts, scaled.time_base = number, Fraction(1, FPS)
            container.mux(stream.encode(scaled))
        container.mux(stream.encode(None))
    draft.replace(target)
    return target
