"""Replacing the key that encrypts stored passwords."""

import asyncio

from camserver.base.credentials import key_id
from camserver.config.credential_keys import replace_key
from camserver.domain.people import Permission
from camserver.services.web import key_rotation
from camserver.services.web.calls import TheCall
from camserver.services.web.routing import Routes
from camserver.store import credentials
from camserver.wire import api

routes = Routes()


@routes.post("/api/credentials/rotate", Permission.MANAGE_SYSTEM)
async def rotate_credentials(call: TheCall, asked: api.RotationAsked) -> api.RotationStep:
    """Makes a new key, unless one is half-way introduced, and moves a bounded number of stored passwords to it.

    The first step has no `cursor`, the others that of the answer before, until it is null.
    """
    web = call.web
    keys = web.secrets.credential_keys
    made = False
    if asked.cursor is None and not await key_rotation.is_unfinished(web.store, keys):
        await asyncio.to_thread(replace_key, web.settings.server)
        await call.store.write(credentials.note_new_key, key_id(keys.sealing), call.address, call.now_ms)
        made = True
    step = await key_rotation.step(web.store, keys, asked.cursor, call.principal, call.address, call.now_ms)
    return api.RotationStep(
        made_key=made,
        key_id=key_id(keys.sealing),
        moved=step.moved,
        unreadable=step.unreadable,
        left=step.left,
        next_cursor=step.cursor,
    )
