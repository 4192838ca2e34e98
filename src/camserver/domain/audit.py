"""The rules of the audit log: how a batch of entries is sealed, and how a chain of seals is checked.

A seal holds a hash over its entries in their order and over the seal before it, so nothing before the last seal can
be changed, removed, added or exchanged without its hash showing it. The hash is signed (HMAC) with the installation's
key, which is not in the database: whoever can only write to the database can't make a chain that fits.

leaf   sha256 of an entry, written canonically
body   sha256 of the leaves of a batch, in order
hash   sha256 of the seal's numbers, its body and the hash before it
mac    HMAC-SHA256 of the hash

Entries that retention deleted leave their seal with its body, so that the chain can be checked from its beginning.
That retention deleted them is signed with the same key.
What was written after the last seal is not protected yet; sealing follows within a minute or two.
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

# Entries of one batch. A seal names each of them, so this bounds its size too.
BATCH_MAX = 500
# Of each leaf so much is kept in the seal. It says which entry differs; that one does is said by the body.
LEAF_KEPT_CHARS = 16
KEY_ID_CHARS = 16
DAY_MS = 86_400_000
# No setting lets retention delete entries that are younger.
KEPT_DAYS_MIN = 30
# What retention writes when it deleted a batch.
PRUNED = "audit_pruned"
# A person who opens the same thing again within this time is one look.
LOOK_FOLDED_MS = 10 * 60_000


@dataclass(frozen=True, slots=True)
class LoggedEntry:
    """An entry as it is kept. `details` is JSON; how it is spaced and ordered does not count where it can be read."""

    entry_id: int
    at: int
    actor_kind: str
    actor_id: str
    action: str
    object_kind: str
    object_id: str
    details: str | None
    address: str


@dataclass(frozen=True, slots=True)
class Seal:
    tenant_id: int  # 0: the installation's
    batch_no: int  # from 1 on, without holes
    first_entry_id: int
    last_entry_id: int
    entries: int
    first_at: int
    last_at: int
    body: str
    previous_hash: str
    hash: str
    key_id: str  # which key signed it
    mac: str
    sealed_at: int
    leaves: str = ""  # each entry's id and the beginning of its leaf; empty once the entries are gone
    pruned_at: int | None = None
    pruned_key_id: str = ""  # which key signed that retention deleted the entries
    pruned_mac: str = ""


class Wrong(StrEnum):
    """What can be wrong with a chain."""

    ENTRY_CHANGED = "entry_changed"
    ENTRY_REMOVED = "entry_removed"
    ENTRY_ADDED = "entry_added"
    SEAL_CHANGED = "seal_changed"
    SEAL_MISSING = "seal_missing"
    CHAIN_CUT = "chain_cut"  # seals that this machine remembers are gone, or are others now
    CHAIN_GONE = "chain_gone"  # a tenant whose seals this machine remembers is not there, and nobody erased it
    ANCHORS_UNREADABLE = "anchors_unreadable"  # what this machine remembers can't be read
    FORGED = "forged"  # signed by nobody who has the key
    OTHER_KEY = "other_key"  # signed with a key that is not here
    PRUNED_EARLY = "pruned_early"  # entries were deleted that no retention deletes
    PRUNED_UNLOGGED = "pruned_unlogged"
    PRUNED_FORGED = "pruned_forged"  # entries were deleted, and nobody who has the key did it


@dataclass(frozen=True, slots=True)
class Finding:
    wrong: Wrong
    batch_no: int
    entry_ids: tuple[int, ...] = ()  # at most FINDING_ENTRIES_MAX
    tenant_id: int = 0  # of whom, where a check of the installation's chain finds it


FINDING_ENTRIES_MAX = 20


@dataclass(frozen=True, slots=True)
class SealKey:
    """The key that signs. `key_id` tells it from others and gives nothing of it away."""

    key: bytes

    @property
    def key_id(self) -> str:
        return hashlib.sha256(b"camserver audit key\n" + self.key).hexdigest()[:KEY_ID_CHARS]

    def sign(self, chain_hash: str) -> str:
        return hmac.new(self.key, chain_hash.encode(), hashlib.sha256).hexdigest()

    def signed(self, text: str, mac: str) -> bool:
        """Whether this key signed it. What is compared may be anything that somebody wrote."""
        return hmac.compare_digest(self.sign(text).encode(), mac.encode(errors="replace"))


def genesis(tenant_id: int) -> str:
    """What stands before the first seal of a tenant."""
    return hashlib.sha256(f"camserver audit 1\n{tenant_id}".encode()).hexdigest()


def leaf(entry: LoggedEntry) -> str:
    values = list(asdict(entry).values())[:-2]
    try:
        return _digest([*values, None if entry.details is None else json.loads(entry.details), entry.address])
    except (ValueError, RecursionError):
        # Whoever writes such a row must not keep the others from being sealed. One value more than others have, so
        # that it is no other entry's.
        return _digest([*values, None, entry.address, entry.details])


def seal(previous: Seal | None, tenant_id: int, entries: Sequence[LoggedEntry], key: SealKey, now_ms: int) -> Seal:
    """Seals entries, which are in the order of their ids, behind the seal before."""
    leaves = [leaf(entry) for entry in entries]
    draft = Seal(
        tenant_id=tenant_id,
        batch_no=1 if previous is None else previous.batch_no + 1,
        first_entry_id=entries[0].entry_id,
        last_entry_id=entries[-1].entry_id,
        entries=len(entries),
        first_at=min(entry.at for entry in entries),
        last_at=max(entry.at for entry in entries),
        body=_body(leaves),
        previous_hash=genesis(tenant_id) if previous is None else previous.hash,
        hash="",
        key_id=key.key_id,
        mac="",
        sealed_at=now_ms,
        leaves=" ".join(
            f"{entry.entry_id}:{one[:LEAF_KEPT_CHARS]}" for entry, one in zip(entries, leaves, strict=True)
        ),
    )
    chain_hash = hash_of(draft)
    return replace(draft, hash=chain_hash, mac=key.sign(chain_hash))


def pruned(of: Seal, key: SealKey, now_ms: int) -> Seal:
    """As it stays when retention deletes its entries. That this was retention is signed, because whoever writes to
    the database could mark a seal, too."""
    gone = replace(of, leaves="", pruned_at=now_ms, pruned_key_id=key.key_id)
    return replace(gone, pruned_mac=key.sign(_pruning(gone)))


def _pruning(of: Seal) -> str:
    """What the signature says. It begins with words, so that it can't stand for a seal's."""
    return f"camserver audit pruning 1\n{of.tenant_id}\n{of.batch_no}\n{of.hash}\n{of.pruned_at}"


def hash_of(of: Seal) -> str:
    """The hash that a seal's other values ask for."""
    return _digest(
        [
            of.tenant_id,
            of.batch_no,
            of.first_entry_id,
            of.last_entry_id,
            of.entries,
            of.first_at,
            of.last_at,
            of.sealed_at,
            of.key_id,
            of.body,
            of.previous_hash,
        ]
    )


