"""The audit log as a file: what is changed, cut off or added in it shows."""

import json
from dataclasses import replace

import pytest

from camserver.base.errors import BadInput
from camserver.domain import audit, audit_files
from camserver.domain.audit import Finding, SealKey, Wrong
from camserver.domain.audit_files import FileCheck
from tests.domain.test_audit import KEY, LATER_MS, NOW_MS, OTHER, TENANT, Chain, chain, entry


def lines(made: Chain) -> list[str]:
    written = [audit_files.file_head("default", TENANT, NOW_MS)]
    for found, entries in made:
        written += [audit_files.seal_line(found), *(audit_files.entry_line(one, "owner") for one in entries)]
    return [*written, audit_files.file_end(len(made), sum(len(entries) for _, entries in made))]


def check_file(
    written: list[str], key: SealKey | None = KEY, now_ms: int = NOW_MS
) -> tuple[list[Finding], FileCheck]:
    checking = FileCheck(key, now_ms)
    return [finding for line in written for finding in checking.take(line)], checking


def test_a_file_is_checked_line_by_line() -> None:
    made = chain(3, 2, 4)
    found, checking = check_file(lines(made))
    assert (found, checking.ended, checking.seals, checking.entries) == ([], True, 3, 9)
    assert (checking.tenant, checking.last_hash) == ("default", made[-1][0].hash)
    assert check_file(lines(made), OTHER)[0] == [Finding(Wrong.OTHER_KEY, number) for number in (1, 2, 3)]


def test_a_changed_file_shows_where() -> None:
    written = lines(chain(3, 2, 4))
    changed = json.loads(written[6])
    changed["entry"]["address"] = "elsewhere"
    written[6] = json.dumps(changed) + "\n"
    assert check_file(written)[0] == [Finding(Wrong.ENTRY_CHANGED, 2, (101,))]
    without_a_seal = lines(chain(3, 2, 4))
    del without_a_seal[5:8]
    assert Finding(Wrong.SEAL_MISSING, 2) in check_file(without_a_seal)[0]


def test_a_file_that_was_cut_off_has_no_end() -> None:
    written = lines(chain(3, 2, 4))
    assert not check_file(written[:-1])[1].ended
    cut = [*written[:-6], written[-1]]
    assert [one.wrong for one in check_file(cut)[0]] == [Wrong.SEAL_MISSING]


def test_what_follows_the_end_of_a_file_is_refused() -> None:
    made = chain(3, 2)
    whole = lines(made)
    forged = replace(made[1][0], batch_no=3, hash="0" * 64, mac="0" * 64)
    for behind in (
        audit_files.seal_line(forged),
        audit_files.entry_line(entry(999), "owner"),
        whole[-1],
        whole[0],
        "\n",
        "x",
    ):
        with pytest.raises(BadInput, match="ends before this line"):
            check_file([*whole, behind])


@pytest.mark.parametrize("line", ["", "x", "[]", "{}", '{"seal": {}}', '{"entry": {"a": 1}}', '{"end": 1}', "null"])
def test_what_is_no_line_of_such_a_file_is_refused(line: str) -> None:
    for written in ([line], [*lines(chain(1))[:2], line]):
        with pytest.raises(BadInput, match="no line of an export"):
            check_file(written)


def test_what_retention_deleted_is_checked_in_a_file() -> None:
    made = chain(3, 2)
    made[0] = (audit.pruned(made[0][0], KEY, LATER_MS), [])
    assert check_file(lines(made), now_ms=LATER_MS)[0] == []
    made[0] = (replace(made[0][0], pruned_mac=""), [])
    assert check_file(lines(made), now_ms=LATER_MS)[0] == [Finding(Wrong.PRUNED_FORGED, 1)]


def test_details_that_are_no_json_are_checked_in_a_file() -> None:
    entries = [entry(1, details="{broken"), entry(2), entry(3, details=None)]
    made = [(audit.seal(None, TENANT, entries, KEY, NOW_MS), entries)]
    written = lines(made)
    assert json.loads(written[2])["entry"]["unreadable_details"] == "{broken"
    assert check_file(written)[0] == []
    written[2] = written[2].replace("{broken", "{mended")
    assert check_file(written)[0] == [Finding(Wrong.ENTRY_CHANGED, 1, (1,))]


def test_details_that_no_file_can_hold_as_they_are_are_checked_in_a_file() -> None:
    entries = [entry(1, details='{"a": "\\ud800"}'), entry(2)]
    made = [(audit.seal(None, TENANT, entries, KEY, NOW_MS), entries)]
    written = "".join(lines(made)).encode().decode().splitlines(keepends=True)
    assert check_file(written)[0] == []


def test_a_file_from_before_prunings_were_signed_is_read() -> None:
    older = []
    for line in lines(chain(3, 2)):
        given = json.loads(line)
        for name in ("pruned_key_id", "pruned_mac"):
            given.get("seal", {}).pop(name, None)
        older.append(json.dumps(given))
    assert check_file(older)[0] == []
