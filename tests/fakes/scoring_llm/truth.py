"""What the fake says of a text and a category."""

import hashlib
import json
import re

_NAMED = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)


def truth(text: str, category: str) -> float:
    """A score that follows from the two alone, to two digits."""
    digest = hashlib.sha256(f"{text}\n{category}".encode()).digest()
    return round(int.from_bytes(digest[:4]) % 101 / 100, 2)


def asked_of(system: str, user: str) -> tuple[str, list[str]]:
    """The text and the names of the categories in a question of camserver's."""
    text, _ = json.JSONDecoder().raw_decode(user, user.index('"'))
    listed = system[system.rindex("\nCategories:") :]
    return text, [line.split(" | ")[0] for _, line in _NAMED.findall(listed)]
