"""What a browser is pushed: a title, a few lines, and the page that a tap opens.

Push services carry 4 kB by the standard, and to Firefox on telephones less than 3 kB. What is too long is cut at its
end. Sealing and sending are elsewhere.
"""

import json
from collections.abc import Sequence
from typing import Final

BYTES_MAX: Final = 2_800
TITLE_MAX_CHARS: Final = 200
TOPIC_MAX_CHARS: Final = 32


def push_message(title: str, lines: Sequence[str], *, tag: str, link: str | None, delivery_uuid: str) -> bytes:
    """JSON as the page's service worker reads it, at most BYTES_MAX bytes. Messages of one tag replace each other."""
    body = "\n".join(lines)
    path = page_of(link)
    while True:
        text = {"title": title[:TITLE_MAX_CHARS], "body": body, "tag": tag, "url": path, "id": delivery_uuid}
        encoded = json.dumps(text, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        if len(encoded) <= BYTES_MAX:
            return encoded
        if not body:
            raise ValueError(f"tag and link alone have {len(encoded)} bytes")
        # A character takes at most six bytes; the rest is cut off in the next rounds.
        body = body[: -max(2, (len(encoded) - BYTES_MAX) // 6 + 1)].rstrip("…") + "…" if len(body) > 2 else ""


def page_of(link: str | None) -> str:
    """The page without its host: a browser opens it where it knows this server, by whatever name that is."""
    _, _, behind_scheme = (link or "").partition("://")
    _, _, path = behind_scheme.partition("/")
    # Two slashes would begin a host.
    return "/" + path.lstrip("/")


def topic_of(tag: str) -> str:
    """The header by which a push service replaces what a browser that was off has not got yet."""
    plain = "".join(one for one in tag if one.isascii() and (one.isalnum() or one in "-_"))
    return plain.replace("-", "")[:TOPIC_MAX_CHARS]
