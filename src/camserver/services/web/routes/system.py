"""The state of the installation as far as its tenant goes, and the API's own description."""

import asyncio
from dataclasses import asdict
from typing import Any

from camserver import __version__
from camserver.config import describe
from camserver.domain.admission import METRICS_KEPT_MS
from camserver.domain.people import Permission
from camserver.domain.progress import analysis_standing
from camserver.services.web.access import Gate
from camserver.services.web.calls import TheCall
from camserver.services.web.live_standing import live_standing
from camserver.services.web.openapi import described
from camserver.services.web.routing import Routes
from camserver.store import counts, streamers, suggestions, viewings
from camserver.wire import api

routes = Routes()


@routes.get("/api/system/status", Permission.READ)
async def status(call: TheCall) -> api.SystemStatus:
    """Load and budget of live view, counts of cameras, sessions and jobs, how analysis gets on, and readiness."""
    found = await call.store.read(counts.count)
    states = await call.web.store.read(streamers.states, call.now_ms)
    asked = await call.web.store.read(streamers.asked_since, call.now_ms - METRICS_KEPT_MS)
    return api.SystemStatus.model_validate(
        {
            **asdict(found),
            **asdict(live_standing(states, call.web.settings.admission)),
            "active_modals": await call.store.read(viewings.count_modals, call.now_ms),
            "modal_requests_24h": asked.requests,
            "modal_rejections_24h": asked.rejections,
            "suggest_active": await call.store.read(suggestions.is_active, call.now_ms),
            "analyzer": {
                "standing": analysis_standing(found.last_done_at, found.oldest_waiting_at, call.now_ms).value,
                "last_done_at": found.last_done_at,
                "oldest_waiting_at": found.oldest_waiting_at,
                "last_error_kind": found.last_error_kind,
            },
            "now": call.now_ms,
            "version": __version__,
            "store": call.web.store.dialect.value,
            "ready": call.web.ready.is_ready,
            "checks": dict(call.web.ready.checks()),
        }
    )


@routes.get("/api/settings", Permission.MANAGE_SYSTEM)
async def settings(call: TheCall) -> api.SettingList:
    """Every setting in force and where it came from, secrets masked. They are changed in the file."""
    # Whether a secret's file is there is asked of the disk.
    shown = await asyncio.to_thread(describe, call.web.settings)
    return api.SettingList(
        settings=[api.Setting.model_validate(asdict(one)) for one in shown],
        warnings=list(call.web.settings.warnings),
    )


@routes.get("/api/openapi.json", Gate.SIGNED_IN, include_in_schema=False)
async def openapi(call: TheCall) -> dict[str, Any]:
    """The description of this API."""
    return described(call.request.scope["app"])
