"""The built UI: what `make ui` left in the folder ui_dist, read once and kept in memory.

Knows names, media types, compressed copies and how long a browser may keep each. Which address shows which file is
the route's business.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from camserver.base.log import get_logger

log = get_logger(__name__)

FOLDER = Path(__file__).with_name("ui_dist")
INDEX = "index.html"
# Best first. "" is the file itself.
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"), ("", ""))
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
# Names below assets hold the content's hash, so what they name never changes; everything else is asked for anew.
_KEPT_FOR_EVER = "public, max-age=31536000, immutable"
_ASKED_AGAIN = "no-cache"


@dataclass(frozen=True, slots=True)
class Copy:
    """A file as it goes over the wire, in one encoding."""

    content: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UiFile:
    media_type: str
    copies: Mapping[str, Copy]  # by encoding; always with ""

    def copy_for(self, accept_encoding: str) -> Copy:
        """The smallest copy that the browser can read."""
        accepted = _accepted(accept_encoding)
        return next(
            self.copies[name] for name, _ in _ENCODINGS if name in self.copies and (not name or name in accepted)
        )


class UiFiles:
    def __init__(self, files: Mapping[str, UiFile]) -> None:
        self._files = files

    @property
    def index(self) -> UiFile | None:
        """None: this installation has no UI."""
        return self._files.get(INDEX)

    def find(self, name: str) -> UiFile | None:
        """By its path below the folder. Only names that were there at start exist, so no name leads elsewhere."""
        return self._files.get(name)


def load_ui(folder: Path) -> UiFiles:
    """Reads all files. Without them the API works and pages say what is missing."""
    found = {
        path.relative_to(folder).as_posix(): _read(folder, path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in _KINDS and path.is_file()
    }
    if INDEX not in found:
        log.warning(
            "there are no web pages: the UI was not built; run `make ui`, then start again", folder=str(folder)
        )
    return UiFiles(found)


def _read(folder: Path, path: Path) -> UiFile:
    hashed = path.relative_to(folder).parts[0] == "assets"
    kept = _KEPT_FOR_EVER if hashed else _ASKED_AGAIN
    copies = {}
    for encoding, ending in _ENCODINGS:
        place = path.with_name(path.name + ending)
        if place.is_file():
            copies[encoding] = _copy(place.read_bytes(), encoding, kept)
    return UiFile(_KINDS[path.suffix], copies)


def _copy(content: bytes, encoding: str, kept: str) -> Copy:
    headers = {
        "ETag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
        "Cache-Control": kept,
        "Vary": "Accept-Encoding",
    }
    if encoding:
        headers["Content-Encoding"] = encoding
    return Copy(content, headers)


def _accepted(accept_encoding: str) -> frozenset[str]:
    """The encodings that a browser names and does not refuse by a weight of zero."""
    accepted = set()
    for part in accept_encoding[:200].lower().split(","):
        name, _, weight = part.partition(";")
        digits = weight.strip().removeprefix("q=").replace(".", "")
        if not digits or digits.strip("0"):
            accepted.add(name.strip())
    return frozenset(accepted)
