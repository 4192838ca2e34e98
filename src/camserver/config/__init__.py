"""Configuration: one TOML file and the environment become `Settings`.

What can be set is in `sections` (and in the policies of `domain`), reading is `loading`, looking is `show`,
the secrets made on first start are `secret_files`, the reference pages are made by `reference`. Nothing
here talks to a network or a database, and loading writes nothing.
"""

from camserver.config.database_url import DatabaseUrl
from camserver.config.loading import load
from camserver.config.secret_files import Secrets, make_secrets, media_keys, worker_ca, worker_token
from camserver.config.sections import Settings, StreamerSettings
from camserver.config.show import Shown, as_json, describe

__all__ = [
    "DatabaseUrl",
    "Secrets",
    "Settings",
    "Shown",
    "StreamerSettings",
    "as_json",
    "describe",
    "load",
    "make_secrets",
    "media_keys",
    "worker_ca",
    "worker_token",
]
