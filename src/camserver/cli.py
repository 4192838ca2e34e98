"""The `camserver` command: its root and the list of commands, which are in `commands/`."""

import json
import sys
from pathlib import Path

import click

from camserver import __version__
from camserver.base.exits import Exit
from camserver.commands import (
    accounts,
    analyze,
    audit,
    backup,
    cameras,
    cases,
    check,
    configuration,
    conformance,
    credentials,
    database,
    deliveries,
    doctor,
    events,
    flags,
    gate,
    incidents,
    install,
    jobs,
    leases,
    llm,
    models,
    notify,
    receivers,
    retention,
    rules,
    score,
    search,
    serving,
    shares,
    sites,
    statistics,
    summaries,
    tenants,
    tokens,
    users,
    vocabulary,
    why,
)
from camserver.commands.root import Chosen, Commands, find_config, json_option

_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"  {code.value:>2}  {code.meaning}" for code in Exit)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
    epilog=_EXIT_CODES,
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    show_default="./camserver.toml, else $CAMSERVER_CONFIG, else /etc/camserver/camserver.toml",
    help="The configuration file.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    show_default="server.data_dir",
    help="The folder camserver keeps everything in.",
)
@click.pass_context
def main(ctx: click.Context, config: Path | None, data_dir: Path | None) -> None:
    """camserver looks at cameras, remembers what it saw and tells you what matters.

    \b
    Examples:
      camserver up
      camserver config show
      camserver camera add entrance rtsp://192.0.2.10/stream1
    """
    ctx.obj = Chosen(find_config(config), data_dir)


@main.command()
@json_option
def version(as_json: bool) -> None:
    """Print the version of camserver and of Python.

    \b
    Example:
      camserver version
    """
    python = ".".join(map(str, sys.version_info[:3]))
    if as_json:
        click.echo(json.dumps({"camserver": __version__, "python": python}))
    else:
        click.echo(f"camserver {__version__} (Python {python})")


for _command in (
    serving.up,
    *serving.services,
    serving.simulate,
    configuration.config,
    database.db,
    backup.backup,
    backup.restore,
    check.check,
    doctor.doctor,
    install.install,
    accounts.setup_link,
    users.user,
    tokens.token,
    sites.site,
    tenants.tenant,
    credentials.credentials,
    cameras.camera,
    gate.gate,
    analyze.analyze,
    audit.audit,
    conformance.conformance,
    events.event,
    incidents.incident,
    cases.case,
    shares.share,
    retention.retention,
    jobs.job,
    search.search,
    llm.llm,
    score.score_command,
    score.scoring,
    models.models,
    summaries.summary,
    statistics.statistics,
    notify.notify,
    receivers.receiver,
    rules.rule,
    deliveries.delivery,
    why.why,
    leases.lease,
    vocabulary.vocabulary,
    flags.flag,
):
    main.add_command(_command)
