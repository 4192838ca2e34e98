"""Seals of the audit log: whatever is done to a chain shows, and nothing shows where nothing was done."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain import audit
from camserver.domain.audit import Finding, LoggedEntry, Seal, SealKey, Wrong, check_batch, seal
from camserver.domain.audit_words import what_is_wrong, what_to_do

NOW_MS = 1_767_225_600_000
KEY = SealKey(b"k" * 32)
OTHER = SealKey(b"o" * 32)
TENANT = 7
# What a seal says of retention; while its entries are there it says nothing.
PRUNED = ("pruned_at", "pruned_key_id", "pruned_mac")
Chain = list[tuple[Seal, list[LoggedEntry]]]


def entry(entry_id: int, **values: object) -> LoggedEntry:
    made = LoggedEntry(entry_id, NOW_MS + entry_id, "user", "1", "camera_changed", "camera", "c", '{"a": 1}', "")
    return replace(made, **values)  # type: ignore[arg-type]  # by name


def chain(*sizes: int, key: SealKey = KEY) -> Chain:
    made: Chain = []
    for number, size in enumerate(sizes):
        entries = [entry(number * 100 + one) for one in range(1, size + 1)]
        made.append((seal(made[-1][0] if made else None, TENANT, entries, key, NOW_MS), entries))
    return made


def check(given_chain: Chain, key: SealKey | None = KEY, now_ms: int = NOW_MS) -> list[Finding]:
    previous = audit.genesis(TENANT)
    wrong: list[Finding] = []
    for found, entries in given_chain:
        wrong += check_batch(found, entries, previous, key, now_ms)
        previous = found.hash
    return wrong


def kinds(findings: list[Finding]) -> set[tuple[Wrong, int]]:
    return {(one.wrong, one.batch_no) for one in findings}


def test_a_chain_that_nobody_touched_is_whole() -> None:
    assert check(chain(3, 1, 5)) == []
    assert check(chain(3, 1, 5), key=None) == []


def test_how_json_is_written_does_not_count() -> None:
    a = entry(1, details='{"b": 1, "a": "\\u65e5"}')
    assert audit.leaf(a) == audit.leaf(replace(a, details='{"a":"日","b":1}'))
    assert audit.leaf(a) != audit.leaf(replace(a, details='{"a":"日","b":2}'))


@pytest.mark.parametrize("details", ["{broken", "", "1" * 5000, "[" * 100_000, '{"a": 1}x'])
def test_details_that_are_no_json_are_sealed_as_they_are(details: str) -> None:
    made = chain(3)
    entries = [*made[0][1][:2], replace(made[0][1][2], details=details)]
    broken = [(seal(None, TENANT, entries, KEY, NOW_MS), entries)]
    assert check(broken) == []
    for other in (details + " ", None, json.dumps(details), json.dumps({"unreadable": details})):
        broken[0][1][2] = replace(entries[2], details=other)
        assert kinds(check(broken)) == {(Wrong.ENTRY_CHANGED, 1)}, other


def rewritten(found: Seal, **values: object) -> Seal:
    """As somebody without the key would: the hash fits, the signature can't."""
    changed = replace(found, **values)  # type: ignore[arg-type]  # by name
    return replace(changed, hash=audit.hash_of(changed))


def _swap(made: Chain) -> None:
    made[0], made[1] = made[1], made[0]


def _swap_numbers(made: Chain) -> None:
    (a, first), (b, second) = made[0], made[1]
    made[0] = (replace(b, batch_no=a.batch_no), second)
    made[1] = (replace(a, batch_no=b.batch_no), first)


