"""`camserver config`: the settings and where they come from."""

import click

from camserver.commands.root import Chosen, json_option, pass_chosen


@click.group()
def config() -> None:
    """Look at and check the settings."""


@config.command("show")
@json_option
@pass_chosen
def config_show(chosen: Chosen, as_json: bool) -> None:
    """Print every setting and where its value came from.

    Secrets are masked.

    \b
    Examples:
      camserver config show
      camserver config show --json
    """
    from camserver import config as configuration

    shown = configuration.describe(chosen.settings())
    if as_json:
        click.echo(configuration.as_json(shown))
        return
    for one in shown:
        click.echo(f"{one.section}.{one.key} = {one.text}" + click.style(f"  ({one.source})", dim=True))


@config.command("check")
@pass_chosen
def config_check(chosen: Chosen) -> None:
    """Check the settings without starting anything.

    All problems are listed at once.

    \b
    Example:
      camserver --config camserver.toml config check
    """
    from camserver.clients.llm.opening import refuse_unpriced

    settings = chosen.settings()
    refuse_unpriced(settings.llm)
    for warning in settings.warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    source = settings.config_file or "no file: defaults and environment"
    click.echo(f"The settings are fine ({source}).")
