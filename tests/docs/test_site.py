"""`make docs`: every page is in the site, every link and anchor leads somewhere, and nothing comes from elsewhere."""

import re
from pathlib import Path

import pytest

from camserver.store.tables import metadata
from tests.repository.tree import ROOT, documents
from tools import docs_site

OUTSIDE = re.compile(r"""<(?!a\b)[^>]*\b(?:src|href)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "docs"
    assert docs_site.build(ROOT, folder) == []
    return folder


def test_every_page_is_there_and_can_be_found(site: Path) -> None:
    index = (site / "index.html").read_text()
    search = (site / "search-index.js").read_text()
    for page in documents():
        output = docs_site.read_page(page.relative_to(ROOT).as_posix(), page.read_text()).output
        assert (site / output).is_file()
        assert f'href="{output}"' in index
        assert f'"{output}#' in search


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Links may lead out; pictures, styles and scripts are the site's own."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        text = page.read_text()
        assert not OUTSIDE.findall(text), page
        assert "<script>" not in text
        assert "<style" not in text
    assert not re.search(r"@import|url\(", (site / "site.css").read_text())


def test_links_work_without_a_server(site: Path) -> None:
    """What a page links to is a file of the site; the builder said so, and here it is looked at."""
    for page in site.rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text()):
            assert (page.parent / target).is_file(), f"{page.relative_to(site)}: {target}"


def repository(folder: Path, **pages: str) -> Path:
    (folder / "docs" / "guide").mkdir(parents=True)
    for name, text in {"README.md": "# Top\n", **pages}.items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# A\n[x](gone.md)\n", "gone.md leads nowhere"),
        ("# A\n[x](../../../etc/passwd)\n", "leads nowhere"),
        ("# A\n[x](../../README.md#nothing)\n", "names no heading"),
        ("# A\n![x](gone.png)\n", "gone.png leads nowhere"),
        ("no title\n", "does not begin with a title"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    made = repository(tmp_path / "repo", **{"docs/guide/a.md": text})
    (problem,) = docs_site.build(made, tmp_path / "out")
    assert problem.startswith("docs/guide/a.md")
    assert said in problem


def test_anchors_are_those_of_the_usual_hosts() -> None:
    page = docs_site.read_page("a.md", "# One `two` (three)!\n\n## Again\n\n## Again\n\n## 見る範囲を決める\n")
    assert [section.anchor for section in page.sections] == ["one-two-three", "again", "again-1", "見る範囲を決める"]


def test_lines_of_japanese_are_joined_without_a_space() -> None:
    page = docs_site.read_page("a.md", "# 題\n\n一行目、\n二行目。Then\nEnglish\n")
    assert page.sections[0].text == "一行目、二行目。Then English"


def test_a_page_belongs_to_a_section(tmp_path: Path) -> None:
    made = repository(tmp_path / "repo", **{"docs/loose.md": "# Loose\n"})
    (problem,) = docs_site.build(made, tmp_path / "out")
    assert "belongs to no section" in problem


def test_another_folder_is_not_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "photo.jpg").write_text("x")
    (problem,) = docs_site.build(repository(tmp_path / "repo"), precious)
    assert "something else" in problem
    assert (precious / "photo.jpg").exists()


def test_the_schema_page_names_every_table() -> None:
    text = (ROOT / "docs" / "design" / "schema.md").read_text()
    named = set(re.findall(r"`([a-z_]+)`", text))
    assert set(metadata.tables) <= named
