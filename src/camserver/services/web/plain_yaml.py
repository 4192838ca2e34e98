"""YAML that nobody vouches for, as mappings, lists, texts and small numbers.

What is written once and named often counts as often as it is named, so that a few lines can't stand for gigabytes;
how much that is, and how deep, is bounded. Nothing is made of tags, and of plain scalars only what they say in every
version of YAML: dates, octal numbers and those of minutes and seconds stay texts.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

# Two thousand cameras with everything that can be said of one.
WEIGHT_MAX: Final = 300_000
DEPTH_MAX: Final = 64
# So many characters of a text weigh as much as an entry.
CHARS_OF_WEIGHT: Final = 64
# Written in C where that is there; both raise the same errors.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WHOLE: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FRACTION: Final = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]{0,18}(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: Final = {word: True for word in ("yes", "true", "on")} | {word: False for word in ("no", "false", "off")}
_NOTHING: Final = frozenset({"", "~", "null"})
_MERGE: Final = "<<"


class TooLarge(ValueError):
    """It stands for more than WEIGHT_MAX entries, or is deeper than DEPTH_MAX."""


@dataclass(slots=True)
class _Open:
    """A mapping or a list that is being read."""

    value: dict[str, object] | list[object]
    anchor: str | None
    weight: int = 1
    key: str | None = None
    merged: list[object] = field(default_factory=list)


def read(text: str) -> object:
    """The document, or None for an empty one. yaml.YAMLError, or TooLarge."""
    reading = _Reading()
    for event in yaml.parse(text, Loader=_LOADER):
        reading.take(event)
    return reading.document


class _Reading:
    def __init__(self) -> None:
        self.document: object = None
        self._count = 0
        self._open: list[_Open] = []
        # What has a name, and what it weighs.
        self._named: dict[str, tuple[object, int]] = {}

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                weight = 1 + len(event.value) // CHARS_OF_WEIGHT
                value = event.value if event.style or not event.implicit[0] else _meant(event.value)
                self._name(event.anchor, value, weight)
                self._put(event, value, weight, event.value)
            case yaml.AliasEvent():
                if event.anchor not in self._named:
                    raise _wrong(event, "an alias of nothing")
                value, weight = self._named[event.anchor]
                self._put(event, value, weight, value if isinstance(value, str) else None)
            case yaml.CollectionStartEvent():
                if len(self._open) >= DEPTH_MAX:
                    raise TooLarge
                made: dict[str, object] | list[object] = {} if isinstance(event, yaml.MappingStartEvent) else []
                self._open.append(_Open(made, event.anchor))
            case yaml.CollectionEndEvent():
                done = self._open.pop()
                _merge(done)
                self._name(done.anchor, done.value, done.weight)
                self._put(event, done.value, done.weight, None)
            case yaml.DocumentStartEvent():
                self._count += 1
                if self._count > 1:
                    raise _wrong(event, "a second document")

    def _name(self, anchor: str | None, value: object, weight: int) -> None:
        if anchor is not None:
            self._named[anchor] = (value, weight)

    def _put(self, event: yaml.Event, value: object, weight: int, as_key: str | None) -> None:
        """Into what is open; keys and values of a mapping take turns."""
        if not self._open:
            self.document = value
            return
        top = self._open[-1]
        top.weight += weight
        if top.weight > WEIGHT_MAX:
            raise TooLarge
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            if as_key is None:
                raise _wrong(event, "a key that is no text")
            top.key = as_key
        else:
            if top.key == _MERGE:
                top.merged.append(value)
            else:
                top.value[top.key] = value
            top.key = None


def _wrong(event: yaml.Event, said: str) -> yaml.MarkedYAMLError:
    mark = event.start_mark
    where = None if mark is None else yaml.Mark("", mark.index, mark.line, mark.column, None, 0)
    return yaml.MarkedYAMLError(None, None, said, where)


def _merge(done: _Open) -> None:
    """Entries of the mappings that it takes over; its own come first, then those of the first one."""
    if isinstance(done.value, dict):
        for one in _mappings(done.merged):
            for key, value in one.items():
                done.value.setdefault(key, value)


def _mappings(merged: list[object]) -> Iterator[dict[str, object]]:
    for one in merged:
        for mapping in one if isinstance(one, list) else [one]:
            if isinstance(mapping, dict):
                yield mapping


def _meant(text: str) -> object:
    lower = text.lower()
    if lower in _NOTHING:
        return None
    if lower in _WORDS:
        return _WORDS[lower]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else text
