"""The gates that are compared: ours as it runs in a worker, the plain rule of two limits, and OpenCV's MOG2."""

from collections import deque
from typing import Protocol

import cv2
import numpy as np

from bench._gate_scenes import LEARN_LOOKS, Gray
from camserver.domain.gate import GatePolicy, Reason
from camserver.media.change import measure
from camserver.services.worker.gating import Gate
from camserver.wire.worker import LookParams

# A renewal brings the analyzer's verdicts; an analysis takes some time before that.
RENEWAL_MS = 10_000
ANALYSIS_MS = 1_000
MOG2_SHARE = 0.0005  # of the picture: the smallest person
DIFF_WIDTH = 320


class Rule(Protocol):
    def passes(self, gray: Gray, at_ms: int, truth: bool) -> bool:
        """Whether the look passes for a reason of its own. `truth` is what an analyzer would say, later."""


def gate_of(policy: GatePolicy) -> Gate:
    params = LookParams(
        polling_interval_sec=1.0,
        infer_width=640,
        diff_width=DIFF_WIDTH,
        connect_timeout_sec=3.0,
        force_infer_every_n=policy.force_infer_every_n,
    )
    return Gate(policy, params)


class Ours:
    """Our gate with an analyzer that is always right. `analyzed` counts sticky and forced looks too."""

    def __init__(self, rule: GatePolicy) -> None:
        self.gate = gate_of(rule)
        self.analyzed = False
        self._unheard: deque[tuple[int, int, bool]] = deque()

    def passes(self, gray: Gray, at_ms: int, truth: bool) -> bool:
        while self._unheard and self._unheard[0][0] <= at_ms:
            _, captured_at, detected = self._unheard.popleft()
            self.gate.hear(captured_at, detected)
        policy = self.gate.policy
        measured, reference = measure(gray, self.gate.reference, policy.pixel_delta, self.gate.with_contrast)
        self.analyzed = self.gate.judge(measured, reference, at_ms).value != "skip"
        if self.analyzed:
            heard_at = -(-(at_ms + ANALYSIS_MS) // RENEWAL_MS) * RENEWAL_MS
            self._unheard.append((heard_at, at_ms, truth))
        return self.gate.passages[-1].reason in (Reason.CHANGE, Reason.WHOLE)


class Mog2:
    """As it comes, with its noise cleaned away; passes from the share of the smallest person on."""

    def __init__(self) -> None:
        self._model = cv2.createBackgroundSubtractorMOG2(history=500, varThreshold=16, detectShadows=False)

    def passes(self, gray: Gray, at_ms: int, truth: bool) -> bool:
        new = self._model.apply(gray)
        clean = cv2.morphologyEx(new, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
        return float(np.count_nonzero(clean)) / gray.size >= MOG2_SHARE


def rules() -> dict[str, Rule]:
    """A new one of each, which has seen nothing."""
    return {
        "ours": Ours(GatePolicy(learn_looks=min(GatePolicy().learn_looks, LEARN_LOOKS))),
        "two limits": Ours(GatePolicy(rule="threshold")),
        "MOG2": Mog2(),
    }
