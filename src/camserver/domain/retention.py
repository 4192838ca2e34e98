"""How long evidence is kept: three classes, the strongest wins (decisions 20 and 28).

`classify` is the whole table of the dispatcher's specification (section 8.1). Deleting is not here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from camserver.domain.analysis import Analysis
from camserver.domain.policy import setting
from camserver.domain.vocabulary import Vocabulary, is_hazard


class Retention(StrEnum):
    NORMAL = "normal"
    QUARANTINE = "quarantine"
    CASE = "case"


_STRENGTH = {Retention.NORMAL: 0, Retention.QUARANTINE: 1, Retention.CASE: 2}

# The rows of the table that name single tags. hazard.* is a row of its own, and a vocabulary's hints can add
# tags to these but take none away.
QUARANTINE_TAGS = frozenset(
    {
        "camera.offline",
        "camera.moved",
        "camera.occluded",
        "behavior.loitering",
        "object_missing.suspected",
        "animal.deer",
        "animal.boar",
    }
)
QUARANTINE_SEVERITY = 2


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How many days each kind of record lives. Whatever belongs to a case lives until the case is closed."""

    frames_days: int = setting(14, "Days to keep frames that showed nothing.", min=1, max=3650)
    detected_days: int = setting(30, "Days to keep frames on which something was detected.", min=1, max=3650)
    quarantine_days: int = setting(60, "Days to keep frames in quarantine.", min=1, max=3650)
    events_days: int = setting(
        180, "Days to keep events, each with the small picture of its best frame.", min=1, max=3650
    )
    notifications_days: int = setting(30, "Days to keep the record of sent notifications.", min=1, max=3650)
    statistics_days: int = setting(365, "Days to keep hourly statistics.", min=1, max=3650)


def strongest(classes: Iterable[Retention]) -> Retention:
    """The class that keeps longest: normal < quarantine < case; normal when there are none."""
    return max(classes, key=_STRENGTH.__getitem__, default=Retention.NORMAL)


def classify(analysis: Analysis, vocabulary: Vocabulary, in_case: bool = False) -> Retention:
    """A frame's class. `in_case` says that a person put the frame into a case."""
    if in_case:
        return Retention.CASE
    if analysis.unknown_flag or analysis.severity >= QUARANTINE_SEVERITY:
        return Retention.QUARANTINE
    if any(_quarantines(tag, vocabulary) for tag in analysis.tags):
        return Retention.QUARANTINE
    return Retention.NORMAL


def _quarantines(tag_id: str, vocabulary: Vocabulary) -> bool:
    if is_hazard(tag_id) or tag_id in QUARANTINE_TAGS:
        return True
    tag = vocabulary.tag(tag_id)
    return tag is not None and tag.retention_hint == Retention.QUARANTINE.value
