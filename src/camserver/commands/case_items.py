"""`camserver case show` and `remove`: what a case holds, and taking something out of it."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from camserver.base.errors import BadInput, CamError, NotFound
from camserver.commands.asking import with_server
from camserver.commands.case_words import item_head, say
from camserver.commands.root import Chosen, json_option, pass_chosen
from camserver.commands.shown import moment, table
from camserver.domain.cases import ITEMS_MAX, ItemKind

if TYPE_CHECKING:
    from camserver.clients.local_server import LocalServer

PAGE_ITEMS = 200
# One more than a full case has, in case it grows meanwhile.
PAGES_MAX = ITEMS_MAX // PAGE_ITEMS + 1


@click.command("show")
@click.argument("case_uuid")
@json_option
@pass_chosen
def case_show(chosen: Chosen, case_uuid: str, as_json: bool) -> None:
    """Show a case with its notes and all it holds.

    \b
    Examples:
      camserver case show CASE
      camserver case show CASE --json
    """

    async def call(server: "LocalServer") -> dict[str, Any]:
        return {**await server.get(case_path(case_uuid)), "item_list": await _items(server, case_uuid)}

    found = with_server(chosen, call)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
        return
    for line in _lines(found):
        click.echo(line)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    yield str(found["title"])
    yield say("state", state=say(str(found["state"])) + (f" ({say('hold')})" if found["hold"] else ""))
    yield say("opened_by", at=moment(found["created_at"]), by=found["created_by"])
    yield say("changed_at", at=moment(found["updated_at"]))
    if found["closed_at"] is not None:
        yield say("closed_at", at=moment(found["closed_at"]))
    if found["note_list"]:
        yield say("note_head", count=len(found["note_list"]))
    for note in found["note_list"]:
        first, *more = str(note["body"]).splitlines() or [""]
        yield f"  {moment(note['at'])} {note['by']}: {first}"
        yield from (f"    {line}" for line in more)
    items = found["item_list"]
    if items:
        yield say("item_head", count=len(items))
        yield table(item_head(), [_row(one) for one in items])
    else:
        yield say("no_items")


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    kept = "is_gone" if one["gone"] else "is_held" if one["held"] else "is_free"
    return (
        say(str(one["kind"])),
        str(one["uuid"]),
        str(one["camera_id"]),
        str(one["site"]),
        moment(one["happened_at"]),
        moment(one["added_at"]),
        str(one["added_by"]),
        say(kept),
    )


@click.command("remove")
@click.argument("case_uuid")
@click.argument("uuids", metavar="ITEM...", nargs=-1, required=True)
@click.option("--kind", type=click.Choice([one.value for one in ItemKind]),
              help="What the ids are of; needed only where an event and its clip are both in the case.")  # fmt: skip
@json_option
@pass_chosen
def case_remove(chosen: Chosen, case_uuid: str, uuids: tuple[str, ...], kind: str | None, as_json: bool) -> None:
    """Take frames, events or clips out of a case.

    What no other case holds goes back to its own class and stays for some days more. A case that is closed or on hold
    gives nothing away. When one of the ids is not in the case, nothing is taken out.

    \b
    Examples:
      camserver case remove CASE EVENT
      camserver case remove CASE FRAME FRAME
      camserver case remove CASE EVENT --kind clip
    """
    count = 0

    async def work(server: "LocalServer") -> None:
        nonlocal count
        chosen_ones = _chosen(await _items(server, case_uuid), dict.fromkeys(uuids), kind)
        for kind_of, uuid in chosen_ones:
            await server.delete(f"{case_path(case_uuid)}/items/{kind_of}/{quote(uuid, safe='')}")
            count += 1

    try:
        with_server(chosen, work)
    except CamError:
        if count and not as_json:
            # Those before the one that failed are out.
            click.echo(say("removed", count=count))
        raise
    click.echo(json.dumps({"removed": count}) if as_json else say("removed", count=count))


def _chosen(items: Sequence[dict[str, Any]], uuids: "dict[str, None]", kind: str | None) -> list[tuple[str, str]]:
    """Kind and id of each; NotFound or BadInput when one is none or two of the case."""
    found = []
    for uuid in uuids:
        kinds = [str(one["kind"]) for one in items if one["uuid"] == uuid and kind in (None, one["kind"])]
        if not kinds:
            raise NotFound(f"the case has no {kind or 'item'} {uuid}; see what it holds with: camserver case show")
        if len(kinds) > 1:
            raise BadInput(f"the case has {uuid} as {' and '.join(kinds)}; say which with --kind")
        found.append((kinds[0], uuid))
    return found


async def _items(server: "LocalServer", case_uuid: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    query = f"?limit={PAGE_ITEMS}"
    for _ in range(PAGES_MAX):
        page = await server.get(f"{case_path(case_uuid)}/items{query}")
        items += page["items"]
        if page["next_after"] is None:
            break
        query = f"?limit={PAGE_ITEMS}&after={quote(page['next_after'], safe='')}"
    return items


def case_path(case_uuid: str) -> str:
    return f"/api/cases/{quote(case_uuid, safe='')}"
