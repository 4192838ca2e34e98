"""Vocabularies (`schema_versions`): the documents there are, and the one that is active.

Documents are checked by `domain.vocabulary` before they get here. The shipped one is read from the program's own
files, where an upgrade may bring a newer one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from camserver.base.errors import BadSettings, Bug
from camserver.domain.vocabulary import SHIPPED_FILE, parse_vocabulary
from camserver.store import hidden_tags
from camserver.store.sql import Sql
from camserver.store.tx import Tx


@dataclass(frozen=True, slots=True)
class Document:
    """A vocabulary as it is sent to an analyzer."""

    version: str
    text: str  # JSON

    def parsed(self) -> Mapping[str, object]:
        held: Mapping[str, object] = json.loads(self.text)
        return held


_ADD = Sql(
    "INSERT INTO schema_versions (schema_version, document, created_at) VALUES (:version, :document, :now_ms) "
    "ON CONFLICT DO NOTHING",
    mariadb="INSERT IGNORE INTO schema_versions (schema_version, document, created_at) "
    "VALUES (:version, :document, :now_ms)",
)


def shipped() -> Document:
    """The document that comes with the program."""
    text = resources.files("camserver.domain").joinpath(SHIPPED_FILE).read_text(encoding="utf-8")
    return Document(parse_vocabulary(json.loads(text)).version, text)


async def add(tx: Tx, document: Document, now_ms: int) -> None:
    """Stores a document. A version that is there already stays as it is: results refer to it by name."""
    there = "SELECT schema_version FROM schema_versions WHERE schema_version = :version"
    if await tx.one(there, version=document.version) is None:
        await tx.run(_ADD, version=document.version, document=document.text, now_ms=now_ms)


async def activate(tx: Tx, version: str, now_ms: int) -> None:
    """Makes a stored version the active one. What it keeps for investigation is hidden in old events, too; what was
    written for investigation stays so. One that can't be used is refused. Callers hold a lock that lets one of
    them in at a time."""
    rows = await tx.all("SELECT schema_version, active_slot FROM schema_versions ORDER BY schema_version LIMIT 1000")
    slots = {str(row["schema_version"]): row["active_slot"] for row in rows}
    if version not in slots:
        raise BadSettings(
            f"the vocabulary version {version!r} is not in the database; there are: {', '.join(slots)}. "
            "Set vocabulary.schema_version (SCHEMA_VERSION) to one of them",
            versions=list(slots),
        )
    if slots[version] == 1:
        return
    await tx.run("UPDATE schema_versions SET active_slot = NULL WHERE active_slot = 1")
    await tx.run(
        "UPDATE schema_versions SET active_slot = 1, activated_at = :now_ms WHERE schema_version = :version",
        version=version,
        now_ms=now_ms,
    )
    await hidden_tags.keep(tx, parse_vocabulary((await active(tx)).parsed()))


async def is_any_active(tx: Tx) -> bool:
    return await tx.one("SELECT schema_version FROM schema_versions WHERE active_slot = 1") is not None


async def active(tx: Tx) -> Document:
    """The version the store calls active now."""
    row = await tx.one("SELECT schema_version, document FROM schema_versions WHERE active_slot = 1")
    if row is None:
        raise Bug("no vocabulary is active; first_start.prepare has not run on this database")
    return Document(row["schema_version"], row["document"])
