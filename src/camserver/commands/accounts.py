"""Commands about who may sign in."""

import json

import click

from camserver.commands.asking import with_server
from camserver.commands.root import Chosen, json_option, pass_chosen


@click.command("setup-link")
@json_option
@pass_chosen
def setup_link(chosen: Chosen, as_json: bool) -> None:
    """Print a new one-time link for the first administrator.

    It makes the administrator's account while there is none. It works once, within an hour, and replaces the
    one before.

    \b
    Example:
      camserver setup-link
    """
    link = with_server(chosen, lambda server: server.new_setup_link())
    click.echo(json.dumps(link) if as_json else link["url"])
