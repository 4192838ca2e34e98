"""What the gate finds and what it lets pass in vain, beside the plain rule of two limits and OpenCV's MOG2.

    make bench-gate                                 about a quarter of an hour
    QUICK=1 make bench-gate                         fewer looks, on the backgrounds on which nothing was chosen
    make bench-gate BENCH_ARGS="--seed 5 --scene rain"
    make bench-gate BENCH_ARGS="--picture docs/images/gate.jpg"    the picture of docs/guide/gate.md, no figures

Footage with truth: walkers cut out of real video are put into still backgrounds at known times (bench/_gate_*.py). An
event counts as found when one of the looks that show it passes for a reason of its own. Empty looks are those without
anybody in them; what passes among them because a look before was sticky or because it was forced is counted apart.
"""

import argparse
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import av
import cv2
import numpy as np

from bench._gate_footage import Floats, Footage, load
from bench._gate_rules import DIFF_WIDTH, Mog2, Ours, gate_of, rules
from bench._gate_scenes import LEARN_LOOKS, NEAR_SIZES, SIZES, plan, play
from bench._gate_weather import QUIET, SCENES
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from camserver.domain.gate import GatePolicy
from camserver.media.change import measure
from camserver.media.gate_picture import draw
from camserver.media.video_picture import VideoPicture
from camserver.media.watched import Watch

INTERVALS_SEC = (1, 5, 60)
LOOKS = 250 if QUICK else 500
CPU_LOOKS = 40 if QUICK else 200
RECALL_AIM, EMPTY_AIM, QUIET_AIM = 99.0, 5.0, 2.0
# A look of before: the first second of 2026, for no reason but that a time is needed.
BEGIN_MS = 1_767_225_600_000


@dataclass(slots=True)
class Tally:
    events: int = 0
    found: int = 0
    empty: int = 0
    empty_passed: int = 0
    empty_analyzed: int = 0  # of ours: with sticky and forced ones

    def add(self, other: "Tally") -> None:
        self.events += other.events
        self.found += other.found
        self.empty += other.empty
        self.empty_passed += other.empty_passed
        self.empty_analyzed += other.empty_analyzed

    @property
    def recall(self) -> float:
        return 100 * self.found / max(self.events, 1)

    @property
    def in_vain(self) -> float:
        return 100 * self.empty_passed / max(self.empty, 1)

    @property
    def analyzed(self) -> float:
        return 100 * self.empty_analyzed / max(self.empty, 1)


Key = tuple[str, str, int, str]  # background, scene, interval, rule


def judge_scene(footage: Footage, background: str, scene: str, interval_sec: int, seed: int) -> dict[str, Tally]:
    """Every rule over the same looks."""
    random = np.random.default_rng([seed, zlib.crc32(f"{background} {scene}".encode()), interval_sec])
    luma = footage.backgrounds[background]
    sizes = NEAR_SIZES if scene == "near" else SIZES
    # Every other one; the others were used most while the rule was made.
    visits = plan(footage.tracks[::2], (luma.shape[0], luma.shape[1]), LOOKS, interval_sec, sizes, random)
    weather = SCENES[scene](luma, interval_sec, random)
    gates = rules()
    tallies = {name: Tally(events=len(visits)) for name in gates}
    found: dict[str, set[int]] = {name: set() for name in gates}
    for look in play(luma, visits, weather, LOOKS, random):
        for name, gate in gates.items():
            at_ms = BEGIN_MS + look.number * interval_sec * 1000
            passes = gate.passes(look.gray, at_ms, look.visit is not None)
            tally = tallies[name]
            if look.visit is not None and passes:
                found[name].add(look.visit)
            if look.visit is None and look.number >= LEARN_LOOKS:
                tally.empty += 1
                tally.empty_passed += passes
                tally.empty_analyzed += gate.analyzed if isinstance(gate, Ours) else passes
    for name, tally in tallies.items():
        tally.found = len(found[name])
    return tallies


def totals(
    found: dict[Key, Tally],
    rule: str,
    *,
    background: str | None = None,
    scenes: Collection[str] | None = None,
    interval: int | None = None,
) -> Tally:
    """Of one rule, over everything that is not named."""
    total = Tally()
    for (on, scene, every, by), tally in found.items():
        named = by == rule and background in (None, on) and interval in (None, every)
        if named and (scenes is None or scene in scenes):
            total.add(tally)
    return total


def recall_rows(found: dict[Key, Tally]) -> list[Row]:
    """Over all backgrounds, an interval at a time."""
    rows: list[Row] = []
    for interval in INTERVALS_SEC:
        ours = totals(found, "ours", interval=interval)
        quiet = totals(found, "ours", interval=interval, scenes=QUIET)
        name, in_vain = f"a look per {interval} s", _floor(ours.in_vain)
        rows += [
            more_is_better(f"{name}, events found", ours.recall, RECALL_AIM, "the aim", "%", 1.0),
            less_is_better(f"{name}, empty looks passed", in_vain, EMPTY_AIM, "the aim", "%", 1.0),
            less_is_better(
                f"{name}, empty looks passed, quiet scenes", _floor(quiet.in_vain), QUIET_AIM, "the aim", "%", 1.0
            ),
            figure(f"{name}, empty looks analyzed with sticky and forced ones", ours.analyzed, "%"),
        ]
        for rule in ("two limits", "MOG2"):
            other = totals(found, rule, interval=interval)
            rows += [
                more_is_better(f"{name}, events found", ours.recall, max(other.recall, 0.1), rule, "%"),
                less_is_better(f"{name}, empty looks passed", in_vain, other.in_vain, rule, "%"),
            ]
    return rows


