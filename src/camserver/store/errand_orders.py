"""Errands on their way to a worker and back. An errand is a row until it is answered: any control process that has a
fitting worker's socket sends it, again and again, and only the worker it was sent to may answer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from camserver.base.credentials import Sealed
from camserver.store.epochs import require_alive
from camserver.store.tx import Row, Tx

BATCH = 100
UNANSWERED_MAX = 400
ERROR_MAX_CHARS = 64
# These stay with the worker they were sent to: only that one has what they ask for.
STAYING = frozenset({"clip"})


@dataclass(frozen=True, slots=True)
class Candidate:
    """An errand that somebody should be sent on. `worker_keys` may be: the camera's holder, or whoever is there."""

    errand_id: int
    tenant_id: int
    site_id: int
    worker_key: int | None  # None: any worker of the site
    generation: int | None


@dataclass(frozen=True, slots=True)
class Sending:
    errand_id: int
    worker_key: int
    generation: int | None


@dataclass(frozen=True, slots=True)
class ErrandOrder:
    """An errand that was given to a worker and is not answered yet."""

    errand_uuid: str
    tenant_id: int
    worker_key: int
    kind: str
    request: str  # JSON
    camera_id: str | None
    generation: int | None
    credentials: Sealed | None  # sealed for the errand
    expires_at: int
    # Of the camera, where the errand is a probe of one.
    source_type: str | None = None
    url: str | None = None
    camera_credentials: Sealed | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What became of an answer. A repeat's object is not the row's and can be dropped."""

    recorded: bool
    repeat: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    errand_uuid: str
    ok: bool
    message: str
    result: str  # JSON
    object_key: str | None
    object_bytes: int
    object_type: str
    epoch_id: int | None


# ---------------------------------------------------------------------------------------------------------------
# Out
# ---------------------------------------------------------------------------------------------------------------


async def is_any_open(tx: Tx, now_ms: int) -> bool:
    """Whether there is any errand to send or to wait for: mostly there is none, and this is cheap to know."""
    row = await tx.one(
        "SELECT 1 AS found FROM errands WHERE state IN ('waiting', 'sent') AND expires_at > :now_ms LIMIT 1",
        now_ms=now_ms,
    )
    return row is not None


async def candidates(
    tx: Tx, worker_keys: tuple[int, ...], site_ids: tuple[int, ...], now_ms: int
) -> tuple[Candidate, ...]:
    """Errands that these workers could be sent on: new ones, and those whose worker is not there any more."""
    rows = await tx.all(
        _CANDIDATES, worker_keys=worker_keys, site_ids=site_ids, now_ms=now_ms, staying=sorted(STAYING), batch=BATCH
    )
    return tuple(
        Candidate(row["errand_id"], row["tenant_id"], row["site_id"], row["holder_key"], row["generation"])
        for row in rows
    )


async def send(tx: Tx, sendings: tuple[Sending, ...], now_ms: int) -> None:
    """Gives errands to workers. One that somebody else gave away meanwhile stays where it is."""
    for one in sendings:
        row = await tx.one(
            "SELECT state, worker_key FROM errands WHERE errand_id = :errand_id FOR UPDATE", errand_id=one.errand_id
        )
        if row is None or row["state"] not in ("waiting", "sent"):
            continue
        if row["state"] == "sent" and not await _is_gone(tx, row["worker_key"], one):
            continue
        await tx.run(
            """
            UPDATE errands SET state = 'sent', worker_key = :worker_key, generation = :generation, sent_at = :now_ms
            WHERE errand_id = :errand_id""",
            errand_id=one.errand_id,
            worker_key=one.worker_key,
            generation=one.generation,
            now_ms=now_ms,
        )


async def _is_gone(tx: Tx, worker_key: int, instead: Sending) -> bool:
    """Whether an errand's worker is not the one to ask any more."""
    if instead.generation is not None:
        return worker_key != instead.worker_key
    row = await tx.one("SELECT connected_epoch FROM workers WHERE worker_key = :worker_key", worker_key=worker_key)
    return row is None or row["connected_epoch"] is None


