"""Where objects lie. Keys of pictures follow from their frame (domain/picture_keys.py)."""

import secrets

from camserver.base.errors import BadInput
from camserver.domain.picture_keys import DAY_MS as DAY_MS
from camserver.domain.picture_keys import Kind as Kind
from camserver.domain.picture_keys import epoch_prefix as epoch_prefix
from camserver.domain.picture_keys import frame_key as frame_key

# In the name of an object that is still being written.
DRAFT_MARK = ".draft-"


def errand_key(epoch_id: int, tenant_id: int, now_ms: int, errand_uuid: str, content_type: str) -> str:
    """Where the answer to an errand lies; a new place each time. Rows of errands and clips store their keys."""
    suffix = {"image/jpeg": "jpg", "video/mp4": "mp4"}[content_type]
    mark = secrets.token_hex(4)
    return f"{epoch_prefix(epoch_id)}t{tenant_id}/errands/d{now_ms // DAY_MS}/{errand_uuid}.{mark}.{suffix}"


def is_draft(key: str) -> bool:
    return DRAFT_MARK in key


def frame_uuid_of(key: str) -> str:
    """The frame a key belongs to."""
    return key.rpartition("/")[2].partition(".")[0]


def check_key(key: str) -> None:
    """Raises BadInput for what is no key: it could lead out of the place where objects live, or hide there."""
    parts = key.split("/")
    if not all(parts) or any(part.startswith(".") for part in parts) or "\0" in key:
        raise BadInput(f"{key!r} is no object key", reason="no_object_key")


def check_prefix(prefix: str) -> None:
    if not prefix.endswith("/"):
        raise BadInput(f"{prefix!r} is no prefix of object keys: it must end in a slash")
    check_key(prefix.removesuffix("/"))


def check_range(begin: int, length: int) -> None:
    if begin < 0 or length < 0:
        raise BadInput(f"{length} bytes from {begin} on are no part of an object")
