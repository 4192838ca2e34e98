"""What a picture's detections mean: tags, primary event, severity and doubt, by the analyzer contract's rules.

A detector says labels, scores and places; quality numbers say whether the picture is any good. Out comes an
`Analysis` in the words of a vocabulary: a tag that it lacks is left out. Race, nationality and ethnicity are never
inferred; no label here speaks of them.

Readings of the contract, where it leaves something open:
- Two categories leave a doubt only when they claim the same place. A person beside a car is no doubt.
- A poor picture is a camera issue only when nothing was found in it; the tag is there in any case. Somebody who is
  recognized in the dark is a person first. A camera that was covered or moved is an issue whatever is found.
- What is expected of a camera makes no event, and has no tags and no severity, be it a thing or what is wrong with
  the picture. The boxes of things go along with an event of something else.
- Something missing stands behind people and animals and before vehicles.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from camserver.domain.analysis import Analysis, Box
from camserver.domain.policy import setting
from camserver.domain.polygons import Polygon
from camserver.domain.stationary import iou
from camserver.domain.vocabulary import NO_EVENT, UNKNOWN_EVENT, Vocabulary

UNKNOWN_BELOW = 0.5
HAZARD_UNKNOWN_BELOW = 0.7
CLOSE_CALL = 0.1
NIGHT_HUMAN_SEVERITY = 2
# Two boxes that overlap more than this (intersection over union) are one thing with two names.
SAME_PLACE_IOU = 0.7

# Variance of the Laplacian below 100, in terms of the blur score 100 / (1 + variance / 100).
BLUR_ABOVE_SCORE = 50.0
DARK_BELOW_LUMA = 30.0
GLARE_ABOVE_SHARE = 0.8
BRIGHT_ABOVE_LUMA = 250

TAG_BLUR = "camera.blur"
TAG_DARK = "camera.dark"
TAG_GLARE = "camera.glare"
TAG_SINGLE = "count.single"
TAG_MULTIPLE = "count.multiple"
TAG_LOW_CONFIDENCE = "reason.low_confidence"
TAG_MISSING = "object_missing.suspected"


@dataclass(frozen=True, slots=True)
class DetectionPolicy:
    """What the shipped analyzer makes of what its model finds."""

    min_confidence: float = setting(
        0.4, "What the model is less sure of is left out; a request's hints may say otherwise.", min=0.05, max=0.99
    )


class Category(StrEnum):
    """Named as primary events are; the first that is present is the primary event."""

    HAZARD = "hazard"
    CAMERA_ISSUE = "camera_issue"
    HUMAN = "human"
    ANIMAL = "animal"
    OBJECT_MISSING = "object_missing"
    VEHICLE = "vehicle"


@dataclass(frozen=True, slots=True)
class Meaning:
    category: Category
    tag: str | None = None


def _animal(tag: str) -> Meaning:
    return Meaning(Category.ANIMAL, tag)


# Labels of COCO, and those of models that know what the vocabulary knows. Other labels mean nothing.
MEANINGS: Mapping[str, Meaning] = {
    "person": Meaning(Category.HUMAN),
    "dog": _animal("animal.dog"),
    "cat": _animal("animal.cat"),
    "bird": _animal("animal.bird"),
    "deer": _animal("animal.deer"),
    "boar": _animal("animal.boar"),
    **{
        label: _animal("animal.unknown")
        for label in ("horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe")
    },
    **{
        label: Meaning(Category.VEHICLE)
        for label in ("bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat")
    },
    "smoke": Meaning(Category.HAZARD, "hazard.smoke_like"),
    "fire": Meaning(Category.HAZARD, "hazard.flame_like"),
    "flame": Meaning(Category.HAZARD, "hazard.flame_like"),
    "flood": Meaning(Category.HAZARD, "hazard.water_present"),
    "fallen tree": Meaning(Category.HAZARD, "hazard.fallen_tree_like"),
}
# Count only where they touch a person: a case on a shelf is not carried, a helmet on a hook not worn.
CARRIED: Mapping[str, str] = {
    "backpack": "carry.backpack",
    "handbag": "carry.bag",
    "suitcase": "carry.bag",
    "umbrella": "carry.umbrella",
    "hat": "appearance.hat_like",
    "helmet": "appearance.helmet_like",
    "hardhat": "appearance.helmet_like",
    "mask": "appearance.mask_like",
    "face": "appearance.face_visible",
}


ALL_EVENTS: tuple[str, ...] = (NO_EVENT, *(str(category) for category in Category), UNKNOWN_EVENT)
# Told by the picture itself, or by anything at all that is recognized.
_ALWAYS = frozenset({Category.CAMERA_ISSUE, Category.OBJECT_MISSING})


def events_of(labels: Iterable[str]) -> tuple[str, ...]:
    """The primary events that a model of these labels can lead to; what it does not know it is not credited with."""
    known = _ALWAYS | {MEANINGS[label].category for label in labels if label in MEANINGS}
    return (NO_EVENT, *(str(category) for category in Category if category in known), UNKNOWN_EVENT)


@dataclass(frozen=True, slots=True)
class Detection:
    """One thing a detector found; the place in 0..1 of the picture's width and height, x1 < x2, y1 < y2."""

    label: str  # lower case
    score: float  # 0..1
    x1: float
    y1: float
    x2: float
    y2: float

    def box(self) -> Box:
        return Box(self.x1, self.y1, self.x2, self.y2, self.label, round(self.score, 3))

    def touches(self, other: "Detection") -> bool:
        return self.x1 < other.x2 and other.x1 < self.x2 and self.y1 < other.y2 and other.y1 < self.y2


