"""What an exported case is made of: the names of its files and the shape of its manifest.

A ZIP with pictures, clips, tables and a page to read. `manifest.json` names every other file with size and hash, and
what is missing; `manifest.sha256` holds its hash for tools, `manifest.sig` its signature.
"""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

FORMAT: Final = "camserver case 1"
MANIFEST = "manifest.json"
MANIFEST_HASH = "manifest.sha256"
MANIFEST_SIGNATURE = "manifest.sig"
# Those the manifest can't name.
UNNAMED = frozenset({MANIFEST, MANIFEST_HASH, MANIFEST_SIGNATURE})


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FileLine(_Shape):
    path: str
    bytes: int
    sha256: str


class MissingLine(_Shape):
    """Something of the case that is not in the file."""

    kind: Literal["frame", "event", "clip", "picture"]
    uuid: str
    reason: str  # gone: deleted before; no_object: the row is there, the object is not; unreadable; out_of_reach
    path: str = ""  # where it would be


class AuditLine(_Shape):
    at: int
    actor_kind: str
    actor: str
    action: str
    details: dict[str, Any] | None
    address: str


class Manifest(_Shape):
    format: Literal["camserver case 1"] = FORMAT
    case_uuid: str
    title: str
    exported_at: int
    exported_by: str
    camserver_version: str
    public_key: str  # Ed25519, hex
    files: list[FileLine]
    missing: list[MissingLine]
    audit: list[AuditLine]


class Signature(_Shape):
    algorithm: Literal["Ed25519"] = "Ed25519"
    public_key: str
    signature: str  # of the bytes of manifest.json
