"""`camserver gate` as a person at a terminal meets it."""

import stat
from pathlib import Path
from typing import Any

import pytest

from camserver.base.errors import BadInput
from camserver.commands.gate import described
from camserver.commands.picture_file import keep

NOW_MS = 1_700_000_000_000


def look(**changes: Any) -> dict[str, Any]:
    return {
        "captured_at": NOW_MS - 5_000, "verdict": "skip", "reason": "quiet", "z_max": 1.24, "row": 3, "column": 17,
        "spread": 0.31, "has_moved": False, "diff_ratio": 0.0123, "luma_delta": -0.52, **changes,
    }  # fmt: skip


def result(*looks: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "rule": "contrast", "z_pass": 4.0, "diff_ratio_no_event": 0.003, "luma_delta_no_event": 5.0,
        "learn_looks": 45, "force_infer_every_n": 60, "learned": 120, "rows": 23, "columns": 40, "clock_cells": 0,
        "picture_captured_at": NOW_MS, "looks": list(looks), **changes,
    }  # fmt: skip


def test_what_a_look_was_judged_by() -> None:
    changed = look(verdict="analyze", reason="change", z_max=12.5, captured_at=NOW_MS - 65_000)
    first, head, newest, older = described(result(look(), changed), "en", NOW_MS).splitlines()
    assert first == "Rule contrast: passes from Z 4; learned from 120 looks."
    assert head.split() == ["AGO", "VERDICT", "WHY", "Z", "CELL", "SPREAD", "CHANGED", "LIGHT"]
    assert newest.split() == ["5", "s", "skipped", "nothing", "changed", "1.2", "3,17", "0.3", "1.23", "%", "-0.5"]
    assert "something changed" in older
    assert "12.5" in older


def test_in_japanese() -> None:
    text = described(result(look(reason="sticky", verdict="analyze"), clock_cells=12), "ja", NOW_MS)
    assert "画面の時計を 12 セルで検出" in text
    assert "直前に検出" in text


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_clock_is_mentioned_only_when_there_is_one(language: Any) -> None:
    with_clock, without = (described(result(look(), clock_cells=cells), language, NOW_MS) for cells in (9, 0))
    assert len(with_clock.splitlines()) == len(without.splitlines()) + 1


def test_the_threshold_rule_has_its_own_limits_and_no_cells() -> None:
    plain = look(z_max=None, row=None, column=None, spread=None, has_moved=None, reason="change", verdict="analyze")
    text = described(result(plain, rule="threshold"), "en", NOW_MS)
    assert text.startswith("Rule threshold: passes from 0.3 % of the pixels or a change of light of 5.")
    assert text.splitlines()[-1].split()[5:8] == ["-", "-", "-"]


def test_a_look_with_nothing_to_compare_with(tmp_path: Path) -> None:
    blank = look(z_max=None, row=None, column=None, spread=None, reason="learning", verdict="analyze")
    assert "still learning" in described(result(blank), "en", NOW_MS)


def test_a_picture_is_for_its_owner_only(tmp_path: Path) -> None:
    wanted = tmp_path / "gate.jpg"
    assert keep(b"picture", wanted, "x") == str(wanted)
    assert wanted.read_bytes() == b"picture"
    assert stat.S_IMODE(wanted.stat().st_mode) == 0o600
    with pytest.raises(BadInput, match="can't be written"):
        keep(b"picture", tmp_path / "missing" / "gate.jpg", "x")