async def unanswered(tx: Tx, worker_keys: tuple[int, ...], now_ms: int) -> tuple[ErrandOrder, ...]:
    """What these workers were sent on and have not answered."""
    rows = await tx.all(_UNANSWERED, worker_keys=worker_keys, now_ms=now_ms, batch=UNANSWERED_MAX)
    return tuple([await _order(tx, row) for row in rows])


async def _order(tx: Tx, row: Row) -> ErrandOrder:
    source: Row | None = None
    if row["kind"] == "probe" and row["camera_key"] is not None:
        source = await _source(tx, row["camera_key"], json.loads(row["request"]).get("stream") or "main")
    return ErrandOrder(
        errand_uuid=row["errand_uuid"],
        tenant_id=row["tenant_id"],
        worker_key=row["worker_key"],
        kind=row["kind"],
        request=row["request"],
        camera_id=row["camera_id"],
        generation=row["generation"],
        credentials=_sealed(row),
        expires_at=row["expires_at"],
        source_type=None if source is None else source["source_type"],
        url=None if source is None else source["url"],
        camera_credentials=None if source is None else _sealed(source),
    )


async def _source(tx: Tx, camera_key: int, stream: str) -> Row | None:
    return await tx.one(
        """
        SELECT f.source_type, f.url, a.key_id, a.nonce, a.ciphertext
        FROM camera_streams f LEFT JOIN camera_auth a ON a.camera_key = f.camera_key
        WHERE f.camera_key = :camera_key AND f.kind = :stream""",
        camera_key=camera_key,
        stream=stream,
    )


def _sealed(row: Row) -> Sealed | None:
    if row["ciphertext"] is None:
        return None
    return Sealed(row["key_id"], bytes(row["nonce"]), bytes(row["ciphertext"]))


# The holder of a camera is its session's worker while the lease lasts. A probe of a camera that nobody holds, and an
# errand without a camera, is anybody's.
_CANDIDATES = """
SELECT e.errand_id, e.tenant_id, e.site_id, s.worker_key AS holder_key, s.generation
FROM errands e
LEFT JOIN camera_sessions s ON s.camera_key = e.camera_key AND s.worker_key IS NOT NULL AND s.state <> 'ORPHANED'
  AND s.lease_expires_at > :now_ms
LEFT JOIN workers w ON w.worker_key = e.worker_key
WHERE e.state IN ('waiting', 'sent') AND e.expires_at > :now_ms AND e.site_id IN (:site_ids...)
  AND (s.worker_key IN (:worker_keys...)
       OR (s.worker_key IS NULL AND (e.camera_key IS NULL OR e.kind = 'probe')))
  AND (e.state = 'waiting' OR (e.kind NOT IN (:staying...) AND (
       (s.worker_key IS NOT NULL AND s.worker_key <> e.worker_key)
       OR (s.worker_key IS NULL AND w.connected_epoch IS NULL))))
ORDER BY e.errand_id LIMIT :batch"""
# Clips may be long on their way, over a thin line and after an outage: those of now go before them, and what people
# ask for goes before all clips.
_UNANSWERED = """
SELECT e.errand_uuid, e.tenant_id, e.worker_key, e.kind, e.request, e.camera_key, e.generation, e.key_id, e.nonce,
  e.ciphertext, e.expires_at, c.camera_id
FROM errands e LEFT JOIN cameras c ON c.camera_key = e.camera_key
WHERE e.state = 'sent' AND e.expires_at > :now_ms AND e.worker_key IN (:worker_keys...)
ORDER BY CASE WHEN e.kind = 'clip' THEN -e.errand_id ELSE -9223372036854775807 + e.errand_id END LIMIT :batch"""


# ---------------------------------------------------------------------------------------------------------------
# Back
# ---------------------------------------------------------------------------------------------------------------


async def expected_from(tx: Tx, tenant_id: int, worker_id: str, errand_uuid: str, now_ms: int) -> Answered | None:
    """What an answer would get, when that is known before its object is stored; None: it is waited for."""
    row = await _asked(tx, tenant_id, worker_id, errand_uuid)
    verdict = _judged(row, now_ms)
    return None if verdict.recorded and not verdict.repeat else verdict


