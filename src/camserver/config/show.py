"""Settings for people to look at: every value with its source, secrets masked. Prints nothing itself."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from camserver.base.secrets import MASK
from camserver.config import catalogue
from camserver.config.sections import Settings
from camserver.config.values import Plain, Setting, plain


@dataclass(frozen=True, slots=True)
class Shown:
    """One setting as `camserver config show` prints it. `value` None means: not set."""

    section: str
    key: str
    value: Plain
    source: str
    doc: str

    @property
    def text(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, list):
            return ", ".join(self.value)
        return "(not set)" if self.value is None else str(self.value)


def describe(settings: Settings) -> list[Shown]:
    """Every setting, in the order of the reference."""
    return [_shown(settings, setting) for setting in catalogue.all_settings().values()]


def _shown(settings: Settings, setting: Setting) -> Shown:
    value = getattr(getattr(settings, setting.section), setting.key)
    source = settings.sources[setting.name]
    shown = plain(value)
    if value is None and setting.secret_file:
        path = settings.server.secrets_dir / setting.secret_file
        shown = MASK if path.exists() else None
        source = f"secret file {path}" + ("" if path.exists() else " (made on first start)")
    return Shown(setting.section, setting.key, shown, source, setting.doc)


def as_json(shown: Sequence[Shown]) -> str:
    """What `camserver config show --json` prints."""
    return json.dumps([asdict(one) for one in shown], ensure_ascii=False, indent=2)
