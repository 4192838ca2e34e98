"""How long evidence is kept: three classes, the strongest wins (decisions 20 and 28).

`classify` is the whole table of the dispatcher's specification (section 8.1). What becomes of things that are kept
already, and which go when room is short, is in `keeping`.
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
    detected_days: int = setting(
        30, "Days to keep frames on which something was detected, and clips of ordinary events.", min=1, max=3650
    )
    quarantine_days: int = setting(60, "Days to keep frames and clips in quarantine.", min=1, max=3650)
    events_days: int = setting(
        180, "Days to keep events, each with the small picture of its best frame.", min=1, max=3650
    )
    notifications_days: int = setting(30, "Days to keep the record of sent notifications.", min=1, max=3650)
    deliveries_days: int = setting(
        30, "Days to keep deliveries that are over, and jobs whose frames live longer.", min=1, max=3650
    )
    statistics_days: int = setting(365, "Days to keep hourly statistics and daily summaries.", min=1, max=3650)
    audit_days: int = setting(730, "Days to keep the audit log.", min=30, max=36_500)
    case_grace_days: int = setting(
        7, "Days that what was in a case is kept at least after the case was closed without hold.", min=1, max=3650
    )
    quiet_picture_sec: int = setting(
        60,
        "Of looks that passed nothing on, the picture of one in so many seconds is kept; 0 keeps all. The newest "
        "picture of a camera always stays.",
        min=0,
        max=86_400,
    )
    camera_max_bytes: int = setting(
        20_000_000_000,
        "Most bytes that pictures and clips of one camera may take; beyond it the oldest ordinary ones go. "
        "0: no bound.",
        min=0,
        max=10**15,
    )
    tenant_max_bytes: int = setting(
        0, "The same for all cameras of a tenant together. 0: no bound.", min=0, max=10**15
    )
    free_min_bytes: int = setting(
        2_000_000_000,
        "Free disk space below which the oldest ordinary pictures and clips go before their time, so that new ones "
        "have room; quarantine and cases never do. 0: no floor. A bucket has none.",
        min=0,
        max=10**15,
    )
    sweep_minutes: int = setting(60, "Minutes between two rounds of deleting what is past its time.", min=1, max=1440)


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
