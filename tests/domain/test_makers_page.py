"""docs/guide/cameras.md lists what the rules know."""

from camserver.domain.imports import COLUMNS
from camserver.domain.makers import MAKERS
from tests.rig.processes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "guide" / "cameras.md").read_text()


def test_the_page_has_the_paths_of_every_maker() -> None:
    for maker in MAKERS:
        assert f"| {maker.name} | `{maker.main}` | `{maker.sub}` | {maker.note} |" in PAGE


def test_the_page_has_every_column_of_a_list() -> None:
    table = PAGE.partition("## Import from a CSV file")[2].partition("## Import from Frigate")[0]
    assert not [name for name in COLUMNS if f"`{name}`" not in table]