def _body(leaves: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(leaves).encode()).hexdigest()


def _digest(values: Sequence[object]) -> str:
    """JSON without spaces, keys in order, ASCII only: one text for one value on every database and every machine."""
    text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------------------------------------------------------
# Checking
# ---------------------------------------------------------------------------------------------------------------


def check_batch(
    found: Seal, entries: Sequence[LoggedEntry], previous_hash: str, key: SealKey | None, now_ms: int
) -> tuple[Finding, ...]:
    """What is wrong with a batch. `key` None: its signature is left out. `entries` are those that claim the batch."""
    batch_no = found.batch_no
    wrong: list[Finding] = []
    if hash_of(found) != found.hash or found.previous_hash != previous_hash:
        wrong.append(Finding(Wrong.SEAL_CHANGED, batch_no))
    if key is not None and found.key_id != key.key_id:
        wrong.append(Finding(Wrong.OTHER_KEY, batch_no))
    elif key is not None and not key.signed(found.hash, found.mac):
        wrong.append(Finding(Wrong.FORGED, batch_no))
    if found.pruned_at is not None:
        if entries:
            wrong.append(_finding(Wrong.ENTRY_ADDED, batch_no, [entry.entry_id for entry in entries]))
        if min(found.pruned_at, now_ms) < found.last_at + KEPT_DAYS_MIN * DAY_MS:
            wrong.append(Finding(Wrong.PRUNED_EARLY, batch_no))
        if key is not None and found.pruned_key_id not in ("", key.key_id):
            wrong += [Finding(Wrong.OTHER_KEY, batch_no)] if found.key_id == key.key_id else []
        elif key is not None and not key.signed(_pruning(found), found.pruned_mac):
            wrong.append(Finding(Wrong.PRUNED_FORGED, batch_no))
        return tuple(wrong)
    return tuple([*wrong, *_check_entries(found, entries, bool(wrong))])


def _check_entries(found: Seal, entries: Sequence[LoggedEntry], seal_is_wrong: bool) -> Iterable[Finding]:
    ordered = sorted(entries, key=lambda entry: entry.entry_id)
    leaves = [leaf(entry) for entry in ordered]
    if _body(leaves) == found.body:
        return
    sealed = _kept_leaves(found.leaves)
    actual = {entry.entry_id: one[:LEAF_KEPT_CHARS] for entry, one in zip(ordered, leaves, strict=True)}
    sets = (
        (Wrong.ENTRY_CHANGED, [one for one in actual if one in sealed and sealed[one] != actual[one]]),
        (Wrong.ENTRY_REMOVED, [one for one in sealed if one not in actual]),
        (Wrong.ENTRY_ADDED, [one for one in actual if one not in sealed]),
    )
    some = False
    for wrong, entry_ids in sets:
        if entry_ids:
            some = True
            yield _finding(wrong, found.batch_no, entry_ids)
    if not some and not seal_is_wrong:
        # Every entry is as the seal names it, so it is the seal's own numbers that differ.
        yield Finding(Wrong.SEAL_CHANGED, found.batch_no)


def _finding(wrong: Wrong, batch_no: int, entry_ids: Sequence[int]) -> Finding:
    return Finding(wrong, batch_no, tuple(sorted(entry_ids)[:FINDING_ENTRIES_MAX]))


def _kept_leaves(leaves: str) -> dict[int, str]:
    """Of leaves that were tampered with, those that can be read."""
    found = {}
    for part in leaves.split():
        entry_id, _, digest = part.partition(":")
        if entry_id.isascii() and entry_id.isdigit():
            found[int(entry_id)] = digest
    return found


def check_pruning(pruned: int, last_no: int, logged_up_to: int | None) -> tuple[Finding, ...]:
    """Retention deletes from the beginning on, and writes into the log how far.

    `pruned` batches are without entries, and `last_no` is the last of them.
    """
    if pruned == last_no and pruned <= (logged_up_to or 0):
        return ()
    return (Finding(Wrong.PRUNED_UNLOGGED, last_no if pruned != last_no else (logged_up_to or 0) + 1),)
