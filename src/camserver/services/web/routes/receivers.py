"""Receivers: where messages and copies go. Add, change, try, remove; secrets are kept sealed and never shown."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any

import uuid_utils
from fastapi import Path
from pydantic import BaseModel, ValidationError

from camserver.base.credentials import Sealed, open_sealed, seal
from camserver.base.errors import BadInput, Forbidden
from camserver.base.secrets import Secret
from camserver.clients.archive_folder import check_allowed
from camserver.domain.deliveries import ReceiverKind
from camserver.domain.names import is_name
from camserver.domain.people import Permission
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.field_problems import field_of, known_fields, problem_in_words
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import receivers
from camserver.store.receivers import NewReceiver, ReceiverChange, StoredReceiver, secrets_of
from camserver.wire import api
from camserver.wire.api.receivers import CONFIGS, SECRETS, SYSTEM_KINDS, NoSecrets

routes = Routes()

ReceiverUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]


@routes.get("/api/receivers", Permission.READ)
async def list_receivers(call: TheCall) -> api.ReceiverList:
    """All receivers by name. What they are set to is shown to those who may manage deliveries."""
    found = await call.store.read(receivers.page)
    return api.ReceiverList(receivers=[_shown(call, one) for one in found])


@routes.post("/api/receivers", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=201)
async def add_receiver(call: TheCall, asked: api.ReceiverAsked) -> api.Receiver:
    """Adds a receiver. Its secrets are stored encrypted and never given out again."""
    kind = _permitted(call, asked.kind)
    receiver_uuid = str(uuid_utils.uuid7())
    secrets = _checked(call, SECRETS.get(kind, NoSecrets), asked.secrets, "secrets")
    new = NewReceiver(
        receiver_uuid=receiver_uuid,
        name=_name(asked.name),
        kind=kind.value,
        config=await _config(call, kind, asked.config),
        sealed=_sealed(call, receiver_uuid, secrets),
        language=asked.language,
        hourly_cap=asked.hourly_cap,
        enabled=asked.enabled,
    )
    return _shown(call, await call.store.write(receivers.add, new, call.address, call.now_ms))


@routes.get("/api/receivers/{receiver_uuid}", Permission.READ)
async def get_receiver(call: TheCall, receiver_uuid: ReceiverUuid) -> api.Receiver:
    """One receiver."""
    return _shown(call, await call.store.read(receivers.get, receiver_uuid))


@routes.patch("/api/receivers/{receiver_uuid}", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER)
async def change_receiver(call: TheCall, receiver_uuid: ReceiverUuid, asked: api.ReceiverChange) -> api.Receiver:
    """Changes a receiver; dispatchers go by it within seconds."""
    found = await call.store.read(receivers.get, receiver_uuid)
    kind = _permitted(call, found.kind)
    secrets = None
    if asked.secrets is not None:
        kept = {name: secret.reveal() for name, secret in _opened(call, found).items()}
        secrets = _checked(call, SECRETS.get(kind, NoSecrets), _merged(kept, asked.secrets), "secrets")
    config = None
    if asked.config is not None:
        config = await _config(call, kind, asked.config)
    wanted = ReceiverChange(
        name=None if asked.name is None else _name(asked.name),
        enabled=asked.enabled,
        config=config,
        sealed=None if secrets is None else _sealed(call, receiver_uuid, secrets),
        without_secrets=secrets is not None and not secrets,
        language=asked.language,
        hourly_cap=asked.hourly_cap,
        without_cap="hourly_cap" in asked.model_fields_set and asked.hourly_cap is None,
    )
    changed = await call.store.write(receivers.change, receiver_uuid, wanted, call.address, call.now_ms)
    return _shown(call, changed)


@routes.delete("/api/receivers/{receiver_uuid}", Permission.MANAGE_DELIVERIES, status_code=204, repeat=Repeat.ANSWER)
async def remove_receiver(call: TheCall, receiver_uuid: ReceiverUuid) -> None:
    """Removes a receiver. What was on its way to it is given up."""
    found = await call.store.read(receivers.get, receiver_uuid)
    _permitted(call, found.kind)
    await call.store.write(receivers.remove, receiver_uuid, call.address, call.now_ms)


@routes.post(
    "/api/receivers/{receiver_uuid}/test", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=202
)
async def try_receiver(call: TheCall, receiver_uuid: ReceiverUuid) -> api.TrialStarted:
    """Sends a trial to a receiver: a message, or to an archive a small file. See what became of its delivery."""
    delivery_uuid = str(uuid_utils.uuid7())
    await call.store.write(receivers.queue_trial, receiver_uuid, delivery_uuid, call.address, call.now_ms)
    return api.TrialStarted(delivery_uuid=delivery_uuid)


def _permitted(call: Call, kind_name: str) -> ReceiverKind:
    kind = ReceiverKind(kind_name)
    if kind in SYSTEM_KINDS and not call.principal.may(Permission.MANAGE_SYSTEM):
        raise Forbidden(
            f"a receiver of kind {kind} reaches what is on the server itself; only a system administrator may "
            "manage one",
            reason="receiver_needs_admin",
        )
    if kind not in CONFIGS:
        raise BadInput(f"receivers of kind {kind} are not part of this version", reason="receiver_kind")
    return kind


def _name(asked: str) -> str:
    name = asked.strip()
    if not is_name(name):
        raise BadInput("the name is empty or holds characters that can't be shown", reason="receiver_name")
    return name


def _checked(call: Call, model: type[BaseModel], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values as their kind's model takes them; None is left out."""
    try:
        return model.model_validate(dict(given)).model_dump(mode="json", exclude_none=True)
    except ValidationError as error:
        # Never the input itself: it may be a secret in the wrong place.
        problems = error.errors()
        named = [problem_in_words(field_of(one, where), one, call.language) for one in problems]
        if any(one["type"] in ("extra_forbidden", "missing") and len(one["loc"]) == 1 for one in problems):
            named.append(known_fields(model.model_fields, call.language))
        said = "; ".join(named)[:500]
        raise BadInput(said, reason="receiver_fields", fields=named[:10], named=said) from None