TAMPERED: list[tuple[str, Callable[[Chain], object], set[tuple[Wrong, int]]]] = [
    ("change", lambda c: c[1][1].__setitem__(0, replace(c[1][1][0], action="x")), {(Wrong.ENTRY_CHANGED, 2)}),
    ("details", lambda c: c[1][1].__setitem__(0, replace(c[1][1][0], details=None)), {(Wrong.ENTRY_CHANGED, 2)}),
    ("at", lambda c: c[0][1].__setitem__(0, replace(c[0][1][0], at=5)), {(Wrong.ENTRY_CHANGED, 1)}),
    ("remove", lambda c: c[1][1].pop(1), {(Wrong.ENTRY_REMOVED, 2)}),
    ("remove the last", lambda c: c[2][1].pop(), {(Wrong.ENTRY_REMOVED, 3)}),
    ("insert", lambda c: c[1][1].append(entry(150)), {(Wrong.ENTRY_ADDED, 2)}),
    (
        "reorder",
        lambda c: c.__setitem__(1, (c[1][0], [replace(c[1][1][1], entry_id=101), replace(c[1][1][0], entry_id=102)])),
        {(Wrong.ENTRY_CHANGED, 2)},
    ),
    (
        "another batch's entries",
        lambda c: c.__setitem__(1, (c[1][0], c[0][1])),
        {(Wrong.ENTRY_REMOVED, 2), (Wrong.ENTRY_ADDED, 2)},
    ),
    ("swap", _swap, {(Wrong.SEAL_CHANGED, 1), (Wrong.SEAL_CHANGED, 2), (Wrong.SEAL_CHANGED, 3)}),
    ("swap numbers", _swap_numbers, {(Wrong.SEAL_CHANGED, 1), (Wrong.SEAL_CHANGED, 2), (Wrong.SEAL_CHANGED, 3)}),
    ("seal's number", lambda c: c.__setitem__(1, (replace(c[1][0], entries=9), c[1][1])), {(Wrong.SEAL_CHANGED, 2)}),
    ("seal's time", lambda c: c.__setitem__(1, (replace(c[1][0], last_at=9), c[1][1])), {(Wrong.SEAL_CHANGED, 2)}),
    ("mac", lambda c: c.__setitem__(1, (replace(c[1][0], mac="0" * 64), c[1][1])), {(Wrong.FORGED, 2)}),
    (
        "rewritten without the key",
        lambda c: c.__setitem__(2, (rewritten(c[2][0], last_at=9), c[2][1])),
        {(Wrong.FORGED, 3)},
    ),
    (
        "rewritten with another key",
        lambda c: c.__setitem__(slice(None), chain(3, 2, 4, key=OTHER)),
        {(Wrong.OTHER_KEY, 1), (Wrong.OTHER_KEY, 2), (Wrong.OTHER_KEY, 3)},
    ),
    (
        "said to be deleted",
        lambda c: c.__setitem__(0, (replace(c[0][0], pruned_at=NOW_MS, leaves=""), [])),
        {(Wrong.PRUNED_EARLY, 1), (Wrong.PRUNED_FORGED, 1)},
    ),
    (
        "said to be deleted in future",
        lambda c: c.__setitem__(0, (replace(c[0][0], pruned_at=NOW_MS * 2, leaves=""), [])),
        {(Wrong.PRUNED_EARLY, 1), (Wrong.PRUNED_FORGED, 1)},
    ),
    (
        "entries and leaves",
        lambda c: c.__setitem__(1, (replace(c[1][0], leaves=c[0][0].leaves), c[0][1])),
        {(Wrong.SEAL_CHANGED, 2)},
    ),
]


@pytest.mark.parametrize(("tamper", "expected"), [one[1:] for one in TAMPERED], ids=[one[0] for one in TAMPERED])
def test_whatever_is_done_shows(tamper: Callable[[Chain], object], expected: set[tuple[Wrong, int]]) -> None:
    made = chain(3, 2, 4)
    tamper(made)
    assert kinds(check(made)) == expected


def test_a_removed_seal_breaks_the_chain_behind_it() -> None:
    made = chain(3, 2, 4)
    del made[1]
    assert kinds(check(made)) == {(Wrong.SEAL_CHANGED, 3)}


def test_which_entries_differ_is_said() -> None:
    made = chain(5)
    made[0][1][2] = replace(made[0][1][2], address="elsewhere")
    del made[0][1][0]
    assert check(made) == [Finding(Wrong.ENTRY_CHANGED, 1, (3,)), Finding(Wrong.ENTRY_REMOVED, 1, (1,))]


