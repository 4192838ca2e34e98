"""The reference of all settings as files: camserver.example.toml, docs/ref/settings.md and the generated part
of docs/ref/seed-names.md. Tests fail when a file differs from what is made here; this writes them again:

    python -m camserver.config.reference
"""

import sys
import textwrap
from pathlib import Path
from typing import Final

from camserver.config import catalogue
from camserver.config.seed_names import SEED_NAMES
from camserver.config.values import Setting, default_text, expected

EXAMPLE_FILE: Final = "camserver.example.toml"
SETTINGS_PAGE: Final = "docs/ref/settings.md"
SEED_PAGE: Final = "docs/ref/seed-names.md"
BLOCK_BEGIN: Final = "<!-- generated: settings -->"
BLOCK_END: Final = "<!-- end of generated part -->"

_COMMENT_CHARS: Final = 108
_EXAMPLE_HEAD: Final = """\
# Every setting of camserver with its default. Copy this file to camserver.toml and uncomment what you change.
#
# A later place wins: default, this file, environment variable, command line. The variable of a setting is
# CAMSERVER_SECTION_KEY, as in CAMSERVER_WEB_PORT; an empty one counts as not set. Unknown keys are refused.
# Relative paths start at the folder camserver is started in. Where the default is "", nothing is set.
# See what is in force, and where it comes from: camserver config show
"""
_PAGE_HEAD: Final = """\
# Settings

This page is generated from the program; `python -m camserver.config.reference` writes it again.

Settings stand in one TOML file and in environment variables. A later place wins: default, file, the
variables of [the seeds](seed-names.md), `CAMSERVER_SECTION_KEY` variables, command line. An empty variable
counts as not set, and so does an empty text in the file where the default is `""`, but for those that say
otherwise. A list in a variable is
separated by commas. Relative paths start at the folder camserver is started in.

Unknown keys, unknown `CAMSERVER_` variables, wrong types and values out of bounds are refused, all at once
and by name; `camserver config check` does only that. `camserver config show` prints every value and where it
came from, with secrets masked.
"""


def example_toml() -> str:
    """The whole of camserver.example.toml."""
    parts = [_EXAMPLE_HEAD]
    for section, doc in catalogue.section_docs().items():
        parts.append(f"\n{_comment(doc)}[{section}]\n")
        parts.extend(_example_entry(setting) for setting in _settings_of(section))
    return "".join(parts)


def _example_entry(setting: Setting) -> str:
    return f"{_comment(setting.doc)}{_comment(_about(setting))}#{setting.key} = {default_text(setting)}\n"


def _about(setting: Setting) -> str:
    unit = f", in {setting.unit}" if setting.unit else ""
    secret = "; a secret" if setting.secret else ""
    words = expected(setting)
    return f"{words[0].upper()}{words[1:]}{unit}{secret}."


def _comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in textwrap.wrap(text, _COMMENT_CHARS, break_on_hyphens=False))


def settings_page() -> str:
    """The whole of docs/ref/settings.md."""
    parts = [_PAGE_HEAD]
    for section, doc in catalogue.section_docs().items():
        parts.append(f"\n## [{section}]\n\n{doc}\n\n| key | default | expected | what it does |\n|---|---|---|---|\n")
        parts.extend(_page_row(setting) for setting in _settings_of(section))
    return "".join(parts)


def _page_row(setting: Setting) -> str:
    cells = (f"`{setting.key}`", f"`{default_text(setting)}`", _about(setting), setting.doc)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _settings_of(section: str) -> list[Setting]:
    return [setting for setting in catalogue.all_settings().values() if setting.section == section]


def seed_names_table() -> str:
    """The generated part of docs/ref/seed-names.md."""
    rows = [f"| `{seed.variable}` | `{seed.setting}` | {seed.document} | {seed.note} |\n" for seed in SEED_NAMES]
    return "| variable | setting | document | note |\n|---|---|---|---|\n" + "".join(rows)


def with_seed_names(page: str) -> str:
    """`page` with its generated part written anew."""
    before, _, rest = page.partition(BLOCK_BEGIN)
    _, _, after = rest.partition(BLOCK_END)
    return f"{before}{BLOCK_BEGIN}\n{seed_names_table()}{BLOCK_END}{after}"


def write_all(root: Path) -> None:
    """Writes the reference files of the checkout at `root`."""
    (root / EXAMPLE_FILE).write_text(example_toml(), encoding="utf-8")
    (root / SETTINGS_PAGE).write_text(settings_page(), encoding="utf-8")
    seed_page = root / SEED_PAGE
    seed_page.write_text(with_seed_names(seed_page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
