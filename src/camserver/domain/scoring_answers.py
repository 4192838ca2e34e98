"""Reading a model's answer: checked, repaired where it is clear what was meant, and what follows when it is not.

A score is a finite number from 0 to 1. Nothing is guessed: numbers out of range, too few or too many of them, and NaN
are no answer, and the model is asked again with what was wrong.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import orjson

from camserver.domain.scoring_prompts import ANCHORS
from camserver.domain.sheet_layout import Category

QUOTED_MAX_CHARS: Final = 80
# What rounding may add.
_SLACK: Final = 1e-6
# Without looking for blanks around it, which costs more than a short answer.
_DECODED: Final = json.JSONDecoder().raw_decode
_TRIALS_MAX: Final = 20
_FLOATS: Final = {float}
_ANCHORS: Final = {phrase.casefold(): score for phrase, score in ANCHORS.items()}
_TRAILING_COMMA: Final = re.compile(r",\s*([\]}])")
_NAMES: Final = ("scores", "score", "results", "values", "ratings")
_SINGLE: Final = ("score", "value", "rating", "anchor", "phrase")


class Read(NamedTuple):
    """Scores, or what was wrong with the answer, for the model and for people."""

    scores: tuple[float, ...] | None
    wrong: str = ""


def read_scores(text: str, categories: Sequence[Category]) -> Read:
    """What an answer says. `text` is the model's own, with whatever it put around the JSON."""
    document = _document(text)
    said = document.get("scores") if type(document) is dict else None
    if type(said) is list and len(said) == len(categories) and _is_plain(said):
        return Read(tuple(said))  # the usual case, a million times
    if document is None:
        return Read(None, "it holds no JSON")
    entries = _entries(document, categories)
    if entries is None:
        return Read(None, 'it has no list named "scores"')
    if len(entries) != len(categories):
        return Read(None, f"it has {len(entries)} scores, and there are {len(categories)} categories")
    scores: list[float] = []
    for number, entry in enumerate(entries, start=1):
        score = _score(entry)
        if isinstance(score, str):
            return Read(None, f"score {number} {score}")
        scores.append(score)
    return Read(tuple(scores))


def _is_plain(said: list[Any]) -> bool:
    # With not-a-number in it, the sum is not-a-number, which equals nothing.
    return set(map(type, said)) == _FLOATS and min(said) >= 0.0 and max(said) <= 1.0 and sum(said) == sum(said)


def is_valid(scores: Sequence[object], count: int) -> bool:
    """Whether stored scores are what they should be; what comes out of the cache is checked too."""
    return len(scores) == count and all(
        isinstance(one, int | float) and not isinstance(one, bool) and 0.0 <= one <= 1.0 for one in scores
    )


def _document(text: str) -> Any:
    """The JSON in a text: whole, in a fenced block or in words; with commas too many, too."""
    try:
        return orjson.loads(text)  # the usual case
    except ValueError:
        pass
    text = text.strip()
    try:
        found, end = _DECODED(text)
        if end == len(text):
            return found
    except (ValueError, RecursionError):
        pass
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text)):
        found = _first_json(candidate)
        if found is not None:
            return found
    return None


def _first_json(text: str) -> Any:
    decoder = json.JSONDecoder()
    places = [found.start() for found in re.finditer(r"[{\[]", text)][:_TRIALS_MAX]
    for at in places:
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        return found
    return None


def _entries(document: Any, categories: Sequence[Category]) -> list[Any] | None:
    """The scores in the order of the categories, however the model arranged them."""
    if isinstance(document, Mapping):
        for name in _NAMES:
            if name in document:
                return _entries(document[name], categories)
        return _by_name(document, categories)
    if not isinstance(document, list):
        return None
    named = {str(label): one for one in document if isinstance(one, Mapping) for label in [_label(one)] if label}
    if named and len(named) == len(document):
        # Each says what it is about: its place in the list says less.
        return _by_name(named, categories)
    return [_single(one) for one in document]


def _label(entry: Mapping[str, Any]) -> Any:
    return next((entry[name] for name in ("category", "name", "label") if name in entry), None)


def _by_name(document: Mapping[str, Any], categories: Sequence[Category]) -> list[Any] | None:
    folded = {str(name).strip().casefold(): value for name, value in document.items()}
    for names in ([one.name for one in categories], [str(one + 1) for one in range(len(categories))]):
        if all(name.strip().casefold() in folded for name in names):
            return [_single(folded[name.strip().casefold()]) for name in names]
    return None


def _single(entry: Any) -> Any:
    """The score of an entry that is an object of its own."""
    if isinstance(entry, Mapping):
        return next((entry[name] for name in _SINGLE if name in entry), None)
    return entry


def _score(entry: Any) -> float | str:
    """The score, or what is wrong with it."""
    if isinstance(entry, str):
        said = entry.strip()
        if said.casefold() in _ANCHORS:
            return _ANCHORS[said.casefold()]
        try:
            entry = float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
        except ValueError:
            return f"is {said[:QUOTED_MAX_CHARS]!r}, which is no score"
    if isinstance(entry, bool) or not isinstance(entry, int | float):
        return "is missing" if entry is None else f"is {str(entry)[:QUOTED_MAX_CHARS]}, which is no number"
    if isinstance(entry, int):
        # An integer may have more digits than a float can hold.
        entry = float(entry) if 0 <= entry <= 1 else math.inf
    if not math.isfinite(entry) or not -_SLACK <= entry <= 1 + _SLACK:
        return "is not between 0.00 and 1.00"
    return round(min(max(float(entry), 0.0), 1.0), 4)


class Next(StrEnum):
    """What follows an answer that is of no use."""

    REASK = "reask"  # the same model, told what was wrong
    FALL_BACK = "fall_back"  # the next model
    GIVE_UP = "give_up"  # a note, and empty cells


def after_bad_answer(reasked: int, models_left: int, reasks: int) -> Next:
    if reasked < reasks:
        return Next.REASK
    return Next.FALL_BACK if models_left > 0 else Next.GIVE_UP
