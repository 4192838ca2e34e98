"""A value other than the default for every setting, so that tests can write each of them."""

import json
from dataclasses import MISSING
from pathlib import Path
from typing import Literal, get_args, get_origin

from camserver.base.secrets import Secret
from camserver.config.catalogue import all_settings
from camserver.config.database_url import DatabaseUrl
from camserver.config.values import Setting

ALL = list(all_settings().values())
SECRETS = [setting for setting in ALL if setting.secret]


# Texts of which not every one will do.
SPECIAL: dict[str, object] = {
    "summaries.at": "07:30",
    "analyzer.model_sha256": "0a" * 32,
    "analyzer.fast_model_sha256": "0b" * 32,
    "analyzer.model_keys": ("0a" * 32, "F9" * 32),
    "control.tls_port": 8443,  # not set by default
    "metrics.port": 9110,  # likewise
    "availability.days": ("sat", "sun"),
    "streamer.tls_port": 8444,
    "oidc.roles": ("guards=viewer", "two words=tenant_admin"),
    "archive.folders": ("/mnt/one", "/mnt/two words"),
}


def sample(setting: Setting) -> object:
    """What the loaded value should be."""
    if setting.name in SPECIAL:
        return SPECIAL[setting.name]
    kind, default = setting.type, setting.default
    if kind is bool:
        return not default
    if kind is int or kind is float:
        more, less = (default + 2, default - 1) if kind is int else (default + 0.25, default - 0.25)
        return more if setting.maximum is None or more <= setting.maximum else less
    if get_origin(kind) is Literal:
        return next(option for option in get_args(kind) if option != default)
    if kind == tuple[str, ...] and setting.networks:
        return ("192.0.2.7", "10.1.0.0/24", "2001:db8::/32")
    if kind == tuple[str, ...]:
        return ("https://sample.example:9999/x", "https://two.example") if setting.http_url else ("one", "two words")
    if kind is Path:
        return Path(f"/srv/{setting.section}/{setting.key}")
    if kind is DatabaseUrl:
        return DatabaseUrl.parse("mysql://cam:sample-password@db.example/cams")
    if kind is Secret:
        return Secret(f"sample-{setting.section}-{setting.key}-0123456789")
    return "https://sample.example:9999/x" if setting.http_url else f"sample {setting.key}"


def as_text(value: object) -> str:
    """As an environment variable has it."""
    if isinstance(value, Secret):
        return value.reveal()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def as_toml(value: object) -> str:
    if isinstance(value, Secret | Path):
        return json.dumps(as_text(value))
    return json.dumps(value)


def default_of(setting: Setting) -> object:
    return None if setting.default is MISSING else setting.default
