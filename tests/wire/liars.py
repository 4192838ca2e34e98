"""Analyzers that lie: answers that are right but for something, made by Hypothesis.

Each lie knows what it is about, so that a test can ask for its name in the refusal.
"""

import copy
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from camserver.domain.vocabulary import Vocabulary

Document = dict[str, Any]

_odd_text = st.text(max_size=20) | st.sampled_from(["", "\x00", "a" * 200, "'; DROP TABLE frames; --", "<script>"])
_odd_number = st.sampled_from(
    [-1, 4, 2**31, 2**63, 2**64, 10**30, -(10**30), 1.5, -0.5, 1e308, -1e308]
) | st.sampled_from([float("nan"), float("inf"), float("-inf")])
_odd = (
    st.none()
    | st.booleans()
    | _odd_text
    | _odd_number
    | st.lists(st.integers(), max_size=3)
    | st.dictionaries(st.text(max_size=5), st.integers(), max_size=2)
)


@dataclass(frozen=True, slots=True)
class Lie:
    about: str  # the field that is wrong
    document: Document


def truths(vocabulary: Vocabulary, fixed: Document) -> st.SearchStrategy[Document]:
    """Whole answers that keep the contract, in every shape it allows."""
    share = st.floats(0, 1, allow_subnormal=False)
    tags = st.lists(st.sampled_from([tag.id for tag in vocabulary.tags]), max_size=6)
    label = st.none() | st.text(st.characters(categories=("L", "N", "P")), max_size=30)
    span = st.tuples(st.integers(0, 999), st.integers(1, 1000)).filter(lambda pair: pair[0] < pair[1])
    box = st.builds(
        lambda xs, ys, name, conf: {
            "x1": xs[0] / 1000, "y1": ys[0] / 1000, "x2": xs[1] / 1000, "y2": ys[1] / 1000,
            "label": name, "conf": conf,
        },
        span, span, label, st.none() | share,
    )  # fmt: skip
    required = {
        **{name: st.just(value) for name, value in fixed.items()},
        "analyzed": st.just(True),
        "detected": st.just(True),
        "primary_event": st.sampled_from([name for name in vocabulary.primary_events if name != "none"]),
        "tags": tags,
        "severity": st.integers(0, 3),
        "unknown_flag": st.booleans(),
    }
    optional = {
        "confidence": share,
        "count_hint": st.integers(0, 100_000),
        "bboxes": st.lists(box, max_size=4),
        "processing_ms": st.integers(0, 86_400_000) | st.floats(0, 86_400_000),
        "warnings": st.lists(st.text(st.characters(categories=("L", "N")), max_size=40), max_size=3),
        "of_a_newer_version": st.integers() | st.text(max_size=9),
    }
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def lies(draw: st.DrawFn, vocabulary: Vocabulary, fixed: Document) -> Lie:
    """An answer with one lie in it."""
    document = copy.deepcopy(draw(truths(vocabulary, fixed)))
    kind = draw(st.sampled_from(sorted(_LIES)))
    return Lie(*_LIES[kind](draw, document, vocabulary))


def _unknown_tag(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    word = draw(st.text(st.characters(categories=("Ll",)), min_size=1, max_size=12).map(lambda text: f"ghost.{text}"))
    return "tags", {**document, "tags": [*document["tags"], word]}


def _unknown_event(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    words = st.text(max_size=12).filter(lambda text: text not in vocabulary.primary_events)
    return "primary_event", {**document, "primary_event": draw(words)}


def _severity(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    return "severity", {
        **document,
        "severity": draw(_odd.filter(lambda value: type(value) is not int or not 0 <= value <= 3)),
    }


def _flag(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    name = draw(st.sampled_from(["analyzed", "detected", "unknown_flag"]))
    return name, {**document, name: draw(_odd.filter(lambda value: not isinstance(value, bool)))}


def _share(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    return "confidence", {
        **document,
        "confidence": draw(st.sampled_from([-0.001, 1.001, 1e9, float("nan"), "1", True])),
    }


def _box(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    good = {"x1": 0.2, "y1": 0.2, "x2": 0.4, "y2": 0.4}
    corner = draw(st.sampled_from(sorted(good)))
    wrong = draw(
        st.sampled_from([-0.1, 1.1, float("nan"), float("inf"), None, "0.3", [], 0.9 if "1" in corner else 0.1])
    )
    return "bboxes", {**document, "bboxes": [good, {**good, corner: wrong}]}


def _flood(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    name = draw(st.sampled_from(["tags", "bboxes", "warnings"]))
    box = {"x1": 0.2, "y1": 0.2, "x2": 0.4, "y2": 0.4}
    one: object = {"tags": "count.single", "bboxes": box, "warnings": "x"}[name]
    return name, {**document, name: [one] * 2000}


def _echo(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    name = draw(st.sampled_from(["camera_id", "captured_at", "schema_version", "request_id"]))
    wrong = draw(_odd.filter(lambda value: value != document[name] and not (name == "request_id" and value is None)))
    return name, {**document, name: wrong}


def _missing(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    needed = ["analyzed", "detected", "primary_event", "tags", "severity", "unknown_flag", "camera_id", "captured_at"]
    name = draw(st.sampled_from(needed))
    return name, {key: value for key, value in document.items() if key != name}


def _count(draw: st.DrawFn, document: Document, vocabulary: Vocabulary) -> tuple[str, Document]:
    return "count_hint", {**document, "count_hint": draw(st.sampled_from([-1, 10**9, 1.5, "3", True, []]))}


_LIES = {
    "tag": _unknown_tag,
    "event": _unknown_event,
    "severity": _severity,
    "flag": _flag,
    "share": _share,
    "box": _box,
    "flood": _flood,
    "echo": _echo,
    "missing": _missing,
    "count": _count,
}


@st.composite
def twice_told(draw: st.DrawFn, vocabulary: Vocabulary, fixed: Document) -> tuple[str, bytes]:
    """A body in which one name comes twice, the second time with another value."""
    document = draw(truths(vocabulary, fixed))
    name = draw(st.sampled_from(sorted(document)))
    body = json.dumps(document)
    return name, (body[:-1] + f', "{name}": {json.dumps(draw(st.integers()))}}}').encode()
