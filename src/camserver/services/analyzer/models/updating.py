"""Looks for a newer signed bundle where one is configured, and takes it into use.

What comes from there is believed only when it is whole, signed by a key of the settings, newer than every version of
that model which is installed, and finds its way through a picture. A model that somebody chose by hand stays chosen:
a bundle of another name is installed and not taken into use.
"""

import asyncio
import json
import os
import random
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from camserver.base import assets
from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import CamError, DataUnusable, ModelUnusable, Retry
from camserver.base.folders import write_whole
from camserver.base.log import get_logger
from camserver.clients.bundles import BundleClient
from camserver.config import Settings
from camserver.services.analyzer.detector import InForce
from camserver.services.analyzer.models.bundle import Bundle, read_bundle
from camserver.services.analyzer.models.installed import Pointer, pointer_to
from camserver.services.analyzer.models.loading import installed_models
from camserver.services.analyzer.models.trial import try_out

log = get_logger(__name__)

# The newest, and the one before it to go back to.
KEPT_VERSIONS = 2
STATE_FILE = "update.json"
_STATE_BYTES_MAX = 10_000
_SEC_PER_HOUR = 3600.0
# After a look that did not reach the server, as when both start together; doubled each time.
FIRST_RETRY_SEC = 60.0
JITTER_SHARE = 0.3


class Outcome(StrEnum):
    UNCHANGED = "unchanged"  # nothing newer is there
    INSTALLED = "installed"  # but another model stays in use
    IN_USE = "in_use"


@dataclass(frozen=True, slots=True)
class Update:
    outcome: Outcome
    pointer: Pointer | None = None


def pause_sec(check_hours: float, failures: int, jitter: float) -> float:
    """Until the next look, after so many in a row that reached nobody; `jitter` is in 0..1, so that not all come at
    once."""
    full_sec = check_hours * _SEC_PER_HOUR
    if failures:
        full_sec = min(full_sec, FIRST_RETRY_SEC * 2.0 ** min(failures - 1, 30))
    return full_sec * (1 - JITTER_SHARE * jitter)


def _shown(url: str) -> str:
    """Without what may be a secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class Updating:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._models = installed_models(settings)
        self._folder = assets.models_folder(settings.server.data_dir)

    async def run(self, in_force: InForce) -> None:
        """Looks now and then until cancelled. What goes wrong is logged and shown; the model stays as it is."""
        failures = 0
        while True:
            try:
                await self.look()
                in_force.update_warning = None
                failures = 0
            except CamError as error:
                go_on_unless_cancelled()
                # What is wrong with a bundle stays wrong; a server that is away comes back.
                failures = failures + 1 if isinstance(error, Retry) else 0
                log.warning("no newer model", cause=error.message)
                in_force.update_warning = f"looking for a newer model failed: {error.message}"
            except Exception as error:
                go_on_unless_cancelled()
                log.exception("looking for a newer model failed")
                in_force.update_warning = f"looking for a newer model failed: {type(error).__name__}"
            await self._clock.sleep(pause_sec(self._settings.analyzer.bundle_check_hours, failures, random.random()))

    async def look(self) -> Update:
        """Once. ModelUnusable or Unavailable says what is wrong with what is there."""
        chosen = self._settings.analyzer
        if chosen.bundle_url is None or not chosen.model_keys:
            raise ModelUnusable(
                "no newer model is looked for: set both analyzer.bundle_url and analyzer.model_keys, because only "
                "signed bundles are taken"
            )
        await asyncio.to_thread(self._folder.mkdir, parents=True, exist_ok=True)
        handle, name = await asyncio.to_thread(tempfile.mkstemp, prefix=".download-", dir=self._folder)
        os.close(handle)
        path = Path(name)
        client = BundleClient(self._settings.deliveries.allow_loopback)
        try:
            tag = await asyncio.to_thread(self._known_tag, chosen.bundle_url)
            fetched = await client.fetch(chosen.bundle_url, tag, path, chosen.bundle_max_bytes)
            if fetched is None:
                return Update(Outcome.UNCHANGED)
            try:
                outcome, pointer = await self._take(path)
            except ModelUnusable as error:
                # The file is gone in a moment, and nobody put it there.
                raise ModelUnusable(error.message.replace(str(path), _shown(chosen.bundle_url))) from error
            await asyncio.to_thread(self._remember_tag, chosen.bundle_url, fetched.tag, pointer)
            return Update(outcome, pointer)
        finally:
            await client.close()
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _take(self, path: Path) -> tuple[Outcome, Pointer]:
        chosen = self._settings.analyzer
        bundle = await asyncio.to_thread(read_bundle, path, chosen.bundle_max_bytes, chosen.model_keys)
        offered = Pointer(bundle.manifest.name, bundle.manifest.version)
        newest = await asyncio.to_thread(self._newest, offered.name)
        if newest is not None and offered.number <= newest.number:
            await asyncio.to_thread(self._check_not_older, bundle, offered, newest)
            return Outcome.UNCHANGED, offered
        await try_out(path, chosen.bundle_max_bytes)
        return await asyncio.to_thread(self._install, bundle, offered), offered

    def _newest(self, name: str) -> Pointer | None:
        return next((one for one in self._models.all() if one.name == name), None)

    def _install(self, bundle: Bundle, offered: Pointer) -> Outcome:
        self._models.add(bundle)
        log.info("a newer model is installed", model=offered.name, version=offered.version)
        active = self._models.active()
        if active is not None and active.name != offered.name:
            return Outcome.INSTALLED
        self._models.use(offered)
        self._models.forget_old(offered.name, KEPT_VERSIONS)
        return Outcome.IN_USE

    def _check_not_older(self, bundle: Bundle, offered: Pointer, newest: Pointer) -> None:
        """The same is fine. An older one may be an old bundle that somebody plays again, and is refused."""
        if offered.number < newest.number:
            raise ModelUnusable(
                f"the bundle at analyzer.bundle_url is {offered}, older than {newest}, which is installed; "
                "an older version is taken only by `camserver models use`"
            )
        self._models.add(bundle)  # or Conflict, when it is another one of that version

    def _known_tag(self, url: str) -> str | None:
        """What the server called the bundle that was taken last, if it was this server and the model is here."""
        try:
            with (self._folder / STATE_FILE).open("rb") as file:
                said: Any = json.loads(file.read(_STATE_BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return None  # it only saves a download
        if not isinstance(said, dict) or said.get("url") != url or not isinstance(said.get("etag"), str):
            return None
        is_here = pointer_to(said.get("name"), said.get("version")) in self._models.all()
        return str(said["etag"]) if is_here else None

    def _remember_tag(self, url: str, tag: str | None, pointer: Pointer) -> None:
        path = self._folder / STATE_FILE
        state = {"url": url, "etag": tag, "name": pointer.name, "version": pointer.version}
        try:
            write_whole(path, json.dumps(state).encode())
        except OSError as error:
            raise DataUnusable(f"{path} can't be written: {error.strerror or error}") from error
