"""`camserver tenant`: who shares this installation without seeing each other."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.page_reading import read_all
from camserver.commands.progress import is_watched
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import reader_language, table
from camserver.domain.phrases import Phrase
from camserver.domain.tenants import Quota

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

_WORDS = {
    "head": Phrase(
        "テナント|状態|カメラ|稼働|ユーザー|サイト|保存量", "TENANT|STATE|CAMERAS|RUNNING|PEOPLE|SITES|KEPT"
    ),
    "home": Phrase("最初のテナント", "home"),
    "on": Phrase("有効", "on"),
    "off": Phrase("停止中", "switched off"),
    "erasing": Phrase("消去中（{rows} 行）", "being erased ({rows} rows)"),
    "added": Phrase("テナント {tenant} を追加しました。", "The tenant {tenant} was added."),
    "link": Phrase(
        "次のリンクを {login} に渡してください。3 日以内に一度だけ使えます:\n  {url}",
        "Give this link to {login}; it works once, within three days:\n  {url}",
    ),
    "admin_made": Phrase(
        "テナント {tenant} に管理者 {login} を追加しました。",
        "{login} was made an administrator of the tenant {tenant}.",
    ),
    "changed": Phrase("テナント {tenant} を変更しました。", "The tenant {tenant} was changed."),
    "erase": Phrase(
        "テナント {tenant} を消去しています。camserver tenant list で進み具合がわかります。",
        "The tenant {tenant} is being erased; camserver tenant list shows how far it is.",
    ),
    "exporting": Phrase("テナント {tenant} を書き出し中", "Exporting {tenant}"),
    "exported": Phrase(
        "{file} に書き出しました（{rows} 行、{files} ファイル）。", "{file} was written ({rows} rows, {files} files)."
    ),
    "short": Phrase(
        "{tenant}: 上限 {quota} に近づいています: {used} / {most}", "{tenant}: {quota}: {used} of {most}"
    ),
}
_SHOWN = (Quota.CAMERAS, Quota.CAMERAS_RUNNING, Quota.PEOPLE, Quota.SITES, Quota.KEPT_BYTES)
# How "any number" is written.
_NONE = "none"


def say(name: str, **values: object) -> str:
    phrase = _WORDS[name]
    return (phrase.ja if reader_language() == "ja" else phrase.en).format(**values)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _address(name: str) -> str:
    return f"/api/tenants/{quote(name, safe='')}"


class _Most(click.ParamType[Any]):
    """A number, or "none" for any number."""

    name = "number|none"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == _NONE:
            return value
        try:
            return int(str(value).replace("_", ""))
        except ValueError:
            self.fail(f"{value!r} is neither a number nor {_NONE}", param, ctx)


def _quota_options(command: Any) -> Any:
    """One option for each quota: --cameras-max 50, or none."""
    helps = {
        Quota.CAMERAS_RUNNING: "Most cameras that run at once.",
        Quota.CAMERAS: "Most cameras.",
        Quota.PEOPLE: "Most people.",
        Quota.SITES: "Most sites.",
        Quota.KEPT_BYTES: "Most bytes of pictures and clips; beyond it the oldest ordinary ones go.",
    }
    for quota in reversed(list(Quota)):
        option = click.option(f"--{quota.replace('_', '-')}", quota.value, type=_Most(), help=helps[quota])
        command = option(command)
    return command


def _quotas(given: dict[str, Any]) -> dict[str, int | None]:
    return {
        name: None if given[name] == _NONE else given[name] for name in map(str, Quota) if given.get(name) is not None
    }


@click.group()
def tenant() -> None:
    """See and change the tenants of this installation."""


@tenant.command("list")
@json_option
@pass_chosen
def tenant_list(chosen: Chosen, as_json: bool) -> None:
    """List the tenants, and what they use of their quotas.

    \b
    Examples:
      camserver tenant list
      camserver tenant list --json
    """
    found = with_server(chosen, lambda server: read_all(server, "/api/tenants", "tenants"))
    if as_json:
        click.echo(json.dumps({"tenants": found}, ensure_ascii=False))
        return
    click.echo(table(say("head").split("|"), [_row(one) for one in found]))
    for one in found:
        for use in one["quotas"]:
            if use["is_short"]:
                click.secho(say("short", tenant=one["name"], **use), fg="yellow", err=True)


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    uses = {use["quota"]: use for use in one["quotas"]}
    shown = [
        str(use["used"]) if use["most"] is None else f"{use['used']}/{use['most']}"
        for use in (uses[quota] for quota in _SHOWN)
    ]
    if one["erasing_at"] is not None:
        state = say("erasing", rows=one["erased_rows"])
    else:
        state = say("home" if one["is_home"] else "off" if one["disabled"] else "on")
    return (one["name"], state, *shown)


@tenant.command("add")
@click.argument("name")
@click.option("--admin", required=True, help="Login of its first administrator.")
@click.option("--admin-name", default="", help="How the administrator is called.", show_default="the login")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Of the administrator's pages and messages.")
@click.option("--site", default="main", help="Its first site.")
@click.option("--timezone", default="UTC", help="Of that site, such as Asia/Tokyo.")
@_quota_options
@json_option
@pass_chosen
def tenant_add(
    chosen: Chosen,
    /,
    name: str,
    admin: str,
    admin_name: str,
    language: str | None,
    site: str,
    timezone: str,
    as_json: bool,
    **quotas: Any,
) -> None:
    """Add a tenant with a site and an administrator.

    The answer is a link with which the administrator chooses a password.

    \b
    Examples:
      camserver tenant add acme --admin kato@acme.example
      camserver tenant add acme --admin kato --timezone Asia/Tokyo --cameras-max 50 --kept-bytes-max 200_000_000_000
    """
    body = {
        "name": name,
        "admin": admin,
        "admin_name": admin_name,
        "language": language,
        "site": site,
        "timezone": timezone,
        "quotas": _quotas(quotas),
    }
    added = with_server(chosen, lambda server: server.post("/api/tenants", body))
    if as_json:
        click.echo(json.dumps(added, ensure_ascii=False))
        return
    click.echo(say("added", tenant=added["tenant"]["name"]))
    click.echo(say("link", login=admin, url=added["password_link"]["url"]))


@tenant.command("reset")
@click.argument("name")
@click.argument("login")
@click.option("--language", type=click.Choice(["ja", "en"]), help="Of the administrator, if one has to be made.")
@json_option
@pass_chosen
def tenant_reset(chosen: Chosen, name: str, login: str, language: str | None, as_json: bool) -> None:
    """Make a new password link for a tenant's administrator.

    For a tenant that nobody can enter any more. If nobody has that login, it becomes a new administrator of the
    tenant. The tenant's audit log says that it was done.

    \b
    Example:
      camserver tenant reset acme kato@acme.example
    """
    body = {"login": login, "language": language}
    made = with_server(chosen, lambda server: server.post(f"{_address(name)}/admin-link", body))
    if as_json:
        click.echo(json.dumps(made, ensure_ascii=False))
        return
    if made["made"]:
        click.echo(say("admin_made", tenant=name, login=made["login"]))
    click.echo(say("link", login=made["login"], url=made["password_link"]["url"]))


@tenant.command("change")
@click.argument("name")
@click.option("--rename", help="A new name.")
@click.option("--off/--on", "disabled", default=None, help="Switch the tenant off, or on again.", show_default=False)
@_quota_options
@json_option
@pass_chosen
def tenant_change(
    chosen: Chosen, /, name: str, rename: str | None, disabled: bool | None, as_json: bool, **quotas: Any
) -> None:
    """Rename a tenant, set its quotas, or switch it off or on.

    Of a tenant that is off nobody signs in, no token works and no camera runs. A quota of "none" is any number.

    \b
    Examples:
      camserver tenant change acme --cameras-max 80 --people-max none
      camserver tenant change acme --off
    """
    body: dict[str, Any] = {} if rename is None else {"name": rename}
    body |= {} if disabled is None else {"disabled": disabled}
    chosen_quotas = _quotas(quotas)
    body |= {"quotas": chosen_quotas} if chosen_quotas else {}
    if not body:
        raise click.UsageError("nothing to change; see camserver tenant change --help")
    changed = with_server(chosen, lambda server: server.patch(_address(name), body))
    click.echo(json.dumps(changed, ensure_ascii=False) if as_json else say("changed", tenant=changed["name"]))


@tenant.command("export")
@click.argument("name")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), show_default="tenant-NAME.zip",
              help="Where to write the file.")  # fmt: skip
@click.option("--no-objects", is_flag=True, help="Only rows; pictures and clips are named by their keys.")
@json_option
@pass_chosen
def tenant_export(chosen: Chosen, name: str, output: Path | None, no_objects: bool, as_json: bool) -> None:
    """Write everything of a tenant to a ZIP file.

    It holds rows, pictures and clips, and a manifest of hashes. Passwords, tokens and credentials are left out,
    hashed and sealed ones too. Run it again with the same arguments after it was broken off: it goes on where it was.

    \b
    Examples:
      camserver tenant export acme
      camserver tenant export acme -o /mnt/acme.zip --no-objects
    """
    from camserver.clients.tenant_archive import TenantExport

    target = output or Path(f"tenant-{name}.zip")
    if target.exists():
        raise BadInput(f"{target} is there already; choose another file with --output, or remove it")
    with click.progressbar(
        length=1, label=say("exporting", tenant=name), file=sys.stderr, hidden=not is_watched()
    ) as shown:

        def told(rows: int, total: int) -> None:
            shown.length = max(total, 1)
            shown.update(rows - shown.pos)

        async def work(server: "LocalServer") -> dict[str, Any]:
            return await TenantExport(server, name, target, not no_objects, told, _now_ms).run()

        manifest = with_server(chosen, work)
    if as_json:
        click.echo(json.dumps({"file": str(target), **manifest}, ensure_ascii=False))
    else:
        click.echo(say("exported", file=target, files=manifest["files"], rows=sum(manifest["rows"].values())))


@tenant.command("erase")
@click.argument("name")
@click.option("--yes-erase", required=True, metavar="NAME", help="The tenant's name again, to confirm.")
@click.option("--also-held", is_flag=True, help="Erase cases on hold, too.")
@json_option
@pass_chosen
def tenant_erase(chosen: Chosen, name: str, yes_erase: str, also_held: bool, as_json: bool) -> None:
    """Erase a tenant with everything it has. It can't be undone.

    Nobody of it signs in from then on. The server deletes it bit by bit while it runs, and writes into the audit log
    when it is gone. Copies at archives outside stay there.

    \b
    Example:
      camserver tenant erase acme --yes-erase acme
    """
    body = {"confirm": yes_erase, "also_held": also_held}
    begun = with_server(chosen, lambda server: server.delete(_address(name), body))
    click.echo(json.dumps(begun, ensure_ascii=False) if as_json else say("erase", tenant=begun["name"]))
