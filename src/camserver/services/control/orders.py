"""Turns a stored intent into the message that carries it: settings put in, credentials opened.

The only place where a camera's password exists in the clear on the server, and it goes nowhere but into START and the
ERRAND of a probe.
"""

import base64
import json
from dataclasses import dataclass

from pydantic import ValidationError

from camserver.base.credentials import Sealed, open_sealed
from camserver.base.errors import DataUnusable
from camserver.base.secrets import Secret
from camserver.domain.gate import GatePolicy
from camserver.domain.looks import LookPolicy
from camserver.store.errand_orders import ErrandOrder
from camserver.store.intents import StartIntent, StopIntent
from camserver.wire.worker import (
    MESSAGE_MAX_BYTES,
    Errand,
    LookParams,
    Message,
    Source,
    Start,
    Stop,
    problems,
)


@dataclass(frozen=True, slots=True)
class Orders:
    """What START needs beside the intent."""

    looks: LookPolicy
    gate: GatePolicy
    credential_key: bytes

    def start(self, intent: StartIntent) -> Start:
        """The START of a camera, or DataUnusable when what is stored of it makes none."""
        try:
            start = Start(
                intent_id=intent.intent_id,
                camera_id=intent.camera_id,
                generation=intent.generation,
                source=self._source(intent, intent.source_type, intent.url),
                sub=None if intent.sub_url is None else self._source(intent, intent.sub_type, intent.sub_url),
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

    def _source(self, intent: StartIntent, source_type: str | None, url: str) -> Source:
        return self._opened(source_type, url, intent.tenant_id, intent.camera_id, intent.credentials)

    def _opened(self, source_type: str | None, url: str, tenant_id: int, owner: str, sealed: Sealed | None) -> Source:
        """`owner` is what the credentials were sealed for: a camera, or an errand."""
        user, password = None, None
        if sealed is not None:
            stored = json.loads(open_sealed(self.credential_key, tenant_id, owner, sealed))
            user = stored.get("user")
            password = None if stored.get("password") is None else Secret(stored["password"])
        # The type is checked by the model; the row holds text.
        return Source.model_validate({"type": source_type, "url": url, "user": user, "password": password})

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
        if own.mask_clock is not None:
            values["mask_clock"] = bool(own.mask_clock)
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
                source = self._opened(
                    order.source_type, order.url, order.tenant_id, order.camera_id, order.camera_credentials
                )
            elif asked is not None:
                source = self._opened(
                    asked["type"], asked["url"], order.tenant_id, order.errand_uuid, order.credentials
                )
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


def _is_too_long(message: Message) -> bool:
    return len(message.model_dump_json().encode()) > MESSAGE_MAX_BYTES


def stop(intent: StopIntent) -> Stop:
    return Stop(
        intent_id=intent.intent_id,
        camera_id=intent.camera_id,
        generation=intent.generation,
        reason=intent.reason or "stop wanted",
    )
