"""Every command that README.md and docs/ show is run, or held against its options where running it is impossible.

A new command that is neither fails here: either it runs, or tests/docs/manners.py says why it does not.
"""

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.docs.documented import Shown, all_shown
from tests.docs.manners import ENDS, PARSED, ends, environment, ready, why_parsed
from tests.docs.stage import Stage
from tests.repository.tree import ROOT, documents

# Programs beside camserver that pages show, and why they are not run here.
OTHERS = {
    "openssl": "somebody else's",
    "od": "somebody else's",
    "tail": "somebody else's",
    "tr": "somebody else's",
    "unzip": "somebody else's",
    "printf": "prints a password into a pipe",
    "read": "asks somebody for a password",
    "python3": "makes an environment of its own",
    "pip": "installs packages",
    "pytest": "would run these tests",
    "systemctl": "changes this machine's services",
    "ss": "looks at this machine's ports",
    "curl": "asks a server by an address or token of its own; tests/services/web asks with both kinds of tokens",
    "journalctl": "looks at this machine's journal",
    "grep": "somebody else's",
    "ln": "changes this machine's programs",
    "install": "puts the analyzer's model into the data folder of an installed machine",
    "set": "the shell's own",
    ".": "reads a file of an installed machine",
}


def distinct(shown: list[Shown]) -> list[Shown]:
    """Each command once, however many pages show it."""
    return list({(one.words, one.env): one for one in shown}.values())


SHOWN = distinct(all_shown())
OURS = [one for one in SHOWN if one.program == "camserver"]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    made = Stage(tmp_path_factory.mktemp("stage"))
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_pages_show_commands_of_programs_that_are_known() -> None:
    unknown = [str(one) for one in SHOWN if one.program not in {"camserver", "make", *OTHERS}]
    assert not unknown, "a shell block (```sh) holds something else than commands"


def test_every_block_says_what_it_holds() -> None:
    """So that a command is never taken for a drawing."""
    bare = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in documents()
        for number, (line, is_open) in enumerate(_fences(page.read_text()), start=1)
        if is_open and line.strip() == "```"
    ]
    assert not bare, "write ```sh before commands and ```text before anything else"


def test_no_command_hides_in_an_indented_block() -> None:
    """Those are not looked at here."""
    hidden = [
        f"{page.relative_to(ROOT)}:{number}"
        for page in documents()
        for number, (line, _) in enumerate(_outside(page.read_text()), start=1)
        if re.match(rf" {{4}}(?:camserver|make|{'|'.join(map(re.escape, OTHERS))}) ", line)
    ]
    assert not hidden, "write ```sh before commands instead of indenting them"


def _outside(text: str) -> Iterator[tuple[str, bool]]:
    """Lines that are in no fenced block; others as empty ones. A list's second line is not code."""
    inside, before = False, ""
    for line in text.splitlines():
        inside ^= re.match(r" {0,3}```", line) is not None
        is_block = before == "" or before.startswith("    ")
        yield ("" if inside or not is_block else line), inside
        before = line


def _fences(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it begins a block."""
    inside = False
    for line in text.splitlines():
        is_fence = re.match(r" {0,3}```", line) is not None
        yield line, is_fence and not inside
        inside ^= is_fence


def test_reasons_fit_something() -> None:
    """A reason for a command that no page shows any more is to go."""
    left = [begin for begin, _ in PARSED if not any(why_parsed(one.words[1:]) for one in OURS if _fits(one, begin))]
    left += [begin for begin, _, _ in ENDS if not any(_fits(one, begin) for one in OURS)]
    assert not left


def _fits(one: Shown, begin: str) -> bool:
    return " ".join(one.words[1:]).startswith(begin)


@pytest.mark.parametrize("one", [pytest.param(one, id=str(one)) for one in OURS if why_parsed(one.words[1:])])
def test_commands_that_are_not_run_are_understood(stage: Stage, one: Shown) -> None:
    assert stage.parse(one.words[1:], environment(one.env)) is None


@pytest.mark.timeout(900)
def test_every_other_command_does_what_it_says(stage: Stage) -> None:
    wrong = []
    for one in OURS:
        words = one.words[1:]
        if why_parsed(words):
            continue
        try:
            prepared = ready(stage, words)
        except AssertionError as error:
            wrong.append(f"{one}\n    could not be prepared: {error}")
            continue
        result = stage.run(prepared.words, environment(one.env), prepared.stdin)
        if result.exit_code not in ends(words) or (result.exception and not isinstance(result.exception, SystemExit)):
            wrong.append(f"{one}\n    as {prepared.words}\n    ended with {result.exit_code}: {result.output[-300:]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("words", sorted({one.words for one in SHOWN if one.program == "make"}), ids=" ".join)
def test_make_knows_its_targets(words: tuple[str, ...]) -> None:
    # Not the outer make's flags.
    command = ["env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", "make", "--dry-run", *words[1:]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
