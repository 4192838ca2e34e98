"""Turns a stored intent into the message that carries it: settings put in, credentials opened.

The only place where a camera's password exists in the clear on the server, and it goes nowhere but into START and the
ERRAND of a probe.
"""

import base64
import json
from dataclasses import dataclass

from pydantic import ValidationError

from camserver.base.credentials import Keys, Sealed, open_sealed
from camserver.base.errors import DataUnusable
from camserver.base.secrets import Secret
from camserver.domain.gate import GatePolicy
from camserver.domain.looks import LookPolicy
from camserver.store.errand_orders import ErrandOrder
from camserver.store.intents import StartIntent, StopIntent
from camserver.wire.message import Message, problems
from camserver.wire.worker import MESSAGE_MAX_BYTES, Errand, LookParams, Source, Start, Stop


@dataclass(frozen=True, slots=True)
class _Login:
    user: str | None = None
    password: Secret | None = None


@dataclass(frozen=True, slots=True)
class Orders:
    """What START needs beside the intent."""

    looks: LookPolicy
    gate: GatePolicy
    credential_key: Keys

    def start(self, intent: StartIntent) -> Start:
        """The START of a camera, or DataUnusable when what is stored of it makes none."""
        login = self._login(intent.tenant_id, intent.camera_id, intent.credentials)
        try:
            start = Start(
                intent_id=intent.intent_id,
                camera_id=intent.camera_id,
                generation=intent.generation,
                source=_source(intent.source_type, intent.url, login),
                sub=None if intent.sub_url is None else _source(intent.sub_type, intent.sub_url, login),
                params=self._params(intent),
                next_seq=intent.next_seq,
                next_attempt_at=intent.next_attempt_at,
                failures=intent.failures,
                auth_failures=intent.auth_failures,
                credential_version=intent.credential_version,
                gate_state=None if intent.gate_state is None else base64.b64encode(intent.gate_state).decode(),
            )
        except ValidationError as error:
            raise DataUnusable(
                f"camera {intent.camera_id} can't be started as it is stored ({problems(error)}); correct its "
                "settings"
            ) from None
        if _is_too_long(start):
            # What the gate has learned is only a head start.
            start = start.model_copy(update={"gate_state": None})
            if _is_too_long(start):
                raise DataUnusable(
                    f"camera {intent.camera_id} can't be started: its masks and zones have too many points"
                )
        return start

    def _login(self, tenant_id: int, owner: str, sealed: Sealed | None) -> _Login:
        """`owner` is what the credentials were sealed for: a camera, or an errand."""
        if sealed is None:
            return _Login()
        stored = json.loads(open_sealed(self.credential_key, tenant_id, owner, sealed))
        return _Login(stored.get("user"), None if stored.get("password") is None else Secret(stored["password"]))

    def _params(self, intent: StartIntent) -> LookParams:
        own = intent.overrides
        connect_timeout_sec = (
            self.looks.connect_timeout_vpn_sec if intent.network_zone == "vpn" else self.looks.connect_timeout_sec
        )
        values: dict[str, object] = {
            "polling_interval_sec": own.polling_interval_sec or self.looks.polling_interval_sec,
            "infer_width": own.infer_width or self.looks.infer_width,
            "diff_width": own.diff_width or self.looks.diff_width,
            "connect_timeout_sec": own.connect_timeout_sec or connect_timeout_sec,
            "force_infer_every_n": own.force_infer_every_n or self.gate.force_infer_every_n,
            "detect_every_n_frames": own.detect_every_n_frames or self.gate.detect_every_n_frames,
            "do_not_process": intent.do_not_process,
            "tls_pin": own.tls_pin,
            "device": own.device or "",
            "streams_max": own.streams_max,
        }
        # Those whose default the message itself has.
        values |= {
            name: value
            for name, value in (("transport", own.transport), ("rotation", own.rotation), ("clip_sec", own.clip_sec))
            if value is not None
        }
        values |= {
            name: bool(value)
            for name, value in (("mask_clock", own.mask_clock), ("live_sound", own.live_sound))
            if value is not None
        }
        values |= {
            name: json.loads(text)
            for name, text in (
                ("ignore_masks", own.ignore_masks),
                ("privacy_masks", own.privacy_masks),
                ("zones", own.zones),
            )
            if text is not None
        }
        # From JSON, because what came from JSON columns has lists where the message has tuples.
        return LookParams.model_validate_json(json.dumps(values))

    def errand(self, order: ErrandOrder, now_ms: int) -> Errand:
        """The message that sends a worker on an errand, or DataUnusable when it can't be made."""
        request = json.loads(order.request)
        asked = request.pop("source", None)
        try:
            source = None
            if order.url is not None and order.camera_id is not None:
                login = self._login(order.tenant_id, order.camera_id, order.camera_credentials)
                source = _source(order.source_type, order.url, login)
            elif asked is not None:
                login = self._login(order.tenant_id, order.errand_uuid, order.credentials)
                source = _source(asked["type"], asked["url"], login)
            errand = Errand.model_validate(
                {
                    "errand_id": order.errand_uuid,
                    "kind": order.kind,
                    "camera_id": order.camera_id,
                    "generation": order.generation,
                    "source": source,
                    "params": request,
                    "left_ms": max(order.expires_at - now_ms, 0),
                }
            )
        except ValidationError as error:
            raise DataUnusable(
                f"errand {order.errand_uuid} can't be sent as it is stored ({problems(error)})"
            ) from None
        if _is_too_long(errand):
            raise DataUnusable(f"errand {order.errand_uuid} can't be sent: it asks too much at once")
        return errand


def _source(source_type: str | None, url: str, login: _Login) -> Source:
    # The type is checked by the model; the row holds text.
    return Source.model_validate({"type": source_type, "url": url, "user": login.user, "password": login.password})


def _is_too_long(message: Message) -> bool:
    return len(message.model_dump_json().encode()) > MESSAGE_MAX_BYTES


def stop(intent: StopIntent) -> Stop:
    return Stop(
        intent_id=intent.intent_id,
        camera_id=intent.camera_id,
        generation=intent.generation,
        reason=intent.reason or "stop wanted",
    )
