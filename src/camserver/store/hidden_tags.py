"""Tags that are for investigation only, as statements leave them out for everybody else.

A row keeps the group that its tag had when it was written. A vocabulary that is chosen later can't be written into
millions of rows, nor into those of a dispatcher that still works by the one before; so what the active one keeps for
investigation is listed in a small table, too, and rows have to pass both.
"""

from camserver.domain.people import Permission
from camserver.domain.vocabulary import INVESTIGATION_ONLY, Vocabulary
from camserver.store.tx import Scoped, Tx

EVERYTHING = ""  # the hidden group of those who may see all tags


def hidden_group(tx: Scoped) -> str:
    """What `:hidden` is for the principal."""
    return EVERYTHING if tx.principal.may(Permission.INVESTIGATE) else INVESTIGATION_ONLY


def is_shown(alias: str = "") -> str:
    """The condition that a row of `event_tags` or `frame_tags` may be shown; needs `:hidden`."""
    of = f"{alias}." if alias else ""
    return (
        f"{of}tag_group <> :hidden "
        f"AND (:hidden = '{EVERYTHING}' OR {of}tag_id NOT IN (SELECT h.tag_id FROM hidden_tags h))"
    )


async def keep(tx: Tx, vocabulary: Vocabulary) -> None:
    """Lists what this one keeps for investigation, and nothing else."""
    await tx.run("DELETE FROM hidden_tags")
    hidden = [{"tag_id": tag.id} for tag in vocabulary.tags if tag.group == INVESTIGATION_ONLY]
    await tx.at_once("INSERT INTO hidden_tags (tag_id) VALUES (:tag_id)", hidden)