async def _config(call: Call, kind: ReceiverKind, given: Mapping[str, Any]) -> str:
    checked = _checked(call, CONFIGS[kind], given, "config")
    if kind is ReceiverKind.FOLDER:
        # Said now and not with the first picture. In a thread: the disk may be a share that hangs.
        await asyncio.to_thread(check_allowed, checked["path"], call.web.settings.archive.folders)
    return json.dumps(checked, ensure_ascii=False)


def _merged(kept: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Secrets after a change: those that are not named stay, null removes."""
    return {name: value for name, value in {**kept, **asked}.items() if value is not None}


def _sealed(call: Call, receiver_uuid: str, secrets: Mapping[str, Any]) -> Sealed | None:
    if not secrets:
        return None
    for value in secrets.values():
        Secret(str(value))  # known from now on, so no log line shows it
    key = call.web.secrets.credential_keys
    plain = json.dumps(secrets, ensure_ascii=False).encode()
    return seal(key, call.principal.tenant_id, secrets_of(receiver_uuid), plain)


def _opened(call: Call, found: StoredReceiver) -> dict[str, Secret]:
    if found.sealed is None:
        return {}
    key = call.web.secrets.credential_keys
    plain = open_sealed(key, found.tenant_id, secrets_of(found.receiver_uuid), found.sealed)
    return {name: Secret(str(value)) for name, value in json.loads(plain).items()}


def _shown(call: Call, found: StoredReceiver) -> api.Receiver:
    manages = call.principal.may(Permission.MANAGE_DELIVERIES)
    return api.Receiver.model_validate(
        {
            "receiver_uuid": found.receiver_uuid,
            "name": found.name,
            "kind": found.kind,
            "enabled": found.enabled,
            "language": found.language,
            "hourly_cap": found.hourly_cap,
            "config": json.loads(found.config) if manages else None,
            "secrets": _secret_states(call, found) if manages else None,
            "created_at": found.created_at,
            "updated_at": found.updated_at,
            "last_ok_at": found.last_ok_at,
            "last_error": found.last_error if manages else None,
            "last_error_at": found.last_error_at if manages else None,
        }
    )


def _secret_states(call: Call, found: StoredReceiver) -> dict[str, api.SecretState]:
    model = SECRETS.get(ReceiverKind(found.kind), NoSecrets)
    there = _opened(call, found)
    return {name: api.SecretState(is_set=name in there) for name in model.model_fields}
