"""The commands that README.md and docs/ show in shell blocks, as words to run them by."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.repository.mentions import shell_lines
from tests.repository.tree import ROOT, documents

_ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
_ENDS = {"&&", "||", ";", "|", "&"}
_REDIRECTIONS = {"<", ">", ">>"}


@dataclass(frozen=True, slots=True)
class Shown:
    """One simple command of a page. `words` begins with the program's name, without a path."""

    page: str
    words: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()

    @property
    def program(self) -> str:
        return self.words[0]

    def __str__(self) -> str:
        return f"{self.page}: {shlex.join(self.words)}"


def shown(page: Path) -> list[Shown]:
    """In the order of the page; `a|b` is written out as two, what is redirected is left out."""
    found = []
    for line in shell_lines(page.read_text(), frozenset({"sh"})):
        for env, words in _commands(line):
            name = words[0].rsplit("/", 1)[-1]
            found += [Shown(page.relative_to(ROOT).as_posix(), (name, *one), env) for one in _written_out(words[1:])]
    return found


def all_shown() -> list[Shown]:
    return [one for page in documents() for one in shown(page)]


def _commands(line: str) -> list[tuple[tuple[tuple[str, str], ...], list[str]]]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []  # A drawing, or text that is no command.
    found, env, command = [], [], []
    words = [*words, ";"]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _REDIRECTIONS:
            skip = True
        elif word in _ENDS:
            if command:
                found.append((tuple(env), command))
            env, command = [], []
        elif not command and (assigned := _ASSIGNMENT.fullmatch(word)):
            env.append((assigned[1], assigned[2]))
        elif command or word != "sudo":
            command.append(word)
    return found


def _written_out(words: list[str]) -> list[tuple[str, ...]]:
    variants: list[tuple[str, ...]] = [()]
    for word in words:
        choices = word.split("|") if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", word) else [word]
        variants = [(*variant, choice) for variant in variants for choice in choices]
    return variants
