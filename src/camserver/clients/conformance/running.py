"""Runs the checks against one analyzer, one after the other, and leaves its vocabulary as it was."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.errors import BadInput, CamError, Unavailable
from camserver.clients.conformance import checks, persons, refusals
from camserver.clients.conformance.findings import Check, Ended, Finding, Skipped, Standing
from camserver.clients.conformance.talking import SCHEMA_SEC, Stage
from camserver.domain.phrases import Phrase
from camserver.domain.vocabulary import parse_vocabulary

ALL: Final = (*checks.CHECKS, *persons.CHECKS, *refusals.CHECKS)
NAMES: Final = tuple(check.name for check in ALL)
# Others need a vocabulary in force, so these run whatever was asked for.
FIRST: Final = ("schema.put",)
CONNECT_SEC: Final = 3.0


async def run_checks(
    url: str, only: Collection[str] = (), *, gentle: bool = False, person: bytes | None = None
) -> AsyncIterator[Finding]:
    """Each check as it ends. Unavailable when nobody answers there; BadInput when a check is named that is none.

    `gentle` leaves out what other users of the analyzer would notice; without a picture of a `person` nothing is said
    of people.
    """
    unheard = [name for name in only if name not in NAMES]
    if unheard:
        raise BadInput(f"there is no check named {unheard[0]!r}; there are: {', '.join(NAMES)}")
    async with _stage(url) as stage:
        await _learn_vocabulary(stage)
        stage.person = person
        unasked = frozenset(check.name for check in persons.CHECKS) if person is None else frozenset()
        for check in ALL:
            wanted = check.name in only if only else check.name not in unasked
            if wanted or check.name in FIRST:
                finding = await _run(check, stage, gentle)
                if wanted or finding.standing is not Standing.OK:
                    yield finding


@asynccontextmanager
async def _stage(url: str) -> AsyncIterator[Stage]:
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is no address of an analyzer; it begins with http:// or https://")
    async with aiohttp.ClientSession(
        cookie_jar=aiohttp.DummyCookieJar(), headers={"Accept-Encoding": "identity"}, auto_decompress=False
    ) as session:
        yield Stage(session, url.rstrip("/"))


async def _learn_vocabulary(stage: Stage) -> None:
    """What the analyzer holds now, to work with it and to leave it in force. What can't be read counts as none."""
    try:
        said = await stage.get("/v1/schema", SCHEMA_SEC)
    except Ended as ended:
        raise Unavailable(f"no analyzer answers at {stage.url}: {ended.why.en}; is it running?") from None
    document = said.document.get("schema") if isinstance(said.document, dict) and said.status == 200 else None
    if isinstance(document, dict):
        try:
            parse_vocabulary(document)
        except CamError:
            return
        stage.document = document


async def _run(check: Check, stage: Stage, gentle: bool) -> Finding:
    try:
        if gentle and check.disturbs:
            raise Skipped("--gentle のため省略", "left out by --gentle")
        await check.run(stage)
    except Ended as ended:
        go_on_unless_cancelled()
        return Finding(check.name, check.title, ended.standing, ended.why)
    except CamError as error:
        return Finding(check.name, check.title, Standing.FAILED, Phrase(error.message, error.message))
    return Finding(check.name, check.title, Standing.OK)
