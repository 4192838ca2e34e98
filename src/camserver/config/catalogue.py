"""The list of all settings, made from the dataclasses, and the nearest name for one that does not exist."""

import difflib
from collections.abc import Iterable
from dataclasses import Field, fields
from functools import cache
from typing import Any, Final, get_type_hints

from camserver.config.sections import Settings
from camserver.config.seed_names import SEED_NAMES
from camserver.config.values import Setting, setting_of

# Variables that begin like a setting and are none: where the file is, and marks that tests put on processes.
NOT_SETTINGS: Final = frozenset({"CAMSERVER_CONFIG", "CAMSERVER_COPY_URL", "CAMSERVER_TEST_ID"})


def _section_fields() -> tuple[Field[Any], ...]:
    return tuple(field for field in fields(Settings) if "section" in field.metadata)


@cache
def section_types() -> dict[str, type[Any]]:
    """Each section's dataclass, in the order of the reference."""
    hints = get_type_hints(Settings)
    return {field.name: hints[field.name] for field in _section_fields()}


@cache
def section_docs() -> dict[str, str]:
    return {field.name: _doc(field) for field in _section_fields()}


def _doc(field: Field[Any]) -> str:
    doc, unused = str(field.metadata["section"]), field.metadata["unused"]
    return f"{doc} Understood but not used yet: {unused}." if unused else doc


@cache
def all_settings() -> dict[str, Setting]:
    """Every setting by "section.key", in the order of the reference."""
    found: dict[str, Setting] = {}
    for outer in _section_fields():
        kind = section_types()[outer.name]
        hints = get_type_hints(kind)
        for inner in fields(kind):
            setting = setting_of(outer.name, inner, hints[inner.name], outer.metadata["unused"])
            found[setting.name] = setting
    return found


@cache
def by_variable() -> dict[str, Setting]:
    return {setting.variable: setting for setting in all_settings().values()}


@cache
def _by_seed_name() -> dict[str, str]:
    return {seed.variable: seed.setting for seed in SEED_NAMES}


def suggest_section(name: str) -> str:
    return _nearest(name, section_types())


def suggest_key(section: str, key: str) -> str:
    """For an unknown key: the same key elsewhere, what a seed's name is here, or a similar key."""
    here = {setting.key for setting in all_settings().values() if setting.section == section}
    elsewhere = [setting.name for setting in all_settings().values() if setting.key == key]
    if elsewhere:
        return f"; did you mean {' or '.join(elsewhere)}?"
    seed = _by_seed_name().get(key.upper())
    return f"; that is {seed} here" if seed else _nearest(key, here)


def suggest_variable(name: str) -> str:
    return _nearest(name, by_variable())


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
