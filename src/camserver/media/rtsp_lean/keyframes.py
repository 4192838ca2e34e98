"""Asking a camera for a keyframe now instead of waiting for its next one, which may be many seconds away.

It is the picture loss indication of RFC 4585, beside the reports that a receiver sends anyway. Cameras that do not
know it pass it over. Whoever joins in the middle has lost what the pictures build on, as one who lost packets has.
"""

import random
import struct

# One that has not answered by then is asked once more; the rest is up to its own keyframes.
ASK_AGAIN_SEC = 1.0
ASKS_MAX = 2
_REPORT_AND_LOSS = struct.Struct("!BBHI BBHII")
_RECEIVER_REPORT, _PICTURE_FEEDBACK, _PICTURE_LOSS = 201, 206, 1
_VERSION = 0x80


class KeyframeWish:
    """Whether to ask. Tell it how things are whenever something came."""

    def __init__(self) -> None:
        self._me = random.getrandbits(32)
        self._asks = 0  # since a keyframe is missing
        self._next_sec = 0.0

    @property
    def is_open(self) -> bool:
        """The camera was asked, and no keyframe came."""
        return self._asks > 0

    def is_due(self, is_missing: bool, now_sec: float) -> bool:
        """Whether to ask now, which is then taken as done. `is_missing`: nothing can be shown without a keyframe."""
        if not is_missing:
            self._asks = 0
            return False
        if self._asks >= ASKS_MAX or (self._asks and now_sec < self._next_sec):
            return False
        self._asks += 1
        self._next_sec = now_sec + ASK_AGAIN_SEC
        return True

    def message(self, ssrc: int) -> bytes:
        """To the sender of the stream of that number. A report comes first, as in every message of this kind."""
        report = (_VERSION, _RECEIVER_REPORT, 1, self._me)
        return _REPORT_AND_LOSS.pack(*report, _VERSION | _PICTURE_LOSS, _PICTURE_FEEDBACK, 2, self._me, ssrc)
