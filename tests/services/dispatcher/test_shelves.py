"""A thing taken from a shelf, from the looks to the event: dispatcher and analyzer with their real rules.

The model alone is made up: it finds what is green and what is blue.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from camserver.domain.detections import Detection
from camserver.store import Tx
from tests.services.analyzer.rig import ScriptedDetector, running_analyzer
from tests.services.analyzer.scenery import encoded, place, turned
from tests.services.dispatcher.stage import Stage
from tests.store.scenery import NOW_MS

SEC = 1000
SHELF = [[0.55, 0.3], [0.95, 0.3], [0.95, 0.7], [0.55, 0.7]]
BOTTLE = Detection("bottle", 0.7, 0.7, 0.4, 0.74, 0.6)
TAKER = Detection("person", 0.8, 0.65, 0.3, 0.8, 0.9)  # hides the bottle
PASSER = Detection("person", 0.8, 0.1, 0.3, 0.25, 0.9)
COLOURS = {id(BOTTLE): (20, 140, 30), id(TAKER): (30, 40, 200), id(PASSER): (30, 40, 200)}
FAR_OFF = 60


@dataclass(slots=True)
class ColourDetector(ScriptedDetector):
    def detect(self, picture: Image.Image) -> Sequence[Detection]:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
        height, width = pixels.shape[:2]
        found = []
        for one in (BOTTLE, TAKER, PASSER):
            middle = pixels[int((one.y1 + one.y2) / 2 * height), int((one.x1 + one.x2) / 2 * width)]
            if np.abs(middle - COLOURS[id(one)]).max() < FAR_OFF:
                found.append(one)
        return found


def picture(*things: Detection, of: Image.Image | None = None) -> Image.Image:
    drawn = (of or place()).copy()
    width, height = drawn.size
    for one in things:
        box = (one.x1 * width, one.y1 * height, one.x2 * width, one.y2 * height)
        ImageDraw.Draw(drawn).rectangle(box, fill=COLOURS[id(one)])
    return drawn


FULL, EMPTY = encoded(picture(BOTTLE)), encoded(picture())
TAKEN_NOW = encoded(picture(TAKER))
PASSED = encoded(picture(PASSER))


async def played(stage: Stage, folder: Path, *looks: tuple[bytes, str], has_shelf: bool = True) -> list[list[str]]:
    """The tags of each look that was analyzed; looks are ten seconds apart, and each is done before the next."""
    if has_shelf:
        await stage.store.write(mark_shelf, stage.scene.camera_keys[0])
    async with running_analyzer(folder, [ColourDetector()]) as running:
        stage.settings = replace(stage.settings, analyzer=replace(stage.settings.analyzer, url=running.url))
        async with stage.dispatcher():
            for number, (shown, verdict) in enumerate(looks):
                await stage.look(0, shown, NOW_MS + number * 10 * SEC, verdict=verdict)
                await stage.until_nothing_waits()
    rows = await stage.rows("SELECT tags_json FROM frames WHERE analyzed = 1 ORDER BY captured_at")
    return [json.loads(row["tags_json"]) for row in rows]


async def mark_shelf(tx: Tx, camera_key: int) -> None:
    await tx.run(
        "INSERT INTO camera_overrides (camera_key, tenant_id, updated_at, hints) "
        "SELECT camera_key, tenant_id, updated_at, :hints FROM cameras WHERE camera_key = :camera_key",
        camera_key=camera_key,
        hints=json.dumps({"shelf_roi": SHELF}),
    )


MISSING = "object_missing.suspected"


@pytest.mark.parametrize("before", ["skip", "forced"])
async def test_what_somebody_took_is_missed_when_they_are_gone_and_once(
    stage: Stage, tmp_path: Path, before: str
) -> None:
    looks = [(FULL, before), (TAKEN_NOW, "analyze"), (TAKEN_NOW, "analyze"), (EMPTY, "analyze"), (EMPTY, "analyze")]
    tags = await played(stage, tmp_path, *looks)
    assert [MISSING in one for one in tags[-4:]] == [False, False, True, False]
    assert [event["primary_event"] for event in await stage.events()] == ["human", "object_missing"]


async def test_what_is_missed_while_others_pass_is_said_once(stage: Stage, tmp_path: Path) -> None:
    looks = [(FULL, "skip"), (TAKEN_NOW, "analyze"), (PASSED, "analyze"), (PASSED, "analyze"), (EMPTY, "analyze")]
    tags = await played(stage, tmp_path, *looks)
    assert [MISSING in one for one in tags] == [False, True, False, False]


async def test_what_somebody_only_stood_before_is_not_missed(stage: Stage, tmp_path: Path) -> None:
    looks = [(FULL, "skip"), (TAKEN_NOW, "analyze"), (FULL, "analyze"), (FULL, "analyze")]
    tags = await played(stage, tmp_path, *looks)
    assert [MISSING in one for one in tags] == [False, False, False]


@pytest.mark.parametrize("things", [(), (PASSER,)])
async def test_a_camera_that_was_turned_meanwhile_says_so_once(
    stage: Stage, tmp_path: Path, things: tuple[Detection, ...]
) -> None:
    """As a camera without a shelf does, though its looks are compared with an older one; whoever turned it too."""
    turned_away = encoded(picture(*things, of=turned(place(), 0.3)))
    looks = [(FULL, "skip"), (TAKEN_NOW, "analyze"), (turned_away, "analyze"), (turned_away, "analyze")]
    tags = await played(stage, tmp_path, *looks)
    assert ["camera.moved" in one for one in tags] == [False, True, False]
    assert not any(MISSING in one for one in tags)


async def test_without_a_shelf_each_look_is_compared_with_the_one_before(stage: Stage, tmp_path: Path) -> None:
    looks = [(FULL, "skip"), (TAKEN_NOW, "analyze"), (EMPTY, "analyze")]
    tags = await played(stage, tmp_path, *looks, has_shelf=False)
    assert not any(MISSING in one for one in tags)
