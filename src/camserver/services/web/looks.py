"""Who looked at evidence of a case: written into the audit log of the case before it is sent."""

from camserver.services.web.calls import Call
from camserver.store import cases


async def note_look(call: Call, what: str, uuid: str, in_case: bool) -> None:
    """`what` is the kind of picture, or clip; `uuid` the frame's, of a clip its event's."""
    if in_case:
        await call.store.write(cases.note_look, what, uuid, call.address, call.now_ms)
