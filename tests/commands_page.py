"""docs/ref/commands.md as the commands themselves say it.

python -m tests.commands_page > docs/ref/commands.md
"""

import inspect
from collections.abc import Iterator

import click

from camserver.cli import main

HEAD = """# Commands

Global options stand before the command, as in `camserver --data-dir /srv/camserver up`:

{options}

Exit codes are in [exit-codes.md](exit-codes.md), settings in [settings.md](settings.md).
"""


def commands(group: click.Group, path: str = "camserver") -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def options_of(command: click.Command) -> str:
    lines = []
    for option in command.params:
        if isinstance(option, click.Option):
            shown = option.show_default if isinstance(option.show_default, str) else None
            default = f" Default: {shown}." if shown else ""
            lines.append(f"- `{', '.join([*option.opts, *option.secondary_opts])}`: {option.help}{default}")
    return "\n".join(lines)


def section(path: str, command: click.Command) -> str:
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    prose, _, examples = text.partition("\nExample")
    shown = inspect.cleandoc(examples.partition("\n")[2])
    arguments = " ".join(
        one.make_metavar(click.Context(command)) for one in command.params if one.param_type_name == "argument"
    )
    parts = [
        f"## `{' '.join([path, arguments]).strip()}`",
        prose.strip(),
        options_of(command),
        f"```sh\n{shown}\n```",
    ]
    return "\n\n".join(part for part in parts if part)


def page() -> str:
    sections = [section(path, command) for path, command in commands(main)]
    return "\n".join([HEAD.format(options=options_of(main)), "\n\n".join(sections), ""])


if __name__ == "__main__":
    print(page(), end="")
