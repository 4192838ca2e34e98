"""The root of the `camserver` command: global options, where the settings come from, and errors.

An error of ours is one line and an exit code of `base/exits.py`; an unexpected one is a line too, and its
traceback goes to a file. The commands are in the modules beside this one.
"""

import json
import os
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from camserver.base.errors import BadInput, BadSettings, CamError
from camserver.base.exits import Exit, exit_of
from camserver.base.secrets import scrub

if TYPE_CHECKING:
    from camserver.config import Settings

CONFIG_NAME = "camserver.toml"
CONFIG_VARIABLE = "CAMSERVER_CONFIG"
SYSTEM_CONFIG = Path("/etc/camserver") / CONFIG_NAME
# Set in a context's `meta` by a command that was asked for JSON, so that its error is JSON as well.
_JSON = "camserver.json"


class Commands(click.Group):
    """The root group: turns errors into one line and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except CamError as error:
            _show_error(ctx, error.message, error.code, exit_of(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click's own, and a reader such as `head` that has seen enough
        except Exception as error:
            where = _keep_traceback(error)
            message = f"unexpected {type(error).__name__}: {error}; the traceback is in {where}"
            _show_error(ctx, message, "unexpected", Exit.UNEXPECTED)


def _show_error(ctx: click.Context, message: str, code: str, exit_code: Exit) -> None:
    message = scrub(message)
    if ctx.meta.get(_JSON):
        click.echo(json.dumps({"error": code, "message": message, "exit_code": exit_code.value}, ensure_ascii=False))
    else:
        click.secho(f"error: {message}", fg="red", err=True)
    ctx.exit(exit_code.value)


def _keep_traceback(error: Exception) -> str:
    """Where the traceback was written: a new file that only this user can read."""
    fd, name = tempfile.mkstemp(prefix="camserver-error-", suffix=".log")
    with os.fdopen(fd, "w") as file:
        file.write(scrub("".join(traceback.format_exception(error))))
    return name


@dataclass(frozen=True, slots=True)
class Chosen:
    """The global options."""

    config: Path | None
    data_dir: Path | None

    def settings(self) -> "Settings":
        from camserver.config import load

        try:
            return load(self.config, os.environ, self.data_dir)
        except BadInput as error:
            raise BadSettings(error.message, **error.details) from error

    def as_options(self) -> list[str]:
        """The same choice for a child process, whose current folder may become another one."""
        options = []
        if self.config is not None:
            options += ["--config", str(self.config.absolute())]
        if self.data_dir is not None:
            options += ["--data-dir", str(self.data_dir.absolute())]
        return options


def find_config(given: Path | None) -> Path | None:
    if given is not None:
        return given
    here = Path(CONFIG_NAME)
    if here.exists():
        return here
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    return SYSTEM_CONFIG if SYSTEM_CONFIG.exists() else None


pass_chosen = click.make_pass_decorator(Chosen)


def _ask_for_json(ctx: click.Context, _: click.Parameter, wanted: bool) -> bool:
    ctx.meta[_JSON] = wanted
    return wanted


json_option = click.option("--json", "as_json", is_flag=True, callback=_ask_for_json, help="Print JSON, errors too.")
