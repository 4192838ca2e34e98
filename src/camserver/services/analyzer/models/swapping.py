"""Exchanges the model while requests run, when another one is chosen.

The choice is a file (`InstalledModels.use`), looked at every few seconds. The new model is loaded and tried beside
the old one; only then new pictures go to it, while those under way are finished by the old one. A model that does not
load changes nothing but the warnings, and is tried again when it is chosen again.
"""

import asyncio
from collections.abc import Callable, Sequence

from camserver.base.cancelling import go_on_unless_cancelled
from camserver.base.clock import Clock
from camserver.base.errors import CamError
from camserver.base.log import get_logger
from camserver.config import Settings
from camserver.services.analyzer.detector import Detector, InForce
from camserver.services.analyzer.models.loading import installed_models, load

log = get_logger(__name__)

LOOK_EVERY_SEC = 2.0

Replace = Callable[[Sequence[Detector]], None]


class Swapping:
    """`replace` is given the detectors that new pictures go to. Made before the first model is loaded, so that a
    choice in between is not missed."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._models = installed_models(settings)
        self._stamp = self._models.active_stamp()

    async def run(self, replace: Replace, in_force: InForce) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_EVERY_SEC)
            try:
                await self.look(replace, in_force)
            except Exception as error:
                # Whatever it is, pictures go on being analyzed with the model that is there.
                go_on_unless_cancelled()
                log.exception("looking for another model failed", cause=str(error))

    async def look(self, replace: Replace, in_force: InForce) -> None:
        """Once."""
        stamp = await asyncio.to_thread(self._models.active_stamp)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            await self._swap(replace, in_force)
        except CamError as error:
            go_on_unless_cancelled()
            kept = f"{in_force.model.name} {in_force.model.version}"
            log.error("the chosen model can't be loaded", stays=kept, cause=error.message)
            in_force.model_warnings = (f"the chosen model can't be loaded, {kept} stays in use: {error.message}",)

    async def _swap(self, replace: Replace, in_force: InForce) -> None:
        pointer = await asyncio.to_thread(self._models.active)
        loaded = await asyncio.to_thread(load, self._settings, stand_in=pointer is None)
        replace(loaded.detectors)
        in_force.model, in_force.model_warnings = loaded.model, loaded.warnings
        log.info("another model in force", model=loaded.model.name, version=loaded.model.version)
