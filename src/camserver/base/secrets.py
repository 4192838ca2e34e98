"""Secrets: a type that can't be formatted, files that only their owner reads, and a scrubber by known value.

Regular expressions over URLs miss some passwords, so whatever becomes a `Secret` is remembered and removed
from every log line and error text by its value.
"""

import contextlib
import json
import os
import secrets as stdlib_secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Never
from urllib.parse import quote

MASK = "••••••"
# Shorter values would also match ordinary words in a log line.
SCRUB_MIN_CHARS = 4
# A server of thousands of cameras knows thousands of passwords, and every log line is looked through for all of them.
# Sets of texts are asked, copied and added to in one step, so other threads may scrub while a secret is added.
_known: set[str] = set()
_starts: set[tuple[str, ...]] = set()  # the characters they begin with
_lengths: set[int] = set()
_adding = threading.Lock()


class Secret:
    """A string that shows itself only to `reveal()`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if len(value) >= SCRUB_MIN_CHARS:
            _remember(value)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and stdlib_secrets.compare_digest(
            self._value.encode(), other._value.encode()
        )

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> Never:
        raise TypeError("a Secret is never pickled")


def _remember(value: str) -> None:
    """Adds `value` and how it looks inside a URL, in JSON and in a repr."""
    written = {value, quote(value, safe=""), repr(value)[1:-1], json.dumps(value)[1:-1]}
    with _adding:
        _lengths.update(map(len, written))
        _starts.update(tuple(one[:SCRUB_MIN_CHARS]) for one in written)
        _known.update(written)


def scrub(text: str) -> str:
    """`text` with every known secret value masked."""
    # Longest first: a secret that begins with another one must not be left half visible.
    for value in sorted(_found(text), key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def is_clean(text: str) -> bool:
    """Whether no known secret value is in `text`."""
    return not _found(text)


def _found(text: str) -> set[str]:
    """The secrets that are in `text`: each is looked for, or each place is looked at, whichever is less work."""
    if len(_known) * 2 < len(text):
        return {value for value in _known.copy() if value in text}
    # Almost always nothing is there, and a set finds that out without a step of ours for each place.
    if _starts.isdisjoint(_beginnings(text)):
        return set()
    places = [at for at, beginning in enumerate(_beginnings(text)) if beginning in _starts]
    lengths = _lengths.copy()
    return {piece for at in places for length in lengths if (piece := text[at : at + length]) in _known}


def _beginnings(text: str) -> Iterator[tuple[str, ...]]:
    """The first characters of whatever begins at each place."""
    return zip(*(text[offset:] for offset in range(SCRUB_MIN_CHARS)), strict=False)


def load_or_make(path: Path, bytes_count: int = 32, make: Callable[[], str] | None = None) -> Secret:
    """The secret kept in `path`; made on first use, complete or not at all, readable by its owner only.

    `make` gives its text; without it, it is `bytes_count` random bytes in base64url.
    """
    try:
        return Secret(path.read_text().strip())
    except FileNotFoundError:
        pass
    text = stdlib_secrets.token_urlsafe(bytes_count) if make is None else make().strip()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{stdlib_secrets.token_hex(4)}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        # link() and not rename(): when two processes start at once, the first secret stays.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return Secret(path.read_text().strip())
