"""Text on one line that people give as a name, and what they say about something in a few words."""

from pydantic import AfterValidator

from camserver.domain import names


def _plain(text: str) -> str:
    """Refuses what does more than show itself; an empty one will do."""
    if not names.is_plain(text.strip()) or (text.strip() and not names.is_name(text)):
        raise ValueError("must be on one line, of characters that can be seen")
    return text


def _named(text: str) -> str:
    """The same, of what is listed by it: nobody finds one that is nothing but spaces, however wide."""
    if not _plain(text).strip():
        raise ValueError("must hold something that can be seen")
    return text


ONE_LINE = AfterValidator(_plain)
# Of a name that must not be empty.
NAME = AfterValidator(_named)
