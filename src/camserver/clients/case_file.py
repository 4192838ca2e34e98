"""Checks an exported case: is every file what the manifest says, and was the manifest signed by whom one thinks?

Reads the ZIP piece by piece and believes nothing of it. A key inside the file proves nothing, since whoever forges a
file can put one in: it is compared with the key of this installation, or with one that was brought along.
"""

import hashlib
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from camserver.base import signing
from camserver.base.errors import BadInput
from camserver.wire.case_file import MANIFEST, MANIFEST_HASH, MANIFEST_SIGNATURE, UNNAMED, Manifest, Signature

MANIFEST_MAX_BYTES = 500_000_000
SMALL_MAX_BYTES = 100_000
_CHUNK_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it should be. `kind` is stable: changed, missing, added, unsigned, forged, unknown_key, …"""

    kind: str
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    manifest: Manifest | None
    fingerprint: str  # of the key it is signed with; empty when there is none
    differences: tuple[Difference, ...]


def check_case_file(path: Path, trusted_key: str | None) -> Checked:
    """`trusted_key` is the public key (hex) that the file should be signed with; None: none is known."""
    try:
        with zipfile.ZipFile(path) as file:
            return _checked(file, trusted_key)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        return Checked(None, "", (Difference("no_zip", path.name, f"the file can't be read as a ZIP ({error})"),))


def _checked(file: zipfile.ZipFile, trusted_key: str | None) -> Checked:
    names = [info.filename for info in file.infolist()]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    differences = [Difference("added", name, f"{name} is in the file twice") for name in twice]
    text = _small(file, MANIFEST, MANIFEST_MAX_BYTES)
    if text is None:
        return Checked(None, "", (Difference("missing", MANIFEST, "there is no manifest; this is no export"),))
    fingerprint, about_key = _key_differences(file, text, trusted_key)
    differences += about_key
    try:
        manifest = Manifest.model_validate_json(text)
    except ValidationError as error:
        broken = Difference("changed", MANIFEST, f"the manifest is not one ({error.error_count()} errors)")
        return Checked(None, fingerprint, (*differences, broken))
    differences += _file_differences(file, manifest, set(names))
    return Checked(manifest, fingerprint, tuple(differences))


def _key_differences(file: zipfile.ZipFile, text: bytes, trusted_key: str | None) -> tuple[str, list[Difference]]:
    found: list[Difference] = []
    noted = _small(file, MANIFEST_HASH, SMALL_MAX_BYTES)
    if noted is None or noted.split()[:1] != [hashlib.sha256(text).hexdigest().encode()]:
        found.append(Difference("changed", MANIFEST_HASH, "it does not hold the manifest's hash"))
    signed = _small(file, MANIFEST_SIGNATURE, SMALL_MAX_BYTES)
    try:
        signature = None if signed is None else Signature.model_validate_json(signed)
    except ValidationError:
        signature = None
    if signature is None:
        return "", [*found, Difference("unsigned", MANIFEST_SIGNATURE, "the manifest is not signed")]
    if not signing.is_signed(signature.public_key, signature.signature, text):
        return "", [*found, Difference("forged", MANIFEST, "the signature is not one of this manifest")]
    fingerprint = signing.fingerprint(signature.public_key)
    if trusted_key is None:
        message = f"signed with the key {fingerprint}, and there is none to compare it with; give it with --key"
        found.append(Difference("unknown_key", MANIFEST_SIGNATURE, message))
    elif signature.public_key != trusted_key:
        message = f"signed with the key {fingerprint}, expected was {signing.fingerprint(trusted_key)}"
        found.append(Difference("other_key", MANIFEST_SIGNATURE, message))
    return fingerprint, found


def _file_differences(file: zipfile.ZipFile, manifest: Manifest, names: set[str]) -> Iterator[Difference]:
    expected = {line.path: line for line in manifest.files}
    for path, line in expected.items():
        if path not in names:
            yield Difference("missing", path, f"{path} is not in the file")
            continue
        problem = _problem(file, path, line.bytes, line.sha256)
        if problem:
            yield Difference("changed", path, f"{path} {problem}")
    for path in sorted(names - expected.keys() - UNNAMED):
        yield Difference("added", path, f"{path} is in the file, and the manifest does not name it")


def _problem(file: zipfile.ZipFile, path: str, size_bytes: int, sha256: str) -> str:
    digest, count = hashlib.sha256(), 0
    try:
        with file.open(path) as entry:
            while part := entry.read(_CHUNK_BYTES):
                digest.update(part)
                count += len(part)
                if count > size_bytes:
                    return f"is longer than {size_bytes} bytes"
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        return f"can't be read ({error})"
    if count < size_bytes:
        return f"has {count} bytes instead of {size_bytes}"
    return "" if digest.hexdigest() == sha256 else "has another content"


def _small(file: zipfile.ZipFile, name: str, max_bytes: int) -> bytes | None:
    try:
        with file.open(name) as entry:
            data = entry.read(max_bytes + 1)
    except (KeyError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError):
        return None
    return data if len(data) <= max_bytes else None
