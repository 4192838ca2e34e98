"""Clips: the short film of an event. Which seconds it shows, how long it is waited for, and why there may be none.

A clip goes with its event: whatever deletes an event, or makes it part of a case, does the same to its clip.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.phrases import Phrase

# Seconds after an event's beginning that its clip shows; half as many before. Cameras may have their own number.
CLIP_SEC = 10.0
# Older beginnings are in no worker's memory any more.
ASKED_WITHIN_MS = 60_000
# As long a worker that is cut off may take to deliver what it has on its disk.
WAITED_MS = 6 * 3_600_000
# Nobody held the camera for as long, so nobody has its video.
UNSENT_MS = 60_000


class NoClip(StrEnum):
    """Why an event has no clip. Workers name these; a name that this server does not know is FAILED."""

    NO_VIDEO = "no_video"
    OFF = "off"
    NOT_CONNECTED = "not_connected"
    TOO_LARGE = "too_large"
    NOT_HELD = "not_held"
    MOVED = "moved"
    BUSY = "busy"
    NO_ANSWER = "no_answer"
    FAILED = "failed"
    # Only of films that somebody asks for: they are transcoded for browsers that don't play what the camera sends.
    TRANSCODE_FULL = "transcode_full"
    TOO_SLOW = "too_slow"
    EXPIRED = "expired"  # there was one; retention took it


_PHRASES: Mapping[NoClip, Phrase] = {
    NoClip.NO_VIDEO: Phrase("このカメラは動画を送りません", "This camera sends no video"),
    NoClip.OFF: Phrase("このカメラの動画クリップはオフです", "Clips of this camera are switched off"),
    NoClip.NOT_CONNECTED: Phrase(
        "そのときカメラに接続し続けていませんでした（クリップには短い間隔での撮影が必要です）",
        "The camera was not kept connected then (clips need looks every few seconds)",
    ),
    NoClip.TOO_LARGE: Phrase(
        "動画がワーカーのメモリーに収まりませんでした（キーフレーム間隔を短く、または ring_max_bytes を大きく）",
        "The video did not fit into the worker's memory (send keyframes more often, or raise ring_max_bytes)",
    ),
    NoClip.NOT_HELD: Phrase("そのとき見ているワーカーがありませんでした", "No worker looked at the camera then"),
    NoClip.MOVED: Phrase("カメラが別のワーカーに移りました", "The camera had moved to another worker"),
    NoClip.BUSY: Phrase("ワーカーが混み合っていました", "The worker was too busy"),
    NoClip.NO_ANSWER: Phrase("ワーカーから届きませんでした", "The worker did not deliver it"),
    NoClip.FAILED: Phrase("動画を作成できませんでした", "The video could not be made into a clip"),
    NoClip.TRANSCODE_FULL: Phrase(
        "ワーカーが同時に変換できる数の上限に達しています", "The worker transcodes as many cameras as it can"
    ),
    NoClip.TOO_SLOW: Phrase("映像の変換が時間内に終わりませんでした", "The video could not be transcoded in time"),
    NoClip.EXPIRED: Phrase("保存期間を過ぎたため削除されました", "It was past its retention and is deleted"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """UTC epoch ms; the end is included."""

    from_ms: int
    to_ms: int


def span(start_at: int, clip_sec: float) -> Span:
    """What the clip of an event shows that began at `start_at`."""
    clip_ms = round(clip_sec * 1000)
    return Span(start_at - clip_ms // 2, start_at + clip_ms)


def no_clip(reason: object) -> NoClip:
    """What a worker gave as its reason."""
    return NoClip(reason) if isinstance(reason, str) and reason in set(NoClip) else NoClip.FAILED


def no_clip_phrase(reason: str) -> Phrase:
    return _PHRASES[no_clip(reason)]