def _floor(share: float) -> float:
    """A ratio needs something to divide by."""
    return max(share, 0.01)


def say_scenes(found: dict[Key, Tally], backgrounds: Iterable[str]) -> None:
    for background in backgrounds:
        say(f"\n{background}: events found % / empty looks passed %, over all intervals")
        say(f"{'':10}" + "".join(f"{rule:>16}" for rule in rules()))
        for scene in SCENES:
            each = [totals(found, rule, background=background, scenes=(scene,)) for rule in rules()]
            if each[0].empty:
                say(f"{scene:10}" + "".join(f"{one.recall:>9.1f} /{one.in_vain:>5.1f}" for one in each))
    say("")


def cpu_rows(luma: Floats) -> list[Row]:
    """CPU of a 1080p look from the decoded picture on: scaling and measuring."""
    pictures = [VideoPicture(_frame(luma, seed)) for seed in range(6)]
    contrast, limits, mog2 = gate_of(GatePolicy()), gate_of(GatePolicy(rule="threshold")), Mog2()

    def look(gate_looks: Callable[[VideoPicture], None]) -> float:
        for picture in pictures:
            gate_looks(picture)
        begun = time.process_time()
        for number in range(CPU_LOOKS):
            gate_looks(pictures[number % len(pictures)])
        return (time.process_time() - begun) / CPU_LOOKS * 1000

    def ours(picture: VideoPicture) -> None:
        measured, reference = measure(picture.gray(DIFF_WIDTH), contrast.reference, 20, with_contrast=True)
        contrast.judge(measured, reference, BEGIN_MS)

    def two_limits(picture: VideoPicture) -> None:
        measured, reference = measure(picture.gray(DIFF_WIDTH), limits.reference, 20, with_contrast=False)
        limits.judge(measured, reference, BEGIN_MS)

    def peer(picture: VideoPicture) -> None:
        mog2.passes(picture.gray(DIFF_WIDTH), BEGIN_MS, False)

    def scaling(picture: VideoPicture) -> None:
        picture.gray(DIFF_WIDTH)

    ours_ms = look(ours)
    return [
        less_is_better("CPU of a 1080p look, with scaling", ours_ms, look(two_limits), "two limits", "ms"),
        less_is_better("CPU of a 1080p look, with scaling", ours_ms, look(peer), "MOG2", "ms"),
        figure("CPU of a 1080p look, scaling alone", look(scaling), "ms"),
    ]


def _frame(luma: Floats, seed: int) -> av.VideoFrame:
    large = cv2.resize(luma, (1920, 1080)) + np.random.default_rng(seed).normal(0, 3, (1080, 1920))
    rgb = np.repeat(np.clip(large, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
    return av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")


def draw_example(footage: Footage, path: Path) -> None:
    """A walker below a clock, with a part of the picture that is not watched."""
    random = np.random.default_rng(4)
    luma = footage.backgrounds["yard"]
    visits = plan(footage.tracks[::2], (luma.shape[0], luma.shape[1]), LOOKS, 1, SIZES, random)
    gate = gate_of(GatePolicy())
    watch = Watch(ignored=(((0.78, 0.0), (1.0, 0.0), (1.0, 0.3), (0.83, 0.12)),))
    reference = replace(gate.reference, watch=watch)
    visit = max(visits[:8], key=lambda one: one.share)
    for look in play(luma, visits, SCENES["clock"](luma, 1, random), visit.first + 2, random):
        _, reference = measure(look.gray, reference, gate.policy.pixel_delta, with_contrast=True)
    assert reference.gray is not None
    path.write_bytes(draw(reference.gray, reference.compared, watch, gate.policy.z_pass))


def main() -> None:
    asked = _arguments()
    cv2.setNumThreads(1)
    footage = load()
    if asked.picture:
        draw_example(footage, asked.picture)
        return
    backgrounds = footage.judging if QUICK else list(footage.backgrounds)
    found: dict[Key, Tally] = defaultdict(Tally)
    for background in backgrounds:
        for scene in [asked.scene] if asked.scene else SCENES:
            for interval in INTERVALS_SEC:
                for rule, tally in judge_scene(footage, background, scene, interval, asked.seed).items():
                    found[background, scene, interval, rule].add(tally)
            ours = totals(found, "ours", background=background, scenes=(scene,))
            say(f"{background}, {scene}: {ours.found} of {ours.events} found, {ours.in_vain:.1f} % passed in vain")
    say_scenes(found, backgrounds)
    report("gate", recall_rows(found) + cpu_rows(footage.backgrounds["yard"]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7, help="other visits and other weather (default 7)")
    parser.add_argument(
        "--picture", type=Path, help="write an example of what `camserver gate explain` draws, and end"
    )
    parser.add_argument("--scene", choices=list(SCENES), help="only this one")
    return parser.parse_args()


if __name__ == "__main__":
    main()
