"""The errand `explain`: why the last looks at a camera passed its gate or did not, as numbers and as a picture."""

import asyncio

from pydantic import JsonValue

from camserver.media.gate_picture import draw
from camserver.services.worker.cameras import Cameras
from camserver.services.worker.errands import ErrandDone, Handler
from camserver.services.worker.gating import Gate, Passage
from camserver.wire.errands import JPEG
from camserver.wire.worker import Errand


def explain_handler(cameras: Cameras) -> Handler:
    async def handle(errand: Errand) -> ErrandDone:
        camera = cameras.camera(errand.camera_id, errand.generation) if errand.camera_id is not None else None
        if camera is None:
            return ErrandDone(False, "this worker does not hold the camera any more; try again")
        sight = camera.gate.sight
        if sight is None:
            return ErrandDone(False, "the camera has not been looked at yet; try again after its next look")
        gate = camera.gate
        jpeg = await asyncio.to_thread(draw, sight.gray, sight.compared, gate.watch, gate.policy.z_pass)
        return ErrandDone(True, "", explained(gate), JPEG, jpeg)

    return handle


def explained(gate: Gate) -> dict[str, JsonValue]:
    """The numbers, newest look first."""
    policy, scene, sight = gate.policy, gate.reference.scene, gate.sight
    rows, columns = (0, 0) if scene is None else scene.noise.grid
    return {
        "rule": policy.rule,
        "z_pass": policy.z_pass,
        "diff_ratio_no_event": policy.diff_ratio_no_event,
        "luma_delta_no_event": policy.luma_delta_no_event,
        "learn_looks": policy.learn_looks,
        "force_infer_every_n": policy.force_infer_every_n,
        "learned": 0 if scene is None else scene.noise.looks,
        "rows": rows,
        "columns": columns,
        "clock_cells": 0 if scene is None else int(scene.clocks.cells.sum()),
        "picture_captured_at": None if sight is None else sight.passage.captured_at,
        "looks": [_shown(passage) for passage in reversed(gate.passages)],
    }


def _shown(passage: Passage) -> dict[str, JsonValue]:
    measured, seen = passage.measured, passage.compared
    return {
        "captured_at": passage.captured_at,
        "verdict": passage.verdict.value,
        "reason": passage.reason.value,
        "z_max": None if measured.z_max is None else round(measured.z_max, 2),
        "row": None if seen is None else seen.row,
        "column": None if seen is None else seen.column,
        "spread": None if seen is None else round(seen.spread, 2),
        "has_moved": None if seen is None else seen.has_moved,
        "diff_ratio": round(measured.diff_ratio, 5),
        "luma_delta": round(measured.luma_delta, 2),
    }
