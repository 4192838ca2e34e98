"""Turns a stored intent into the message that carries it: settings put in, credentials opened.

The only place where a camera's password exists in the clear on the server, and it goes nowhere but into START.
"""

import base64
import json
from dataclasses import dataclass

from pydantic import ValidationError

from camserver.base.credentials import open_sealed
from camserver.base.errors import DataUnusable
from camserver.base.secrets import Secret
from camserver.domain.gate import GatePolicy
from camserver.domain.looks import LookPolicy
from camserver.store.intents import StartIntent, StopIntent
from camserver.wire.worker import LookParams, Source, Start, Stop, problems


@dataclass(frozen=True, slots=True)
class Orders:
    """What START needs beside the intent."""

    looks: LookPolicy
    gate: GatePolicy
    credential_key: bytes

    def start(self, intent: StartIntent) -> Start:
        """The START of a camera, or DataUnusable when what is stored of it makes none."""
        try:
            return Start(
                intent_id=intent.intent_id,
                camera_id=intent.camera_id,
                generation=intent.generation,
                source=self._source(intent),
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

    def _source(self, intent: StartIntent) -> Source:
        user, password = None, None
        if intent.credentials is not None:
            opened = open_sealed(self.credential_key, intent.tenant_id, intent.camera_id, intent.credentials)
            stored = json.loads(opened)
            user = stored.get("user")
            password = None if stored.get("password") is None else Secret(stored["password"])
        # The type is checked by the model; the row holds text.
        return Source.model_validate(
            {"type": intent.source_type, "url": intent.url, "user": user, "password": password}
        )

    def _params(self, intent: StartIntent) -> LookParams:
        own = intent.overrides
        connect_timeout_sec = (
            self.looks.connect_timeout_vpn_sec if intent.network_zone == "vpn" else self.looks.connect_timeout_sec
        )
        return LookParams(
            polling_interval_sec=own.polling_interval_sec or self.looks.polling_interval_sec,
            infer_width=own.infer_width or self.looks.infer_width,
            diff_width=own.diff_width or self.looks.diff_width,
            connect_timeout_sec=own.connect_timeout_sec or connect_timeout_sec,
            force_infer_every_n=own.force_infer_every_n or self.gate.force_infer_every_n,
            detect_every_n_frames=own.detect_every_n_frames or self.gate.detect_every_n_frames,
            do_not_process=intent.do_not_process,
        )


def stop(intent: StopIntent) -> Stop:
    return Stop(
        intent_id=intent.intent_id,
        camera_id=intent.camera_id,
        generation=intent.generation,
        reason=intent.reason or "stop wanted",
    )
