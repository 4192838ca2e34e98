"""Snoozes: not to be told for a while."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import snoozes
from camserver.store.snoozes import NewSnooze, SnoozeSummary
from camserver.wire import api

routes = Routes()


@routes.get("/api/snoozes", Permission.READ)
async def list_snoozes(call: TheCall) -> api.SnoozeList:
    """What is silent now, and until when."""
    found = await call.store.read(snoozes.listed, call.now_ms)
    return api.SnoozeList(snoozes=[_shown(one) for one in found])


@routes.post("/api/snoozes", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER, status_code=201)
async def add_snooze(call: TheCall, asked: api.SnoozeAsked) -> api.Snooze:
    """Silences notifications for a while. What is held back is counted, and the next message says how many."""
    new = NewSnooze(
        until=call.now_ms + asked.duration_sec * 1000,
        site=asked.site,
        camera_id=asked.camera_id,
        receiver=asked.receiver_uuid,
        reason=asked.reason,
    )
    return _shown(await call.store.write(snoozes.add, new, call.address, call.now_ms))


@routes.delete("/api/snoozes/{snooze_uuid}", Permission.MANAGE_CAMERAS, status_code=204, repeat=Repeat.ANSWER)
async def end_snooze(call: TheCall, snooze_uuid: Annotated[str, Path(pattern=api.UUID_PATTERN)]) -> None:
    """Ends a snooze now."""
    await call.store.write(snoozes.end, snooze_uuid, call.address, call.now_ms)


def _shown(snooze: SnoozeSummary) -> api.Snooze:
    plain = asdict(snooze)
    return api.Snooze.model_validate({**plain, "receiver_uuid": plain.pop("receiver")})
