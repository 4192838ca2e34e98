"""Names that people give to things: text on one line that shows what it is.

A name stands in mails, messages, tables of a terminal and files of others. A line break in it would begin a line of
somebody's choosing there, an escape would steer a terminal, and marks that turn the direction of writing would make
it read as another name. Everything else is a name, also spaces as wide as a kanji and letters that are newer than
this program.
"""

import unicodedata
from typing import Final

# Controls, halves of a letter, line and paragraph separators.
_REFUSED: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Embeddings, overrides and isolates of the direction of writing.
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
# What nobody sees when there is nothing else.
_UNSEEN: Final = frozenset({"Cf", "Zs", "Mn", "Me"})


def is_plain(text: str) -> bool:
    """Whether nothing in it does more than show itself."""
    return text.isprintable() or not any(_turns(letter) for letter in text)


def is_name(text: str) -> bool:
    """The same, and that there is something to see."""
    return is_plain(text) and any(unicodedata.category(letter) not in _UNSEEN for letter in text)


def plain(text: str) -> str:
    """A name that somebody else gave, with a space for what may not be in one."""
    return " ".join("".join(" " if _turns(letter) else letter for letter in text).split())


def _turns(letter: str) -> bool:
    return letter in _TURNING or unicodedata.category(letter) in _REFUSED
