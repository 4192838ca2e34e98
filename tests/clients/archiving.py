"""What tests of archives share: receivers and copies."""

import hashlib
from typing import Any

from camserver.base.secrets import Secret
from camserver.domain.archive import Copy
from camserver.domain.deliveries import JsonObject, Receiver, ReceiverKind

DELIVERY = "0198c0de-0000-7000-8000-0000000de11e"
PATH = "camera-archive/2026/11/16/cam_1/20261116T111015.123+0900_0198c0de-0000-7000-8000-000000000001.jpg"


def archive_receiver(kind: ReceiverKind, config: dict[str, Any], **secrets: str) -> Receiver:
    return Receiver(
        receiver_id=7,
        receiver_uuid="0198c0de-0000-7000-8000-00000000ece1",
        tenant_id=1,
        name="archive",
        kind=kind,
        config=config,
        secrets={name: Secret(value) for name, value in secrets.items()},
    )


def copy_of(data: bytes, path: str = PATH, **changes: Any) -> Copy:
    made: dict[str, Any] = {"delivery_uuid": DELIVERY, "sha256": hashlib.sha256(data).hexdigest(), **changes}
    return Copy(path=path, data=data, **made)


async def forget(progress: JsonObject) -> None:
    """For archives that keep no progress."""
    raise AssertionError(f"kept {progress}")
