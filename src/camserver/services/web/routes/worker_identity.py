"""Workers at other sites: tokens for their certificates, and the end of those."""

import asyncio
from typing import Annotated

from fastapi import Path

from camserver.base.errors import Conflict
from camserver.config import worker_ca
from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import worker_identities
from camserver.wire import api
from camserver.wire.enrolment import Token, secret_hash

routes = Routes()

WorkerId = Annotated[str, Path(pattern=api.WORKER_ID_PATTERN)]


@routes.post("/api/workers/enrolments", Permission.MANAGE_WORKERS, repeat=Repeat.SECRET)
async def make_enrolment(call: TheCall, asked: api.EnrolmentAsked) -> api.Enrolment:
    """Makes a one-time token with which a worker at another site gets its certificate. It is shown only here."""
    settings = call.web.settings
    if settings.control.tls_port is None:
        raise Conflict(
            "workers can't connect from other machines yet: set [control] tls_port and tls_names and restart the "
            "server",
            reason="tls_off",
        )
    token = Token.make((await asyncio.to_thread(worker_ca, settings)).sha256)
    ttl_sec = settings.certificates.token_ttl_sec if asked.ttl_sec is None else asked.ttl_sec
    invited = await call.store.write(
        worker_identities.invite,
        secret_hash(token.secret.reveal()),
        asked.site,
        asked.worker_id,
        ttl_sec * 1000,
        call.address,
        call.now_ms,
    )
    return api.Enrolment(
        token=token.text(),
        site=invited.site,
        worker_id=invited.worker_id,
        expires_at=invited.expires_at,
        ca_sha256=token.ca_sha256,
    )


@routes.post("/api/workers/{worker_id}/revoke", Permission.MANAGE_WORKERS, repeat=Repeat.ANSWER)
async def revoke_worker(call: TheCall, worker_id: WorkerId) -> api.WorkerRevoked:
    """Ends a worker's certificates at once: it is disconnected and not let in again."""
    count = await call.store.write(worker_identities.revoke, worker_id, call.address, call.now_ms)
    return api.WorkerRevoked(worker_id=worker_id, certificates=count)
