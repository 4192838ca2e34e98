"""The receivers that settings stand for: `[webhook] url` and `[drive]`.

They are made, or brought in line, when a dispatcher starts. One whose settings are gone is switched off and forgets
its secrets. What people change of it besides stays: its language, its cap, and that it is off.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uuid_utils

from camserver.base.clock import Clock
from camserver.base.credentials import Keys, Sealed, open_sealed, seal
from camserver.base.errors import BadInput, Conflict, DataUnusable
from camserver.base.log import get_logger
from camserver.base.secrets import Secret
from camserver.clients.drive_tokens import parse_account
from camserver.domain.deliveries import ReceiverKind
from camserver.domain.people import Principal, Role
from camserver.services.dispatcher.turns import patiently
from camserver.store import Store, receivers, tenants
from camserver.store.core import ScopedStore
from camserver.store.receivers import NewReceiver, ReceiverChange, StoredReceiver, secrets_of

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

NAME: Final = "webhook (configuration)"
DRIVE_NAME: Final = "drive (configuration)"


@dataclass(frozen=True, slots=True)
class Named:
    """A receiver as the settings have it."""

    kind: ReceiverKind
    config: Mapping[str, Any]
    secrets: Mapping[str, Secret]


async def keep_configured(store: Store, clock: Clock, settings: "Settings", key: Keys) -> None:
    """Brings the receivers in line, once. A store that is away is waited for."""
    wanted = {NAME: _webhook(settings.webhook.url), DRIVE_NAME: _drive(settings)}
    for name, named in wanted.items():
        await _keep(store, clock, name, named, key)


def _webhook(url: Secret | None) -> Named | None:
    return None if url is None else Named(ReceiverKind.WEBHOOK, {}, {"url": url})


def _drive(settings: "Settings") -> Named | None:
    file, folder_id = settings.drive.credentials_file, settings.drive.folder_id
    if file is None or folder_id is None:
        return None
    credentials = _read_key(file)
    return None if credentials is None else Named(ReceiverKind.DRIVE, {"folder_id": folder_id}, credentials)


def _read_key(file: Path) -> dict[str, Secret] | None:
    """The service account's key. A file that holds none is reported, and nothing is sent to Drive."""
    try:
        credentials = Secret(file.read_text())
        parse_account(credentials.reveal())
    except (OSError, UnicodeDecodeError) as error:
        log.error("drive_credentials_unreadable", file=str(file), why=str(error))
        return None
    except BadInput as error:
        log.error("drive_credentials_unusable", file=str(file), why=error.message)
        return None
    return {"credentials": credentials}


async def _keep(store: Store, clock: Clock, name: str, named: Named | None, key: Keys) -> None:
    try:
        await patiently(clock, _bring_in_line, store, clock, name, named, key)
    except (BadInput, Conflict) as error:
        # Another dispatcher that started at the same time was first.
        log.info("configured_receiver_left", receiver=name, why=error.message)


async def _bring_in_line(store: Store, clock: Clock, name: str, named: Named | None, key: Keys) -> None:
    tenant_id = await store.read(tenants.home)
    if tenant_id is None:
        return
    scoped = store.as_(Principal(tenant_id, None, Role.SYSTEM_ADMIN))
    found = next((one for one in await scoped.read(receivers.page) if one.name == name), None)
    now_ms = clock.now_ms()
    if named is None:
        if found is not None and found.sealed is not None:
            change = ReceiverChange(enabled=False, without_secrets=True)
            await scoped.write(receivers.change, found.receiver_uuid, change, "", now_ms)
            log.info("configured_receiver_switched_off", receiver=name)
    elif found is None:
        await _make(scoped, tenant_id, name, named, key, now_ms)
    elif not _is_same(found, named, key):
        change = ReceiverChange(
            # One without secrets was switched off with the setting, not by somebody.
            enabled=True if found.sealed is None else None,
            config=json.dumps({**json.loads(found.config), **named.config}),
            sealed=_sealed(named, tenant_id, found.receiver_uuid, key),
        )
        await scoped.write(receivers.change, found.receiver_uuid, change, "", now_ms)
        log.info("configured_receiver_changed", receiver=name)


async def _make(scoped: ScopedStore, tenant_id: int, name: str, named: Named, key: Keys, now_ms: int) -> None:
    receiver_uuid = str(uuid_utils.uuid7())
    sealed = _sealed(named, tenant_id, receiver_uuid, key)
    config = json.dumps(dict(named.config))
    new = NewReceiver(receiver_uuid, name, named.kind.value, config, sealed, "ja", None)
    await scoped.write(receivers.add, new, "", now_ms)
    log.info("configured_receiver_made", receiver=name)


def _sealed(named: Named, tenant_id: int, receiver_uuid: str, key: Keys) -> Sealed:
    return seal(key, tenant_id, secrets_of(receiver_uuid), json.dumps(_plain(named)).encode())


def _plain(named: Named) -> dict[str, str]:
    return {name: secret.reveal() for name, secret in named.secrets.items()}


def _is_same(found: StoredReceiver, named: Named, key: Keys) -> bool:
    """Whether it is as the settings want it. One whose secrets can't be read is written anew."""
    if found.sealed is None:
        return False
    try:
        plain = json.loads(open_sealed(key, found.tenant_id, secrets_of(found.receiver_uuid), found.sealed))
    except DataUnusable as error:
        log.warning("configured_receiver_unreadable", receiver=found.name, why=error.message)
        return False
    config = json.loads(found.config)
    return bool(plain == {**plain, **_plain(named)} and config == {**config, **named.config})
