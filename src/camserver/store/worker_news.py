"""What workers say of cameras' streams that nothing is decided by; for people to see."""

import json
from dataclasses import dataclass

from camserver.domain.phrases import WATCHED_LIVE
from camserver.store import look_pauses
from camserver.store.leases import Claim, changed, claimed
from camserver.store.tx import Tx

MESSAGE_MAX_CHARS = 255


@dataclass(frozen=True, slots=True)
class StreamFault:
    """One of a camera's two streams failed while the other did its work. `over_at`: when it was back, None before."""

    stream: str  # main, sub
    fault: str
    message: str
    at: int
    over_at: int | None = None

    @property
    def is_for_everybody(self) -> bool:
        """Whether it explains to whoever sees the camera why there are no pictures of it now."""
        return self.fault == WATCHED_LIVE and self.over_at is None


async def stream_failed(tx: Tx, claim: Claim, stream: str, fault: str, message: str, now_ms: int) -> bool:
    """False when the claim does not hold."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    await _keep(tx, session["camera_key"], StreamFault(stream, fault, message[:MESSAGE_MAX_CHARS], now_ms))
    if fault == WATCHED_LIVE:
        await look_pauses.begin(tx, session, fault, now_ms)
    changed(tx, session["camera_key"], session, now_ms)
    return True


async def stream_back(tx: Tx, claim: Claim, stream: str, now_ms: int) -> bool:
    """The same; the fault stays known, as one that is over."""
    session = await claimed(tx, claim)
    if session is None:
        return False
    # Whichever stream it is, there was a picture of it.
    await look_pauses.end(tx, [session["camera_key"]], now_ms)
    fault = parse_fault(session["stream_fault"])
    if fault is not None and fault.stream == stream and fault.over_at is None:
        over = StreamFault(fault.stream, fault.fault, fault.message, fault.at, now_ms)
        await _keep(tx, session["camera_key"], over)
        changed(tx, session["camera_key"], session, now_ms)
    return True


async def _keep(tx: Tx, camera_key: int, fault: StreamFault) -> None:
    plain = {
        "stream": fault.stream,
        "fault": fault.fault,
        "message": fault.message,
        "at": fault.at,
        "over_at": fault.over_at,
    }
    await tx.run(
        "UPDATE camera_sessions SET stream_fault = :stream_fault WHERE camera_key = :camera_key",
        camera_key=camera_key,
        stream_fault=json.dumps(plain, ensure_ascii=False),
    )


def parse_fault(text: str | None) -> StreamFault | None:
    return None if text is None else StreamFault(**json.loads(text))