@dataclass(frozen=True, slots=True)
class Quality:
    """A picture as a whole, in numbers."""

    blur_score: float  # 0..100, higher is blurrier
    mean_luma: float  # 0..255
    bright_share: float  # of pixels above BRIGHT_ABOVE_LUMA, 0..1


@dataclass(frozen=True, slots=True)
class Hints:
    """What the caller knows of a camera. Names are labels, categories or tags."""

    night: bool = False
    excluded: frozenset[str] = frozenset()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    expected: frozenset[str] = frozenset()
    masks: tuple[Polygon, ...] = ()  # black on purpose
    shelf: Polygon | None = None  # a place that things shall not vanish from

    @property
    def unsaid(self) -> frozenset[str]:
        """Names that make neither event nor tag."""
        return self.excluded | self.expected

    @property
    def expected_things(self) -> frozenset[str]:
        """Without what is expected of the picture itself."""
        return frozenset(name for name in self.expected if not _is_of_the_picture(name))


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured besides the quality: of people, and against the picture before."""

    people_tags: frozenset[str] = frozenset()
    tampering_tags: frozenset[str] = frozenset()
    is_missing: bool = False  # something is gone from the shelf


NOTHING_MEASURED = Measured()


@dataclass(slots=True)
class _Thing:
    found: Detection
    meaning: Meaning
    is_doubted: bool = False  # another category claims its place


def interpret(
    found: Sequence[Detection],
    quality: Quality,
    hints: Hints,
    vocabulary: Vocabulary,
    policy: DetectionPolicy,
    measured: Measured = NOTHING_MEASURED,
) -> Analysis:
    """The analysis of one picture, without what only the service knows (model and time taken)."""
    wanted = [one for one in found if _is_wanted(one, hints, policy)]
    things = _one_name_a_place(wanted)
    unexpected = [thing for thing in things if hints.expected.isdisjoint(names_of(thing.found.label))]
    poor = _allowed(quality_tags(quality), Category.CAMERA_ISSUE, hints)
    tampered = _allowed(measured.tampering_tags, Category.CAMERA_ISSUE, hints)
    missing = _allowed((TAG_MISSING,) if measured.is_missing else (), Category.OBJECT_MISSING, hints)
    primary = _primary(unexpected, poor, tampered, missing)
    if primary is None:
        return Analysis(vocabulary.version, False, NO_EVENT, (), 0, False)
    persons = [thing.found for thing in unexpected if thing.meaning.category is Category.HUMAN]
    carried = [one for one in wanted if one.label in CARRIED and any(one.touches(person) for person in persons)]
    confidence = _confidence(unexpected, primary)
    tags = {*poor, *tampered, *missing, *_tags(unexpected), *_carried_tags(carried, hints)}
    if persons:
        tags |= {_count_tag(persons), *measured.people_tags}
    if confidence is not None and confidence < UNKNOWN_BELOW:
        tags.add(TAG_LOW_CONFIDENCE)
    known = tuple(sorted(tag for tag in tags - hints.unsaid if vocabulary.has(tag)))
    return Analysis(
        schema_version=vocabulary.version,
        detected=True,
        primary_event=primary if primary in vocabulary.primary_events else UNKNOWN_EVENT,
        tags=known,
        severity=_severity(known, bool(persons) and hints.night, vocabulary),
        unknown_flag=any(thing.is_doubted for thing in unexpected) or _is_doubted(unexpected, confidence),
        confidence=confidence,
        count_hint=sum(thing.meaning.category is primary for thing in unexpected) or None,
        boxes=tuple(one.box() for one in [*(thing.found for thing in things), *carried]),
    )


def people(found: Sequence[Detection], hints: Hints, policy: DetectionPolicy) -> tuple[Detection, ...]:
    """Those who make an event, surest first: neither expected nor excluded."""
    things = _one_name_a_place([one for one in found if _is_wanted(one, hints, policy)])
    persons = [thing.found for thing in things if thing.meaning.category is Category.HUMAN]
    return tuple(one for one in persons if hints.expected.isdisjoint(names_of(one.label)))


@lru_cache(maxsize=1024)
def names_of(label: str) -> tuple[str, ...]:
    """The names that hints may use for it, the most special first."""
    meaning = MEANINGS.get(label)
    tag = meaning.tag if meaning is not None else CARRIED.get(label)
    return tuple(name for name in (tag, label, meaning.category if meaning is not None else None) if name)


def unknown_names(hints: Hints, labels: Collection[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Names in hints that nothing is called by: written wrong, or of another model. `labels` are the model's."""
    asked = {*hints.excluded, *hints.expected, *hints.thresholds}
    return tuple(
        sorted(
            name
            for name in asked
            if name not in MEANINGS
            and name not in CARRIED
            and name not in labels
            and name not in ALL_EVENTS
            and not vocabulary.has(name)
        )
    )


