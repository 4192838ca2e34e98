"""One setting and its value: what is expected, reading it from TOML or from text, and showing it again.

TOML is read strictly (a number in quotes is no number, `true` is no 1); text, as environment variables have
it, is turned into what TOML would hold first and then goes the same way. Values that are or hold secrets
are never part of a message. This module knows nothing about files, the environment or which settings exist.
"""

import ipaddress
import json
import math
import re
import types
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin
from urllib.parse import urlsplit

from camserver.base.errors import BadInput, Bug
from camserver.base.secrets import MASK, Secret
from camserver.config.database_url import DatabaseUrl

# What `camserver config show --json` can print; a secret is its mask.
Plain = str | int | float | bool | None | list[str]

TEXT_CHARS_MAX: Final = 4096
LIST_ITEMS_MAX: Final = 256
GIVEN_CHARS_MAX: Final = 60
# SQL and JSON readers hold 64-bit numbers.
INT_MAX: Final = 2**63 - 1

_UNITS: Final = {
    "ms": "milliseconds",
    "sec": "seconds",
    "min": "minutes",
    "hours": "hours",
    "days": "days",
    "bytes": "bytes",
    "mb": "megabytes",
    "percent": "percent",
    "width": "pixels",
}
_TRUTH: Final = {
    "true": True, "yes": True, "on": True, "1": True,
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What is known about one key. `type` is without its `| None`, which `optional` says."""

    section: str
    key: str
    type: Any
    optional: bool
    doc: str
    default: Any  # MISSING when it is derived
    minimum: float | None = None
    maximum: float | None = None
    min_chars: int = 0
    http_url: bool = False
    networks: bool = False
    empty_refused: str = ""  # why an empty text is refused instead of counting as not set
    derive: Callable[[Any], object] | None = None
    derived_text: str = ""  # the default as written in the reference, when it is derived
    secret_file: str = ""  # where in secrets_dir the value is kept when it is not set
    unused: str = ""

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        return f"CAMSERVER_{self.section}_{self.key}".upper()

    @property
    def secret(self) -> bool:
        """Whether its value is masked wherever it is shown."""
        return self.type in (Secret, DatabaseUrl)

    @property
    def unit(self) -> str:
        return _UNITS.get(self.key.rpartition("_")[2], "")


def setting_of(section: str, field: Field[Any], hint: Any, unused: str = "") -> Setting:
    """A `Setting` from a dataclass field, its resolved type and its metadata."""
    kind, optional = _without_none(hint)
    known = (int, float, bool, str, Path, Secret, DatabaseUrl)
    if kind not in known and get_origin(kind) is not Literal and kind != tuple[str, ...]:
        raise Bug(f"setting {section}.{field.name} has the type {hint}, which can't be read; use a plain type")
    about = field.metadata
    return Setting(
        section=section,
        key=field.name,
        type=kind,
        optional=optional,
        doc=about.get("doc", ""),
        default=field.default,
        minimum=about.get("min"),
        maximum=about.get("max"),
        min_chars=about.get("min_chars", 0),
        http_url=about.get("form") == "http_url",
        networks=about.get("form") == "networks",
        empty_refused=about.get("empty_refused", ""),
        derive=about.get("derive"),
        derived_text=about.get("shown", ""),
        secret_file=about.get("secret_file", ""),
        unused=unused,
    )


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (types.UnionType, Union):
        return hint, False
    kinds = [kind for kind in get_args(hint) if kind is not types.NoneType]
    return (kinds[0] if len(kinds) == 1 else hint), True


def expected(setting: Setting) -> str:
    """What a value must be, in words."""
    kind = setting.type
    if kind is int or kind is float:
        return ("a whole number" if kind is int else "a number") + _range(setting)
    if get_origin(kind) is Literal:
        options = [json.dumps(option) for option in get_args(kind)]
        return "one of " + ", ".join(options)
    if kind == tuple[str, ...]:
        return _list_in_words(setting)
    if kind is str and setting.http_url:
        return "an address that begins with http:// or https://"
    words = {bool: "true or false", Path: "a path", DatabaseUrl: "the address of a database"}
    return words.get(kind) or _text_in_words(setting.min_chars)


def _list_in_words(setting: Setting) -> str:
    if setting.networks:
        return "a list of addresses and networks, such as 10.0.0.5 and 10.1.0.0/24"
    return "a list of addresses that begin with http:// or https://" if setting.http_url else "a list of texts"


def _text_in_words(min_chars: int) -> str:
    return f"a text of at least {min_chars} character{'s' * (min_chars > 1)}" if min_chars else "a text"


def _range(setting: Setting) -> str:
    low, high = setting.minimum, setting.maximum
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f", {low} or more"
    return f", at most {high}" if high is not None else ""


def given(setting: Setting, value: object) -> str:
    """A refused value as a message may show it."""
    if setting.secret:
        return f"{_kind_of(value)} ({MASK})"
    text = json.dumps(value, ensure_ascii=False, default=str)
    if setting.http_url and "@" in text:
        # The part before it may be a user name and a password.
        return MASK
    return text if len(text) <= GIVEN_CHARS_MAX else text[: GIVEN_CHARS_MAX - 1] + "…"


def _kind_of(value: object) -> str:
    kinds = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "a table" if isinstance(value, dict) else "a date or time")


def is_unset(setting: Setting, value: object) -> bool:
    """Whether a value in the file counts as not written: an empty text, where no text is the default. BadInput where
    somebody who leaves it empty most likely means something else."""
    if not isinstance(value, str) or value.strip() or not (setting.optional or setting.derive is not None):
        return False
    if setting.empty_refused:
        raise BadInput(f"is empty; {setting.empty_refused}")
    return value == ""


def from_toml(setting: Setting, value: object) -> object:
    """The checked value. Raises BadInput, whose message never holds the value of a secret."""
    kind = setting.type
    if get_origin(kind) is Literal:
        fits = any(value == option and type(value) is type(option) for option in get_args(kind))
        return value if fits else _refuse(setting, value)
    if kind is bool:
        return value if isinstance(value, bool) else _refuse(setting, value)
    if kind is int or kind is float:
        return _number(setting, value)
    if kind == tuple[str, ...]:
        return _texts(setting, value)
    return _from_str(setting, value)


def from_text(setting: Setting, text: str) -> object:
    """Like `from_toml`, for a value that came as text; a list is separated by commas."""
    return from_toml(setting, _toml_value(setting.type, text.strip()))


def _toml_value(kind: Any, text: str) -> object:
    """What TOML would hold; the text itself where it can't be that, which is refused as such afterwards."""
    if kind is bool:
        return _TRUTH.get(text.lower(), text)
    if kind == tuple[str, ...]:
        return [item.strip() for item in text.split(",") if item.strip()]
    if kind is int or kind is float:
        try:
            return int(text) if kind is int else float(text)
        except ValueError:
            return text
    return text


def _refuse(setting: Setting, value: object) -> object:
    raise BadInput(f"expected {expected(setting)}, got {given(setting, value)}")


def _number(setting: Setting, value: object) -> object:
    # bool is an int to Python, not to people.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _refuse(setting, value)
    if setting.type is int and not isinstance(value, int):
        return _refuse(setting, value)
    if not math.isfinite(value) or abs(value) > INT_MAX:
        return _refuse(setting, value if isinstance(value, int) else str(value))
    low, high = setting.minimum, setting.maximum
    if (low is not None and value < low) or (high is not None and value > high):
        return _refuse(setting, value)
    return float(value) if setting.type is float else value


def _texts(setting: Setting, value: object) -> object:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        return _refuse(setting, value)
    if len(value) > LIST_ITEMS_MAX:
        raise BadInput(f"holds {len(value)} items; at most {LIST_ITEMS_MAX} are allowed")
    texts = tuple(_checked_text(item) for item in value)
    for text in texts:
        if setting.http_url:
            _check_http_url(setting, text)
        if setting.networks:
            _check_network(setting, text)
    return texts


def _from_str(setting: Setting, value: object) -> object:
    if not isinstance(value, str):
        return _refuse(setting, value)
    text = _checked_text(value)
    if setting.type is DatabaseUrl:
        return _database_url(setting, text)
    if len(text) < setting.min_chars or (setting.type is Path and not text):
        return _refuse(setting, value)
    if setting.type is Path:
        return Path(text).expanduser().absolute()
    if setting.type is Secret:
        return Secret(text)
    if setting.http_url:
        _check_http_url(setting, text)
    return text


def _checked_text(text: str) -> str:
    text = text.strip()
    if len(text) > TEXT_CHARS_MAX:
        raise BadInput(f"is {len(text)} characters long; at most {TEXT_CHARS_MAX} are allowed")
    if _CONTROL.search(text):
        raise BadInput("holds a control character, such as a line break or a tab; remove it")
    return text


def _database_url(setting: Setting, text: str) -> DatabaseUrl:
    try:
        return DatabaseUrl.parse(text)
    except BadInput as error:
        raise BadInput(f"expected {expected(setting)}, but {error.message}") from None


def _check_http_url(setting: Setting, text: str) -> None:
    try:
        parts = urlsplit(text)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        _refuse(setting, text)
    if "@" in urlsplit(text).netloc:
        raise BadInput("holds a user name or a password; an address that is shown must not")


def _check_network(setting: Setting, text: str) -> None:
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        raise BadInput(f"expected {expected(setting)}, got {given(setting, text)}: {error}") from None
    if network.prefixlen == 0:
        raise BadInput(f"{given(setting, text)} is every address there is; name those that are meant")


def plain(value: object) -> Plain:
    """A value as it may be shown to anyone: secrets masked."""
    if isinstance(value, Secret) and not isinstance(value, DatabaseUrl):
        return MASK
    if isinstance(value, tuple):
        return [str(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def default_text(setting: Setting) -> str:
    """The default as TOML; an empty text where nothing is set."""
    if setting.default is MISSING:
        return _toml(setting.derived_text)
    return _toml(plain(setting.default))


def _toml(value: Plain) -> str:
    if value is None:
        return '""'
    # JSON's text, number, list and truth value are also TOML's.
    return json.dumps(value, ensure_ascii=False)
