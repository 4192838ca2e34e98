"""The reader of the docs finds what it should, so that the tests of the docs can fail."""

import click
import pytest

from .mentions import commands, invocations, resolve, shell_lines, spans

PAGE = """
Run `camserver up` or `.venv/bin/camserver db upgrade|check`, not `camserver.toml`.

```sh
$ CAMSERVER_WEB_PORT=9000 camserver up --demo   # a comment
git clone here camserver && cd camserver && make run
sudo camserver db check \\
  --json
```
```toml
camserver up
```
"""


@click.group()
@click.option("--config")
def root():
    """The root."""


@root.command()
@click.option("--demo", is_flag=True)
def up():
    """Starts."""


@root.group()
def db():
    """The database."""


@db.command()
@click.option("--json", is_flag=True)
def check():
    """Checks."""


def test_spans_leave_blocks_out():
    assert spans(PAGE) == ["camserver up", ".venv/bin/camserver db upgrade|check", "camserver.toml"]


def test_shell_lines_leave_other_languages_out():
    assert len(shell_lines(PAGE)) == 3


def test_invocations():
    assert invocations(PAGE) == [
        ["up"],
        ["db", "upgrade"],
        ["db", "check"],
        ["up", "--demo"],
        ["db", "check", "--json"],
    ]


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("up --demo", ("up",)),
        ("--config my.toml db check", ("db", "check")),
        ("db check --json value", ("db", "check")),
        ("db", ("db",)),
        ("COMMAND --help", ()),
        ("up --help", ("up",)),
    ],
)
def test_good_invocations(words, path):
    resolved = resolve(root, words.split())
    assert (resolved.path, resolved.problem) == (path, None)


@pytest.mark.parametrize("words", ["down", "up --nothing", "db upgrade", "db check --demo"])
def test_wrong_invocations(words):
    assert resolve(root, words.split()).problem


def test_every_command_is_walked():
    assert [path for path, _ in commands(root)] == [("db",), ("db", "check"), ("up",)]
