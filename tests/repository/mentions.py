"""Finds in Markdown what the docs promise: commands with their options, modules, files and folders."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import click

_FENCE = re.compile(r"^ {0,3}```([\w-]*)[^\n]*\n(.*?)^ {0,3}```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_SHELL = frozenset({"", "sh", "bash", "shell", "console"})
_OPERATORS = {"&&", "||", ";", "|", "&", ">", ">>", "<", "2>&1"}


def spans(markdown: str) -> list[str]:
    """The inline code of a page; fenced blocks are not inline."""
    return _SPAN.findall(_FENCE.sub("", markdown))


def shell_lines(markdown: str, languages: frozenset[str] = _SHELL) -> list[str]:
    """The lines of shell blocks, continued ones joined, prompts taken off."""
    lines = []
    for language, body in _FENCE.findall(markdown):
        if language in languages:
            lines += [line.strip().removeprefix("$ ") for line in body.replace("\\\n", " ").splitlines()]
    return lines


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Splits at shell operators and takes off assignments and sudo."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    command: list[str] = []
    for word in [*words, ";"]:
        if word in _OPERATORS:
            if command:
                yield command
            command = []
        elif command or not (re.match(r"\w+=", word) or word in ("sudo", "exec")):
            command.append(word)


def invocations(markdown: str) -> list[list[str]]:
    """The arguments of every `camserver ...` on a page, `a|b` written out as two invocations."""
    found = []
    for line in [*spans(markdown), *shell_lines(markdown)]:
        for words in _simple_commands(line):
            if words[0].split("/")[-1] == "camserver":
                found += _alternatives(words[1:])
    return found


def _alternatives(words: list[str]) -> list[list[str]]:
    variants: list[list[str]] = [[]]
    for word in words:
        bare = word.strip("[]")
        choices = bare.split("|") if re.fullmatch(r"[a-z-]+(\|[a-z-]+)+", bare) else [bare]
        variants = [[*variant, choice] for variant in variants for choice in choices]
    return variants


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an invocation means: the command's path (without `camserver`) or what is wrong with it."""

    path: tuple[str, ...]
    problem: str | None = None


def resolve(root: click.Group, words: list[str]) -> Resolved:
    """Walks the tree of commands as click would, checking names and options but no values."""
    command: click.Command = root
    path: tuple[str, ...] = ()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("-"):
            name, _, value = word.partition("=")
            option = _option(command, name)
            if option is None and name not in ("--help", "-h"):
                return Resolved(path, f"`camserver {' '.join(path)}` has no option {name}")
            if option is not None and not (option.is_flag or option.count or value) and rest:
                rest.pop(0)
        elif isinstance(command, click.Group):
            if not re.fullmatch(r"[a-z][a-z-]*", word):
                break  # A placeholder such as COMMAND or ...
            found = command.get_command(click.Context(command), word)
            if found is None:
                return Resolved(path, f"there is no `camserver {' '.join([*path, word])}`")
            command, path = found, (*path, word)
    return Resolved(path)


def _option(command: click.Command, name: str) -> click.Option | None:
    options = [param for param in command.params if isinstance(param, click.Option)]
    return next((option for option in options if name in (*option.opts, *option.secondary_opts)), None)


def commands(root: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command and group below `root`, except hidden ones."""
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        if command.hidden:
            continue
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