def test_what_retention_deleted_leaves_a_chain_that_can_be_checked() -> None:
    made = chain(3, 2, 4)
    later = NOW_MS + 31 * audit.DAY_MS
    made[0] = (audit.pruned(made[0][0], KEY, later), [])
    assert check(made, now_ms=later) == []
    made[0] = (replace(made[0][0], body="0" * 64), [])
    assert kinds(check(made, now_ms=later)) == {(Wrong.SEAL_CHANGED, 1)}


LATER_MS = NOW_MS + 31 * audit.DAY_MS


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, set()),
        ({"pruned_mac": ""}, {Wrong.PRUNED_FORGED}),
        ({"pruned_mac": "", "pruned_key_id": ""}, {Wrong.PRUNED_FORGED}),  # before they were signed, or by no product
        ({"pruned_mac": "日本"}, {Wrong.PRUNED_FORGED}),
        ({"pruned_at": LATER_MS + 1}, {Wrong.PRUNED_FORGED}),
        ({"pruned_key_id": OTHER.key_id}, {Wrong.OTHER_KEY}),
    ],
)
def test_that_it_was_retention_is_signed(change: dict[str, object], expected: set[Wrong]) -> None:
    made = chain(3, 2)
    gone = audit.pruned(made[0][0], KEY, LATER_MS)
    made[0] = (replace(gone, **change), [])  # type: ignore[arg-type]  # by name
    assert kinds(check(made, now_ms=LATER_MS + 1)) == {(wrong, 1) for wrong in expected}
    assert check(made, key=None, now_ms=LATER_MS + 1) == []


def test_the_signature_of_a_batch_or_a_seal_is_no_other_ones() -> None:
    made = chain(3, 2)
    for mac in (audit.pruned(made[1][0], KEY, LATER_MS).pruned_mac, made[0][0].mac):
        made[0] = (replace(audit.pruned(made[0][0], KEY, LATER_MS), pruned_mac=mac), [])
        assert kinds(check(made, now_ms=LATER_MS)) == {(Wrong.PRUNED_FORGED, 1)}


@pytest.mark.parametrize(
    ("pruned", "last_no", "logged", "expected"),
    [(0, 0, None, []), (3, 3, 3, []), (3, 3, 9, []), (3, 3, 2, [3]), (3, 3, None, [1]), (2, 5, 5, [5])],
)
def test_only_retention_deletes(pruned: int, last_no: int, logged: int | None, expected: list[int]) -> None:
    found = audit.check_pruning(pruned, last_no, logged)
    assert [one.batch_no for one in found if one.wrong is Wrong.PRUNED_UNLOGGED] == expected


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_any_change_of_any_field_shows(sizes: list[int], data: st.DataObject) -> None:
    made = chain(*sizes)
    assert check(made) == []
    number = data.draw(st.integers(0, len(made) - 1))
    found, entries = made[number]
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from([one for one in Seal.__slots__ if one not in ("leaves", *PRUNED)]))
        value = getattr(found, name)
        other = {name: value + 1 if isinstance(value, int) else f"{value}x"}
        made[number] = (replace(found, **other), entries)  # type: ignore[arg-type]  # by name
    else:
        place = data.draw(st.integers(0, len(entries) - 1))
        name = data.draw(st.sampled_from([*LoggedEntry.__slots__]))
        value = getattr(entries[place], name)
        changed = value + 1000 if isinstance(value, int) else '{"a": 2}' if name == "details" else f"{value}x"
        entries[place] = replace(entries[place], **{name: changed})  # type: ignore[arg-type]  # by name
    assert check(made) != []


@pytest.mark.parametrize("wrong", list(Wrong))
def test_everything_that_can_be_wrong_has_its_words(wrong: Wrong) -> None:
    finding = Finding(wrong, 3, (8, 9), tenant_id=5)
    said, done = what_is_wrong(finding), what_to_do(finding)
    for text in (said.ja, said.en):
        assert ("3" in text) == (wrong is not Wrong.ANCHORS_UNREADABLE)
        assert ("5" in text) == (wrong is Wrong.CHAIN_GONE)
    assert "8, 9" in said.en
    assert done.ja
    assert done.en
