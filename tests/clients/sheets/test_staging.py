"""Scores on disk, between two passes over their file."""

from pathlib import Path

import pytest

from camserver.base.errors import Bug
from camserver.clients.sheets.staging import Staging, let_go, scores_of
from camserver.domain.sheet_rows import RowScores


def scores(row: int, *given: float | None) -> RowScores:
    return RowScores(row, f"{row:032x}", 10 * (row % 2), given)


def test_scores_come_back_as_they_were_staged(tmp_path: Path) -> None:
    staged = [scores(row, *[None if (row + one) % 7 == 0 else one / 100 for one in range(row % 10 + 1)])
              for row in range(1, 500)]  # fmt: skip
    staging = Staging(10, tmp_path)
    staging.add(staged[:300])
    staging.add([])
    staging.add(staged[300:])
    records = staging.load()
    assert scores_of(records) == staged
    let_go(records)
    assert scores_of(records[100:200]) == staged[100:200]
    staging.drop(200)
    assert scores_of(staging.load()) == staged[200:]
    staging.close()


@pytest.mark.parametrize("given", [(), (0.5,) * 11])
def test_a_block_of_another_size_is_a_bug(tmp_path: Path, given: tuple[float, ...]) -> None:
    staging = Staging(10, tmp_path)
    with pytest.raises(Bug):
        staging.add([scores(1, *given)])
    staging.close()
