"""A probe of every camera once it is going, by itself: else its codec, size and rate are known only if people ask.

A few at a time, so that many cameras that were imported are not all opened a second time at once. A probe notes when
it was (store/errand_orders.py), whether it succeeded or not, and with that the camera is done.
"""

import json

import uuid_utils

from camserver.store import errands, overrides
from camserver.store.errands import NewErrand
from camserver.store.tx import Row, Tx

# A camera must have been going for so long.
SETTLED_MS = 30_000
TTL_MS = 75_000
MEASURE_SEC = 4.0


async def ask(tx: Tx, most: int, now_ms: int) -> int:
    """Sends the holders of some cameras that were never probed, `most` at a time; how many."""
    found = await tx.all(_UNPROBED, settled_before=now_ms - SETTLED_MS, most=most)
    asked = 0
    for row in found:
        # Read again under its lock: another control process may have asked meanwhile.
        await tx.one(
            "SELECT camera_key FROM cameras WHERE camera_key = :camera_key FOR UPDATE", camera_key=row["camera_key"]
        )
        if await tx.one(_STILL_UNPROBED, camera_key=row["camera_key"]) is None:
            continue
        errand = NewErrand(str(uuid_utils.uuid7()), "probe", json.dumps(_request(row)), now_ms + TTL_MS)
        await errands.add(tx, row["tenant_id"], row["site_id"], row["camera_key"], errand, now_ms)
        asked += 1
    return asked


def _request(row: Row) -> dict[str, object]:
    """The same that people's probes have. Nobody waits for a picture."""
    own = overrides.from_row(row)
    return {
        "stream": "main",
        "transport": own.transport,
        "tls_pin": own.tls_pin,
        "connect_timeout_sec": own.connect_timeout_sec,
        "measure_sec": MEASURE_SEC,
        "device": own.device,
        "streams_max": own.streams_max,
        "hide_picture": True,
    }


_NO_PROBE = """c.last_probe_at IS NULL AND c.deleted_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM errands e WHERE e.camera_key = c.camera_key AND e.kind = 'probe')"""
_UNPROBED = f"""
SELECT c.camera_key, c.tenant_id, c.site_id, {overrides.COLUMNS}
FROM camera_sessions s
JOIN cameras c ON c.camera_key = s.camera_key
LEFT JOIN camera_overrides o ON o.camera_key = c.camera_key
WHERE s.state = 'ACTIVE' AND s.ready_at <= :settled_before AND {_NO_PROBE}
ORDER BY s.ready_at, c.camera_key LIMIT :most"""
_STILL_UNPROBED = f"SELECT c.camera_key FROM cameras c WHERE c.camera_key = :camera_key AND {_NO_PROBE}"
