"""Finds tags in the XML of a workbook, in time that grows with its length only, and a piece at a time.

A search by a pattern holds every thread of the process until it ends, and a small file unpacks to megabytes that were
chosen to make it long. So no pattern here and in the modules that use this goes beyond the next "<", where another
match could begin; none begins within a word or a run of blanks; and none is sought in more than a window at once.
"""

import re
from collections.abc import Iterator
from typing import Final

# The longest tag that is read; spreadsheet programs write some hundred bytes.
TAG_MAX_BYTES: Final = 65_536
WINDOW_BYTES: Final = 4 * TAG_MAX_BYTES
_ATTRIBUTE: Final = re.compile(rb"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
_ENTITY: Final = re.compile(r"&(#x[0-9A-Fa-f]{1,6}|#[0-9]{1,7}|amp|lt|gt|quot|apos);")
_ENTITIES: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
# How Excel writes characters that XML can't hold.
_ESCAPED: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_TEXT: Final = re.compile(rb"<(?:\w+:)?t(?:\s[^<>]*+)?>")
# How a text is read aloud (furigana), which is no part of it.
_ALOUD: Final = re.compile(rb"<(?:\w+:)?rPh[\s>]")
_ALOUD_END: Final = re.compile(rb"</(?:\w+:)?rPh>")
# What stands for a character that no text can hold.
UNKNOWN: Final = "\ufffd"


def find(tag: re.Pattern[bytes], data: bytes, begin: int = 0) -> re.Match[bytes] | None:
    """The first such tag from a place on."""
    while begin < len(data):
        found = tag.search(data, begin, begin + WINDOW_BYTES)
        if found is not None:
            return found
        # A tag may be cut by the end of the window.
        begin += WINDOW_BYTES - TAG_MAX_BYTES
    return None


def find_all(tag: re.Pattern[bytes], data: bytes) -> Iterator[bytes]:
    at = 0
    while (found := find(tag, data, at)) is not None:
        yield found[0]
        at = found.end()


def attributes(tag: bytes) -> dict[str, str]:
    """Attributes of a start tag, without their prefixes."""
    return {
        name.decode().rpartition(":")[2]: unescaped((double or single).decode("utf-8", "replace"))
        for name, double, single in _ATTRIBUTE.findall(tag)
    }


def unescaped(text: str) -> str:
    if "&" not in text:
        return text
    return _ENTITY.sub(_entity, text)


def _entity(found: re.Match[str]) -> str:
    name = found[1]
    if not name.startswith("#"):
        return _ENTITIES[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    is_character = 0 < code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else UNKNOWN


def shown_text(raw: bytes) -> str:
    """A text between tags, as people see it."""
    text = unescaped(raw.decode("utf-8", "replace"))
    if "_x" in text:
        text = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
        # Two halves written one after the other are one character, half a one alone is none.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\r\n", "\n").replace("\0", UNKNOWN)


def text_after(tag: re.Match[bytes]) -> bytes | None:
    """What stands between a tag and the end of its element. None where another tag follows instead."""
    data, begin = tag.string, tag.end()
    end = data.find(b"<", begin)
    return data[begin:end] if end >= 0 and data.startswith(b"</", end) else None


def text_in(element: bytes) -> str:
    """The text of a shared or an inline string, with whatever formatting left out."""
    if b"rPh" in element:
        element = b"".join(_without_aloud(element))
    parts: list[bytes] = []
    at = 0
    while (found := find(_TEXT, element, at)) is not None:
        parts.append(text_after(found) or b"")
        at = found.end()
    return shown_text(b"".join(parts))


def _without_aloud(element: bytes) -> Iterator[bytes]:
    at = 0
    while (begin := find(_ALOUD, element, at)) is not None:
        end = find(_ALOUD_END, element, begin.end())
        if end is None:
            break  # nor has any further one an end
        yield element[at : begin.start()]
        at = end.end()
    yield element[at:]
