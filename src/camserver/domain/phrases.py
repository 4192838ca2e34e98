"""How primary events are called, in Japanese and English. Tags have their labels in the vocabulary itself."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Phrase:
    ja: str
    en: str


PRIMARY_EVENTS: Mapping[str, Phrase] = {
    "none": Phrase("検知なし", "Nothing detected"),
    "human": Phrase("人を検知", "Person detected"),
    "animal": Phrase("動物を検知", "Animal detected"),
    "vehicle": Phrase("車両を検知", "Vehicle detected"),
    "hazard": Phrase("危険を検知", "Hazard detected"),
    "camera_issue": Phrase("カメラの異常", "Camera issue"),
    "object_missing": Phrase("物がなくなった可能性", "Object may be missing"),
    "unknown": Phrase("不明な動き", "Unknown activity"),
}


def primary_event_phrase(primary_event: str) -> Phrase:
    """A vocabulary may name events that are not ours; those are shown by their own name."""
    return PRIMARY_EVENTS.get(primary_event) or Phrase(primary_event, primary_event)
