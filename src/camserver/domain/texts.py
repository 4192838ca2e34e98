"""Finding words in notes and memos, in Japanese and English alike.

Text is *folded* first (NFKC, then case folding), so that full and half width and capitals make no difference. Then it
falls into runs: what is written without spaces (kanji, kana, hangul) and words of other letters and digits. A run
without spaces is found by any part of it, a word by its beginning.

What a search looks up are *tokens*: of a run its letters, and two and three letters that follow each other, of a word
itself and its short beginnings. A text that holds all tokens of a query nearly always matches; `Query.parts` are what
must be in the folded text to be sure.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from camserver.base.errors import BadInput

QUERY_MAX_CHARS: Final = 100
# More would only make it slower: few texts hold so many.
QUERY_RUNS_MAX: Final = 8
# Looking tokens up is what takes long in a long query, and a few of them lead to what all do.
QUERY_TOKENS_MAX: Final = 12
# A word is looked up by at most this many of its letters; the rest is compared.
PREFIX_MAX_CHARS: Final = 6
TOKEN_MAX_CHARS: Final = 8
# Of what is written without spaces so many letters are looked up together. Pairs alone lead to too much: nobody may
# have written 赤いトラック where each of 赤い, いト, トラ, ラッ and ック is in thousands of texts.
GRAM_CHARS: Final = 3
EXCERPT_CHARS: Final = 160
# Words stand between spaces in what texts are compared by, so that a word's beginning can be asked for.
_GAP: Final = " "

# Written without spaces between words: kanji and its marks, kana, hangul.
_DENSE = (
    "\u3005-\u3007\u3041-\u3096\u3099-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_DENSE}]+|[^\\W_{_DENSE}]+")
_IS_DENSE = re.compile(f"[{_DENSE}]")
# Which form of a kanji is meant, where a line may be broken, which way is written: nobody sees or types it.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked up, and what the text is compared with."""

    tokens: tuple[str, ...]  # of a long query some, from its beginning to its end
    parts: tuple[str, ...]  # all of them are in the `comparable` of a text that matches


def fold(text: str) -> str:
    seen = _UNSEEN.sub("", text)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())


def comparable(text: str) -> str:
    """A text as queries are compared with it: its runs, each between spaces."""
    return f"{_GAP}{_GAP.join(_RUN.findall(fold(text)))}{_GAP}"


def tokens_of(text: str) -> frozenset[str]:
    """What a text is found by."""
    found: set[str] = set()
    for run in _RUN.findall(fold(text)):
        if _IS_DENSE.match(run):
            # Shorter ones, too: 犬 and 赤い are what people search for.
            found.update(gram for length in range(1, GRAM_CHARS + 1) for gram in _grams(run, length))
        else:
            found.add(run[:PREFIX_MAX_CHARS])
            found.update(run[:length] for length in range(2, min(len(run), PREFIX_MAX_CHARS)))
    return frozenset(found)


def _grams(run: str, length: int) -> list[str]:
    return [run[index : index + length] for index in range(len(run) - length + 1)]


def parse_query(text: str) -> Query:
    """BadInput when there is nothing in it to look for."""
    runs = list(dict.fromkeys(_RUN.findall(fold(text[:QUERY_MAX_CHARS]))))
    if not runs:
        raise BadInput("the text to search for holds no letter or digit", reason="bad_text", field="text")
    if len(runs) > QUERY_RUNS_MAX:
        raise BadInput(
            f"the text to search for has {len(runs)} words, at most {QUERY_RUNS_MAX} are looked for; leave some out",
            reason="text_words",
            field="text",
            words_max=QUERY_RUNS_MAX,
        )
    tokens: list[str] = []
    parts: list[str] = []
    for run in runs:
        if _IS_DENSE.match(run):
            tokens += _grams(run, min(len(run), GRAM_CHARS))
            parts.append(run)
        else:
            tokens.append(run[:PREFIX_MAX_CHARS])
            # One letter is a word of its own, not the beginning of a thousand.
            parts.append(f"{_GAP}{run}{_GAP}" if len(run) == 1 else f"{_GAP}{run}")
    return Query(_spread(list(dict.fromkeys(tokens))), tuple(parts))


def _spread(tokens: list[str]) -> tuple[str, ...]:
    """At most so many as are looked up, as far from each other as can be: neighbours share letters, and texts."""
    count = min(len(tokens), QUERY_TOKENS_MAX)
    return tuple(tokens[place * len(tokens) // count] for place in range(count))


def matches(query: Query, text: str) -> bool:
    """Whether a text is one that the query asks for."""
    compared = comparable(text)
    return all(part in compared for part in query.parts)


def excerpt(query: Query, text: str) -> str:
    """The part of a text around the first thing found, on one line."""
    line = " ".join(text.split())
    if len(line) <= EXCERPT_CHARS:
        return line
    # Folding letter by letter keeps places; where that is not the whole truth, the beginning is shown.
    folded = [fold(letter) for letter in line]
    places = [0]
    for letter in folded:
        places.append(places[-1] + len(letter))
    whole = "".join(folded)
    found = [place for part in query.parts if (place := whole.find(part.strip())) >= 0]
    at = next((index for index, place in enumerate(places) if place >= min(found)), 0) if found else 0
    begin = max(0, min(at - EXCERPT_CHARS // 4, len(line) - EXCERPT_CHARS))
    end = begin + EXCERPT_CHARS
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"
