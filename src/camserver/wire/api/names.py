"""Text on one line that people give as a name, and what they say about something in a few words."""

from pydantic import AfterValidator

from camserver.domain import names


def _plain(text: str) -> str:
    """Refuses what does more than show itself. Whether an empty one will do is said where it is used."""
    if not names.is_plain(text.strip()) or (text.strip() and not names.is_name(text)):
        raise ValueError("must be on one line, of characters that can be seen")
    return text


ONE_LINE = AfterValidator(_plain)