def quality_tags(quality: Quality) -> tuple[str, ...]:
    """What is wrong with a picture as a whole, by the contract's numbers."""
    tags = []
    if quality.blur_score > BLUR_ABOVE_SCORE:
        tags.append(TAG_BLUR)
    if quality.mean_luma < DARK_BELOW_LUMA:
        tags.append(TAG_DARK)
    if quality.bright_share > GLARE_ABOVE_SHARE:
        tags.append(TAG_GLARE)
    return tuple(tags)


def _is_wanted(one: Detection, hints: Hints, policy: DetectionPolicy) -> bool:
    names = names_of(one.label)
    if one.label in hints.excluded or not hints.excluded.isdisjoint(names):
        return False
    if not hints.thresholds:
        return one.score >= policy.min_confidence
    least = next((hints.thresholds[name] for name in names if name in hints.thresholds), policy.min_confidence)
    return one.score >= least


def _allowed(tags: Iterable[str], category: Category, hints: Hints) -> frozenset[str]:
    return frozenset() if category in hints.unsaid else frozenset(tags) - hints.unsaid


def _carried_tags(carried: Iterable[Detection], hints: Hints) -> set[str]:
    return {CARRIED[one.label] for one in carried if hints.expected.isdisjoint(names_of(one.label))}


def _is_of_the_picture(name: str) -> bool:
    return name in _ALWAYS or name.startswith("camera.")


def _one_name_a_place(wanted: Sequence[Detection]) -> list[_Thing]:
    """The things with a meaning, best first, one for each place.

    Detectors name one thing twice, a car that is also a truck. The better name stays. Where the names are of
    different categories and nearly as sure, both stay, and that is a doubt.
    """
    kept: list[_Thing] = []
    for one in sorted(wanted, key=lambda one: -one.score):
        meaning = MEANINGS.get(one.label)
        if meaning is None:
            continue
        rivals = [thing for thing in kept if iou(thing.found.box(), one.box()) > SAME_PLACE_IOU]
        if any(_beats(rival, one, meaning) for rival in rivals):
            continue
        for rival in rivals:
            rival.is_doubted = True
        kept.append(_Thing(one, meaning, is_doubted=bool(rivals)))
    return kept


def _beats(rival: _Thing, one: Detection, meaning: Meaning) -> bool:
    return rival.meaning.category is meaning.category or rival.found.score - one.score > CLOSE_CALL


def _primary(
    things: Sequence[_Thing], poor: Collection[str], tampered: Collection[str], missing: Collection[str]
) -> Category | None:
    present = {thing.meaning.category for thing in things}
    if tampered or (poor and not present):
        present.add(Category.CAMERA_ISSUE)
    if missing:
        present.add(Category.OBJECT_MISSING)
    return next((category for category in Category if category in present), None)


def _confidence(things: Sequence[_Thing], primary: Category) -> float | None:
    """Of the primary event's surest thing. What was measured rather than recognized has none."""
    scores = [thing.found.score for thing in things if thing.meaning.category is primary]
    return round(max(scores), 3) if scores else None


def _is_doubted(things: Sequence[_Thing], confidence: float | None) -> bool:
    if confidence is not None and confidence < UNKNOWN_BELOW:
        return True
    hazard = _confidence(things, Category.HAZARD)
    return hazard is not None and hazard < HAZARD_UNKNOWN_BELOW


def _tags(things: Sequence[_Thing]) -> set[str]:
    return {thing.meaning.tag for thing in things if thing.meaning.tag is not None}


def _count_tag(persons: Sequence[Detection]) -> str:
    return TAG_SINGLE if len(persons) == 1 else TAG_MULTIPLE


def _severity(tags: Sequence[str], human_at_night: bool, vocabulary: Vocabulary) -> int:
    known = [tag for tag in map(vocabulary.tag, tags) if tag is not None]
    highest = max((tag.severity_default for tag in known), default=0)
    return max(highest, NIGHT_HUMAN_SEVERITY) if human_at_night else highest