async def answered(tx: Tx, tenant_id: int, worker_id: str, answer: AnswerRow, now_ms: int) -> Answered:
    """Records an answer. Its object is already durable (decision 13)."""
    if answer.epoch_id is not None:
        await require_alive(tx, [answer.epoch_id])
    row = await _asked(tx, tenant_id, worker_id, answer.errand_uuid, " FOR UPDATE")
    verdict = _judged(row, now_ms)
    if row is None or not verdict.recorded or verdict.repeat:
        return verdict
    await tx.run(
        """
        UPDATE errands SET state = :state, message = :message, result = :result, object_key = :object_key,
          object_bytes = :object_bytes, object_type = :object_type, epoch_id = :epoch_id, done_at = :now_ms,
          key_id = NULL, nonce = NULL, ciphertext = NULL
        WHERE errand_id = :errand_id""",
        errand_id=row["errand_id"],
        state="done" if answer.ok else "failed",
        message=answer.message[:255],
        result=answer.result,
        object_key=answer.object_key,
        object_bytes=answer.object_bytes,
        object_type=answer.object_type,
        epoch_id=answer.epoch_id,
        now_ms=now_ms,
    )
    if row["kind"] == "probe" and row["camera_key"] is not None:
        await _note_probe(tx, row["camera_key"], json.loads(answer.result), answer.ok, now_ms)
    return verdict


async def _asked(tx: Tx, tenant_id: int, worker_id: str, errand_uuid: str, lock: str = "") -> Row | None:
    worker = await tx.one(
        "SELECT worker_key FROM workers WHERE tenant_id = :tenant_id AND worker_id = :worker_id",
        tenant_id=tenant_id,
        worker_id=worker_id,
    )
    if worker is None:
        return None
    return await tx.one(
        f"""
        SELECT errand_id, kind, camera_key, state, expires_at FROM errands
        WHERE errand_uuid = :errand_uuid AND tenant_id = :tenant_id AND worker_key = :worker_key{lock}""",
        errand_uuid=errand_uuid,
        tenant_id=tenant_id,
        worker_key=worker["worker_key"],
    )


def _judged(row: Row | None, now_ms: int) -> Answered:
    if row is None:
        return Answered(False, reason="this worker was not sent on that errand")
    if row["state"] in ("done", "failed"):
        return Answered(True, repeat=True)
    if row["state"] != "sent" or row["expires_at"] <= now_ms:
        return Answered(False, reason="the errand's time is over")
    return Answered(True)


async def _note_probe(tx: Tx, camera_key: int, result: object, is_ok: bool, now_ms: int) -> None:
    """What a probe of a camera found out about it, or why it did not (`error`). A probe of one stream leaves what is
    known of the other, and one that failed all that is known."""
    said = result if isinstance(result, dict) else {}
    caps = said.get("caps") if is_ok else {"error": str(said.get("cause") or "other")[:ERROR_MAX_CHARS]}
    if not isinstance(caps, dict):
        return
    row = await tx.one("SELECT caps FROM cameras WHERE camera_key = :camera_key", camera_key=camera_key)
    known = json.loads(row["caps"]) if row is not None and row["caps"] is not None else {}
    known.pop("error", None)
    await tx.run(
        "UPDATE cameras SET caps = :caps, last_probe_at = :now_ms WHERE camera_key = :camera_key",
        camera_key=camera_key,
        caps=json.dumps({**known, **caps}, ensure_ascii=False),
        now_ms=now_ms,
    )


async def named(tx: Tx, epoch_id: int, object_keys: Sequence[str]) -> frozenset[str]:
    """Which of these objects a row of errands or clips points at; the others of that epoch are orphans."""
    rows = await tx.all(
        """
        SELECT object_key FROM errands WHERE epoch_id = :epoch_id AND object_key IN (:object_keys...)
        UNION SELECT object_key FROM clips WHERE epoch_id = :epoch_id AND object_key IN (:object_keys...)""",
        epoch_id=epoch_id,
        object_keys=list(object_keys),
    )
    return frozenset(row["object_key"] for row in rows)
