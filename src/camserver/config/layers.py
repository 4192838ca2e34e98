"""The places a setting can be written: the TOML file, the seeds' variables, ours, the command line.

Each place is read whole into values by setting name; whatever is wrong in it is added to a list of
problems, so that all of them can be told at once. Which place wins is not decided here.
"""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from camserver.base.errors import BadInput, BadSettings
from camserver.base.secrets import Secret
from camserver.config import catalogue
from camserver.config.database_url import DatabaseUrl
from camserver.config.seed_names import SEED_NAMES
from camserver.config.values import Setting, from_text, from_toml, is_unset

FILE_BYTES_MAX: Final = 1_000_000
NAME_CHARS_MAX: Final = 60


@dataclass(frozen=True, slots=True)
class Given:
    """A checked value and the place it was written in."""

    value: object
    source: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is refused. `what` never holds a secret."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


Layer = dict[str, Given]


def read_file(path: Path, problems: list[Problem]) -> Layer:
    """The values of a TOML file. A file that can't be read or is no TOML raises BadSettings by itself."""
    text = _text_of(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, f"is no valid TOML: {error}") from None
    found: Layer = {}
    for section, table in document.items():
        if section not in catalogue.section_types():
            hint = catalogue.suggest_section(section)
            if not isinstance(table, dict):
                hint = f"; settings stand in sections{catalogue.suggest_key('', section)}"
            problems.append(Problem(_place(path, text, section), f"no such section{hint}"))
        elif not isinstance(table, dict):
            problems.append(Problem(_place(path, text, section), f"is a section; write [{section}] above its keys"))
        else:
            found.update(_read_table(path, text, section, table, problems))
    return found


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise _refused(path, f"is larger than {FILE_BYTES_MAX} bytes; is it the right file?")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise _refused(path, "does not exist; create it or give another with --config") from None
    except UnicodeDecodeError as error:
        raise _refused(path, f"is no UTF-8 text (byte {error.start}); save it as UTF-8") from None
    except OSError as error:
        raise _refused(path, f"can't be read: {error.strerror}; check the path and its permissions") from None


def _refused(path: Path, what: str) -> BadSettings:
    problem = f"the file {path} {what}"
    return BadSettings(f"the configuration is refused: {problem}", problems=[problem])


def _read_table(path: Path, text: str, section: str, table: Mapping[str, object], problems: list[Problem]) -> Layer:
    found: Layer = {}
    for key, value in table.items():
        setting = catalogue.all_settings().get(f"{section}.{key}")
        where = _place(path, text, section, key)
        if setting is None:
            # The value is not shown: it may be that of a misspelt secret.
            hint = catalogue.suggest_key(section, key)
            problems.append(Problem(where, f"no such setting{hint}"))
        else:
            try:
                if not is_unset(setting, value):
                    found[setting.name] = Given(from_toml(setting, value), f"file {path}")
            except BadInput as error:
                problems.append(Problem(where, error.message))
    return found


def _place(path: Path, text: str, section: str, key: str | None = None) -> str:
    line = _line_of(text, section, key)
    at = f"{path}, line {line}" if line else f"{path}"
    return f"{at}, {_clipped(section)}.{_clipped(key)}" if key else f"{at}, [{_clipped(section)}]"


def _clipped(name: str) -> str:
    """A name as it was written, but for one that would flood or garble the message."""
    plain = name if name.isprintable() else repr(name)
    return plain if len(plain) <= NAME_CHARS_MAX else plain[: NAME_CHARS_MAX - 1] + "…"


def _line_of(text: str, section: str, key: str | None) -> int | None:
    """Where a key or section most likely stands. tomllib does not say; this looks for the usual spelling."""
    name = re.escape(key or section)
    assigned = re.compile(rf"\s*[\"']?{name}[\"']?\s*[.=]")
    current = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+([^\]]*)\]", line)
        if header:
            current = header[1].strip().strip("\"'")
        # A key stands below its section's header; a section is a header, or a name above all headers.
        if (key is None and header and current == section) or (
            not header and current == (section if key else "") and assigned.match(line)
        ):
            return number
    return None


def read_seed_variables(environ: Mapping[str, str], problems: list[Problem], warnings: list[str]) -> Layer:
    """The values given under the seeds' names. Two names of one setting must not disagree."""
    found: Layer = {}
    for seed in SEED_NAMES:
        text = environ.get(seed.variable, "")
        if not text.strip():
            continue
        setting = catalogue.all_settings()[seed.setting]
        one: Layer = {}
        _read_variable(one, setting, seed.variable, text, problems)
        before = found.get(setting.name)
        if before and one and before.value != one[setting.name].value:
            what = f"sets {setting.name} to something else than {before.source} does; remove one of them"
            problems.append(Problem(f"environment variable {seed.variable}", what))
        found = one | found
    warnings.extend(_unknown_drive_names(environ))
    return found


def _unknown_drive_names(environ: Mapping[str, str]) -> list[str]:
    """The seeds say DRIVE_* and no more. Other programs may use such names too, so this only warns."""
    known = sorted(seed.variable for seed in SEED_NAMES if seed.variable.startswith("DRIVE_"))
    strange = sorted(name for name in environ if name.startswith("DRIVE_") and name not in known)
    return [
        f"environment variable {name} means nothing to camserver; known are {', '.join(known)}" for name in strange
    ]


def read_own_variables(environ: Mapping[str, str], problems: list[Problem]) -> Layer:
    """The values of CAMSERVER_SECTION_KEY. An empty variable counts as not set, unless its setting refuses that; an
    unknown one is refused."""
    found: Layer = {}
    for name in sorted(name for name in environ if name.startswith("CAMSERVER_")):
        setting = catalogue.by_variable().get(name)
        if setting is not None:
            if environ[name].strip() or setting.empty_refused:
                _read_variable(found, setting, name, environ[name], problems)
        elif name not in catalogue.NOT_SETTINGS:
            hint = catalogue.suggest_variable(name)
            problems.append(Problem(f"environment variable {name}", f"no such setting{hint}"))
    return found


def _read_variable(found: Layer, setting: Setting, variable: str, text: str, problems: list[Problem]) -> None:
    try:
        if not is_unset(setting, text.strip()):
            found[setting.name] = Given(from_text(setting, text), f"environment {variable}")
    except BadInput as error:
        problems.append(Problem(f"environment variable {variable} ({setting.name})", error.message))


def open_file_warning(path: Path, layer: Layer) -> str | None:
    """Says so when a file that holds secrets can be read by other users."""
    held = [name for name, given in layer.items() if _holds_secret(given.value)]
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not held or not mode & 0o077:
        return None
    what = f"holds secrets ({', '.join(held)}) and others may read it (mode {mode:04o})"
    return f"{path} {what}; run: chmod 600 {path}"


def _holds_secret(value: object) -> bool:
    return value.holds_password if isinstance(value, DatabaseUrl) else isinstance(value, Secret)
