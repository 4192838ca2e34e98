"""From the places settings are written in to one checked `Settings`.

Order: default, then file, then the seeds' variables, then CAMSERVER_ variables, then the command line; the
later wins. Nothing is created or changed on disk, so that settings can be looked at anywhere.
"""

from collections.abc import Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Any, Final

from camserver.base.errors import BadInput, BadSettings
from camserver.config import catalogue, layers
from camserver.config.layers import Given, Layer, Problem
from camserver.config.sections import Settings
from camserver.config.together import check_together
from camserver.config.values import Setting, from_toml

PROBLEMS_SHOWN_MAX: Final = 50
DEFAULT: Final = "default"


def load(path: Path | None, environ: Mapping[str, str], data_dir: Path | None = None) -> Settings:
    """All settings, or BadSettings with every problem in `details["problems"]`."""
    problems: list[Problem] = []
    warnings: list[str] = []
    chosen: Layer = {}
    if path is not None:
        from_file = layers.read_file(path, problems)
        warning = layers.open_file_warning(path, from_file)
        warnings.extend([warning] if warning else [])
        chosen |= from_file
    chosen |= layers.read_seed_variables(environ, problems, warnings)
    chosen |= layers.read_own_variables(environ, problems)
    if data_dir is not None:
        chosen["server.data_dir"] = _from_command_line("server.data_dir", data_dir, problems)
    warnings.extend(_unused_warnings(chosen))
    values = _with_defaults(chosen)
    if not problems:
        # A refused value was replaced by its default, which its neighbours may not fit.
        problems += check_together(values)
    sections = _build_sections(values, problems)
    if problems:
        raise _refused(problems)
    all_sources = {name: chosen[name].source if name in chosen else DEFAULT for name in catalogue.all_settings()}
    return Settings(**sections, config_file=path, sources=all_sources, warnings=tuple(warnings))


def _from_command_line(name: str, value: Path, problems: list[Problem]) -> Given:
    try:
        return Given(from_toml(catalogue.all_settings()[name], str(value)), "command line")
    except BadInput as error:
        problems.append(Problem(f"command line ({name})", error.message))
        return Given(Path(), "command line")


def _unused_warnings(chosen: Layer) -> list[str]:
    settings = catalogue.all_settings()
    return [
        f"{name} ({given.source}) has no effect: {settings[name].unused}"
        for name, given in chosen.items()
        if settings[name].unused
    ]


def _with_defaults(chosen: Layer) -> dict[str, Any]:
    """A value for every setting. Derived defaults come last: they read plain ones."""
    settings = catalogue.all_settings()
    values = {name: _default(setting) for name, setting in settings.items() if setting.default is not MISSING}
    values |= {name: given.value for name, given in chosen.items()}
    derived = {
        name: setting.derive(values)
        for name, setting in settings.items()
        if name not in values and setting.derive is not None
    }
    return values | derived


def _default(setting: Setting) -> object:
    return setting.default.absolute() if isinstance(setting.default, Path) else setting.default


def _build_sections(values: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    built = {}
    for section, kind in catalogue.section_types().items():
        own = {
            setting.key: values[setting.name]
            for setting in catalogue.all_settings().values()
            if setting.section == section
        }
        try:
            built[section] = kind(**own)
        except (ValueError, BadInput) as error:
            # A policy checks what concerns several of its fields by itself.
            problems.append(Problem(f"[{section}]", str(error)))
    return built


def _refused(problems: list[Problem]) -> BadSettings:
    lines = [str(problem) for problem in problems]
    if len(lines) == 1:
        return BadSettings(f"the configuration is refused: {lines[0]}", problems=lines)
    shown = lines[:PROBLEMS_SHOWN_MAX]
    if len(lines) > len(shown):
        shown.append(f"… and {len(lines) - len(shown)} more")
    listed = "".join(f"\n  - {line}" for line in shown)
    return BadSettings(f"the configuration is refused; {len(lines)} problems:{listed}", problems=lines)
