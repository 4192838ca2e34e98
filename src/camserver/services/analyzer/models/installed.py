"""The models that are installed: a folder for each version, and a file that names the one in use.

    models/<name>/<version>/   a bundle, as it was checked
    models/active.json         {"name": ..., "version": ...}

Both appear whole or not at all, also when the power fails. Files are read and written here: work for a thread.
"""

import json
import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from camserver.base import assets
from camserver.base.errors import Conflict, DataUnusable, ModelUnusable, NotFound
from camserver.base.folders import sync, write_whole
from camserver.services.analyzer.models.bundle import Bundle, read_bundle
from camserver.services.analyzer.models.manifest import MANIFEST, NAME, SIGNATURE, VERSION, number_of

_STAGING = ".staging-"
_STAGING_AGE_SEC_MAX = 86_400
_ACTIVE_BYTES_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Pointer:
    """Names an installed model."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def number(self) -> tuple[int, ...]:
        return number_of(self.version)


class InstalledModels:
    def __init__(self, data_dir: Path, bytes_max: int) -> None:
        self._folder = assets.models_folder(data_dir)
        self._active_file = assets.active_model_file(data_dir)
        self._bytes_max = bytes_max

    def all(self) -> list[Pointer]:
        """By name, newest version first."""
        folders = [path.parent for path in self._folder.glob(f"*/*/{MANIFEST}")]
        found = [pointer_to(folder.parent.name, folder.name) for folder in folders]
        whole = [one for one in found if one is not None]
        whole.sort(key=lambda one: one.number, reverse=True)
        return sorted(whole, key=lambda one: one.name)

    def read(self, pointer: Pointer) -> Bundle:
        """All its files, checked again. ModelUnusable when they are not what they were."""
        folder = self._place(pointer)
        if not folder.is_dir():
            raise NotFound(f"the model {pointer} is not installed; `camserver models list` shows which are")
        bundle = read_bundle(folder, self._bytes_max)
        if (bundle.manifest.name, bundle.manifest.version) != (pointer.name, pointer.version):
            raise ModelUnusable(f"the model {pointer} can't be used: its {MANIFEST} is that of {bundle.title}")
        return bundle

    def add(self, bundle: Bundle) -> Pointer:
        """Installs a bundle that was checked. The same one once more changes nothing."""
        pointer = Pointer(bundle.manifest.name, bundle.manifest.version)
        place = self._place(pointer)
        try:
            if place.is_dir():
                self._check_same(pointer, bundle)
                return pointer
            place.parent.mkdir(parents=True, exist_ok=True)
            self._sweep()
            try:
                self._write(bundle, place)
            except OSError:
                if not place.is_dir():
                    raise
                self._check_same(pointer, bundle)  # another process was quicker
        except OSError as error:
            raise DataUnusable(f"the model {pointer} can't be kept in {place}: {error.strerror or error}") from error
        return pointer

    def remove(self, pointer: Pointer) -> None:
        if pointer == self.active():
            raise Conflict(f"the model {pointer} is in use; choose another first with `camserver models use`")
        place = self._place(pointer)
        if not place.is_dir():
            raise NotFound(f"the model {pointer} is not installed; `camserver models list` shows which are")
        # Renamed first: half a model never stands where a whole one is expected.
        doomed = tempfile.mkdtemp(prefix=_STAGING, dir=self._folder)
        place.rename(Path(doomed) / "model")
        shutil.rmtree(doomed)

    def active(self) -> Pointer | None:
        """The model in use; None: the one that comes with camserver. ModelUnusable when the file says neither."""
        try:
            with self._active_file.open("rb") as file:
                said: Any = json.loads(file.read(_ACTIVE_BYTES_MAX))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise self._names_none(str(error)) from error
        pointer = pointer_to(said.get("name"), said.get("version")) if isinstance(said, dict) else None
        if pointer is None:
            raise self._names_none("it holds something else")
        return pointer

    def _names_none(self, cause: str) -> ModelUnusable:
        return ModelUnusable(
            f"{self._active_file} does not name a model ({cause}); choose one with `camserver models use`"
        )

    def active_stamp(self) -> object:
        """Differs whenever the model in use was chosen anew, the same one too."""
        try:
            about = self._active_file.stat()
        except FileNotFoundError:
            return None
        return (about.st_ino, about.st_mtime_ns, about.st_size)

    def use(self, pointer: Pointer | None) -> None:
        """From now on this one; None: the one that comes with camserver."""
        try:
            if pointer is None:
                self._active_file.unlink(missing_ok=True)
            else:
                self._point_at(pointer)
        except OSError as error:
            raise DataUnusable(f"{self._active_file} can't be written: {error.strerror or error}") from error

    def forget_old(self, name: str, keep: int) -> None:
        """Keeps the newest versions of a model and the one in use."""
        versions = [one for one in self.all() if one.name == name]
        for old in versions[keep:]:
            if old != self.active():
                self.remove(old)

    def _place(self, pointer: Pointer) -> Path:
        return self._folder / pointer.name / pointer.version

    def _check_same(self, pointer: Pointer, bundle: Bundle) -> None:
        if (self._place(pointer) / MANIFEST).read_bytes() != bundle.manifest_content:
            raise Conflict(f"another model {pointer} is installed; a changed model needs a version of its own")
        self.read(pointer)

    def _sweep(self) -> None:
        """Removes what installations left that were broken off; one that runs now is younger."""
        for left in self._folder.glob(f"{_STAGING}*"):
            with suppress(FileNotFoundError):  # it was that of an installation which is done now
                if time.time() - left.stat().st_mtime > _STAGING_AGE_SEC_MAX:
                    shutil.rmtree(left, ignore_errors=True)

    def _write(self, bundle: Bundle, place: Path) -> None:
        staging = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._folder))
        try:
            files = {**bundle.contents, MANIFEST: bundle.manifest_content}
            if bundle.signature is not None:
                files[SIGNATURE] = bundle.signature
            for name, content in files.items():
                _write_durably(staging / name, content)
            sync(staging)
            staging.chmod(0o755)
            staging.rename(place)
            sync(place.parent)
            sync(self._folder)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise

    def _point_at(self, pointer: Pointer) -> None:
        text = json.dumps({"name": pointer.name, "version": pointer.version})
        write_whole(self._active_file, text.encode())


def pointer_to(name: object, version: object) -> Pointer | None:
    """None when the two can't name a model; they become parts of a path."""
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    return Pointer(name, version) if re.match(NAME, name) and re.match(VERSION, version) else None


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
