"""The reference files are what the program says, and the example file works when everything in it is uncommented."""

import re
import tomllib
from pathlib import Path

import pytest

from camserver.config import load
from camserver.config.catalogue import all_settings, section_types
from camserver.config.reference import EXAMPLE_FILE, SETTINGS_PAGE, example_toml, settings_page, write_all
from camserver.config.show import describe

ROOT = Path(__file__).parents[2]
AGAIN = "run: python -m camserver.config.reference"


def uncommented(text: str) -> str:
    return re.sub(r"^#(?=[a-z0-9_]+ = )", "", text, flags=re.MULTILINE)


def test_the_example_file_is_up_to_date() -> None:
    assert (ROOT / EXAMPLE_FILE).read_text(encoding="utf-8") == example_toml(), AGAIN


def test_the_settings_page_is_up_to_date() -> None:
    assert (ROOT / SETTINGS_PAGE).read_text(encoding="utf-8") == settings_page(), AGAIN


def test_the_example_file_changes_nothing_as_it_is(tmp_path: Path) -> None:
    document = tomllib.loads(example_toml())
    assert document == {section: {} for section in section_types()}


def test_the_example_file_holds_every_key_with_its_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = uncommented(example_toml())
    document = tomllib.loads(text)
    keys = {f"{section}.{key}" for section, table in document.items() for key in table}
    assert keys == set(all_settings())
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "all.toml"
    # What must not be empty is not set by default, which no line can say.
    for setting in all_settings().values():
        if setting.empty_refused:
            text = text.replace(f'\n{setting.key} = ""\n', "\n")
    path.write_text(text, encoding="utf-8")
    written, untouched = describe(load(path, {})), describe(load(None, {}))
    assert [one.value for one in written] == [one.value for one in untouched]


def test_every_key_is_explained_above_it() -> None:
    lines = example_toml().splitlines()
    for number, line in enumerate(lines):
        if re.match(r"#[a-z_]+ = ", line):
            assert lines[number - 1].startswith("# "), line


def test_the_settings_page_has_every_key() -> None:
    page = settings_page()
    for setting in all_settings().values():
        part = page.partition(f"## [{setting.section}]\n")[2].partition("\n## ")[0]
        assert f"| `{setting.key}` |" in part


def test_writing_again_restores_the_files(tmp_path: Path) -> None:
    (tmp_path / "docs/ref").mkdir(parents=True)
    seed_page = tmp_path / "docs/ref/seed-names.md"
    seed_page.write_text("before\n<!-- generated: settings -->\nout of date\n<!-- end of generated part -->\nafter\n")
    write_all(tmp_path)
    assert (tmp_path / EXAMPLE_FILE).read_text(encoding="utf-8") == example_toml()
    text = seed_page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "DATABASE_URL" in text
    assert "out of date" not in text
