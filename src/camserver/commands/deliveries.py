"""`camserver delivery`: what is on its way out, and queueing dead letters again."""

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import click

from camserver.base.errors import BadInput
from camserver.commands.asking import with_server
from camserver.commands.delivery_words import head, say
from camserver.commands.receivers import find
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import age, table
from camserver.domain.deliveries import DeliveryStatus
from camserver.domain.facts import DeliveryKind

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

WHY_MAX_CHARS = 80
_KINDS = click.Choice([kind.value for kind in DeliveryKind])


@click.group()
def delivery() -> None:
    """See what is on its way out, and send dead ones again."""


@delivery.command("list")
@click.option("--status", "statuses", multiple=True, type=click.Choice([one.value for one in DeliveryStatus]),
              help="Only deliveries in this state; may be given several times.", show_default="dead")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Deliveries in every state.")
@click.option("--kind", "kinds", multiple=True, type=_KINDS, help="Only of this kind; may be given several times.")
@click.option("--receiver", help="Only to this receiver.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, help="Most deliveries shown.")
@json_option
@pass_chosen
def delivery_list(
    chosen: Chosen,
    statuses: tuple[str, ...],
    everything: bool,
    kinds: tuple[str, ...],
    receiver: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List deliveries, newest first.

    Without options, those that were given up.

    \b
    Examples:
      camserver delivery list
      camserver delivery list --status delayed --receiver office
      camserver delivery list --all --kind message --json
    """
    if everything and statuses:
        raise BadInput("--all shows every state, --status only some: give one of the two")
    wanted = () if everything else statuses or (DeliveryStatus.DEAD.value,)

    async def call(server: "LocalServer") -> dict[str, Any]:
        query = [("limit", str(limit)), *(("status", one) for one in wanted), *(("kind", one) for one in kinds)]
        if receiver is not None:
            query.append(("receiver", (await find(server, receiver))["receiver_uuid"]))
        return await server.get(f"/api/deliveries?{urlencode(query)}")

    page = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(page, ensure_ascii=False))
        return
    if not page["deliveries"]:
        click.echo(say("no_deliveries"), err=True)
        return
    now_ms = int(time.time() * 1000)
    click.echo(table(head("deliveries"), [_row(one, now_ms) for one in page["deliveries"]]))
    if page.get("next_before"):
        click.echo(say("more"), err=True)


def _row(one: dict[str, Any], now_ms: int) -> tuple[str, ...]:
    return (
        str(one["delivery_uuid"]),
        str(one["kind"]),
        str(one["receiver_name"] or "-"),
        str(one["status"]),
        str(one["attempt"]),
        age(one["created_at"], now_ms),
        str(one["last_error"] or "-")[:WHY_MAX_CHARS],
    )


@delivery.command("requeue")
@click.argument("delivery_uuid", required=False)
@click.option("--receiver", help="Dead deliveries to this receiver.")
@click.option("--kind", type=_KINDS, help="Dead deliveries of this kind.")
@click.option("--all", "everything", is_flag=True, help="All dead deliveries.")
@json_option
@pass_chosen
def delivery_requeue(
    chosen: Chosen,
    delivery_uuid: str | None,
    receiver: str | None,
    kind: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Queue dead deliveries again.

    One, or those that fit the options, at most 1000 at a time. Their attempts and their age begin anew;
    receivers know a repeat by its id.

    \b
    Examples:
      camserver delivery requeue 0198c0de-0000-7000-8000-000000000001
      camserver delivery requeue --receiver office
      camserver delivery requeue --all
    """
    narrows = receiver is not None or kind is not None
    if delivery_uuid is not None and (narrows or everything):
        raise BadInput("name one delivery or give options, not both")
    if delivery_uuid is None and not (narrows or everything):
        raise BadInput("name a delivery, or say which ones by --receiver, --kind or --all")

    async def call(server: "LocalServer") -> dict[str, Any]:
        if delivery_uuid is not None:
            await server.post(f"/api/deliveries/{quote(delivery_uuid, safe='')}/requeue", {})
            return {"count": 1}
        uuid = None if receiver is None else (await find(server, receiver))["receiver_uuid"]
        return await server.post("/api/deliveries/requeue", {"receiver_uuid": uuid, "kind": kind})

    done = with_server(chosen, call)
    click.echo(json.dumps(done) if as_json else say("requeued", count=done["count"]))
