"""Frames: one row a look. Recording them is a hot path, so looks come in batches and each step is one statement.

A look counts once: UNIQUE(camera, generation, seq). The row of its lease in `camera_leases` is locked first, which
orders recording against a take of the same camera and makes repeats visible without a failed insert.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from camserver.domain.leases import FrameStanding, LeasePolicy, LeaseSpan, judge_frame
from camserver.domain.uploads import Gap, gap_before, without_seq
from camserver.store.epochs import require_alive
from camserver.store.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class Look:
    """A look as control received it. Tenant, site, camera and worker come from the lease, never from the sender."""

    worker_key: int
    tenant_id: int
    site_id: int
    camera_key: int
    generation: int
    seq: int
    frame_uuid: str  # for the row, should there be none yet
    captured_at: int
    worker_at: int
    received_at: int
    collector_status: str  # ok, timeout, error
    verdict: str  # skip, analyze, forced
    priority: int
    error_code: str | None = None
    error_message: str | None = None
    diff_ratio: float | None = None
    luma_delta: float | None = None
    blur_score: float | None = None
    full_w: int | None = None
    full_h: int | None = None
    infer_w: int | None = None
    infer_h: int | None = None
    letterbox: int = 0
    letterbox_top: int | None = None
    letterbox_left: int | None = None
    letterbox_bottom: int | None = None
    letterbox_right: int | None = None
    infer_hash64_hex: str | None = None
    structure: float | None = None
    view_hex: str | None = None
    gate_state: bytes | None = None  # of the worker's gate after this look; not a column of the frame
    epoch_id: int | None = None  # None = no picture
    infer_bytes: int | None = None
    full_bytes: int | None = None

    @property
    def identity(self) -> tuple[int, int, int]:
        return self.camera_key, self.generation, self.seq

    @property
    def wants_analysis(self) -> bool:
        return self.verdict != "skip" and self.infer_bytes is not None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of a look. `frame_uuid` is the row's, which for a repeat is the first one's."""

    standing: FrameStanding
    frame_uuid: str
    repeat: bool = False
    reason: str = ""


async def record(tx: Tx, looks: tuple[Look, ...], policy: LeasePolicy) -> tuple[Recorded, ...]:
    """Records looks and queues the jobs of those that want one. The pictures are already durable (decisions 13)."""
    epoch_ids = sorted({look.epoch_id for look in looks if look.epoch_id is not None})
    if epoch_ids:
        await require_alive(tx, epoch_ids)
    leases = await _lock_leases(tx, looks)
    current = await _current_generations(tx, looks)
    known = await _already_there(tx, looks, leases)
    answers: list[Recorded] = []
    fresh: list[tuple[Look, bool]] = []
    for look in looks:
        lease = leases.get((look.camera_key, look.generation))
        # Only to its own worker is a repeat one: a stranger's look of the same number is another look, and refused.
        if look.identity in known and lease is not None and lease["worker_key"] == look.worker_key:
            answers.append(known[look.identity])
            continue
        answer = _judged(look, lease, current, policy)
        answers.append(answer)
        if answer.standing is not FrameStanding.REFUSED:
            is_late = answer.standing is FrameStanding.LATE
            fresh.append((look, is_late))
            known[look.identity] = Recorded(answer.standing, look.frame_uuid, repeat=True)
    if fresh:
        await tx.many(_INSERT_FRAME, [{**asdict(look), "late": int(late)} for look, late in fresh])
        await _queue_jobs(tx, [look for look, _ in fresh if look.wants_analysis])
        await _note_sequence(tx, [look for look, _ in fresh], leases)
        await _keep_gate_states(tx, [look for look, is_late in fresh if not is_late])
        for look, is_late in fresh:
            if look.wants_analysis and not is_late:
                tx.changed(
                    tenant_id=look.tenant_id,
                    kind="look",
                    at_ms=look.received_at,
                    site_id=look.site_id,
                    camera_key=look.camera_key,
                )
    return tuple(answers)


def _judged(look: Look, lease: Row | None, current: dict[int, int], policy: LeasePolicy) -> Recorded:
    span = None
    if lease is not None:
        span = LeaseSpan(look.generation, lease["worker_key"], lease["granted_at"], lease["ended_at"])
    standing = judge_frame(
        look.worker_key, current.get(look.camera_key, 0), span, look.captured_at, look.received_at, policy
    )
    reason = ""
    if standing is FrameStanding.REFUSED:
        reason = f"generation {look.generation} of this camera was not this worker's at that time"
    return Recorded(standing, look.frame_uuid, reason=reason)


async def _lock_leases(tx: Tx, looks: Iterable[Look]) -> dict[tuple[int, int], Row]:
    rows = await tx.all(
        """
        SELECT camera_key, generation, worker_key, granted_at, ended_at, last_seq FROM camera_leases
        WHERE camera_key IN (:camera_keys...) AND generation IN (:generations...)
        ORDER BY camera_key, generation FOR UPDATE""",
        camera_keys=sorted({look.camera_key for look in looks}),
        generations=sorted({look.generation for look in looks}),
    )
    return {(row["camera_key"], row["generation"]): row for row in rows}


async def _current_generations(tx: Tx, looks: Iterable[Look]) -> dict[int, int]:
    rows = await tx.all(
        "SELECT camera_key, generation FROM camera_sessions WHERE camera_key IN (:camera_keys...)",
        camera_keys=sorted({look.camera_key for look in looks}),
    )
    return {row["camera_key"]: row["generation"] for row in rows}


async def _already_there(
    tx: Tx, looks: Iterable[Look], leases: dict[tuple[int, int], Row]
) -> dict[tuple[int, int, int], Recorded]:
    """The looks that were recorded before. Only one not newer than the newest can be."""
    suspects = [
        look
        for look in looks
        if (lease := leases.get((look.camera_key, look.generation))) is not None and look.seq <= lease["last_seq"]
    ]
    if not suspects:
        return {}
    rows = await tx.all(
        """
        SELECT camera_key, generation, seq, frame_uuid, late FROM frames
        WHERE camera_key IN (:camera_keys...) AND generation IN (:generations...) AND seq IN (:seqs...)""",
        camera_keys=sorted({look.camera_key for look in suspects}),
        generations=sorted({look.generation for look in suspects}),
        seqs=sorted({look.seq for look in suspects}),
    )
    return {
        (row["camera_key"], row["generation"], row["seq"]): Recorded(
            FrameStanding.LATE if row["late"] else FrameStanding.LIVE, row["frame_uuid"], repeat=True
        )
        for row in rows
    }


async def _queue_jobs(tx: Tx, looks: list[Look]) -> None:
    for priority in sorted({look.priority for look in looks}):
        await tx.run(
            _INSERT_JOBS,
            priority=priority,
            frame_uuids=[look.frame_uuid for look in looks if look.priority == priority],
        )


async def _note_sequence(tx: Tx, looks: list[Look], leases: dict[tuple[int, int], Row]) -> None:
    """Raises each lease's highest look and keeps the list of holes."""
    highest = {lease: row["last_seq"] for lease, row in leases.items()}
    before = dict(highest)
    for look in sorted(looks, key=lambda look: look.seq):
        lease = (look.camera_key, look.generation)
        if look.seq <= highest[lease]:
            await _shrink_gap(tx, look)
            continue
        gap = gap_before(highest[lease], look.seq)
        if gap is not None:
            await _insert_gap(tx, look, gap)
        highest[lease] = look.seq
    raised = [
        {"camera_key": lease[0], "generation": lease[1], "seq": seq}
        for lease, seq in sorted(highest.items())
        if seq > before[lease]
    ]
    await tx.many(
        "UPDATE camera_leases SET last_seq = :seq WHERE camera_key = :camera_key AND generation = :generation", raised
    )


async def _keep_gate_states(tx: Tx, looks: list[Look]) -> None:
    """The newest state of each camera's gate, for START. Its version is not raised: no decision depends on it."""
    newest: dict[int, Look] = {}
    for look in sorted(looks, key=lambda look: look.seq):
        if look.gate_state is not None:
            newest[look.camera_key] = look
    await tx.many(
        "UPDATE camera_state SET gate_state = :gate_state WHERE camera_key = :camera_key",
        [{"camera_key": key, "gate_state": look.gate_state} for key, look in sorted(newest.items())],
    )


async def _insert_gap(tx: Tx, look: Look, gap: Gap) -> None:
    await tx.run(
        """
        INSERT INTO frame_gaps (camera_key, generation, first_seq, last_seq, tenant_id, noted_at)
        VALUES (:camera_key, :generation, :first_seq, :last_seq, :tenant_id, :noted_at)""",
        camera_key=look.camera_key,
        generation=look.generation,
        first_seq=gap.first_seq,
        last_seq=gap.last_seq,
        tenant_id=look.tenant_id,
        noted_at=look.received_at,
    )


async def _shrink_gap(tx: Tx, look: Look) -> None:
    row = await tx.one(
        """
        SELECT first_seq, last_seq FROM frame_gaps WHERE camera_key = :camera_key AND generation = :generation
        AND first_seq <= :seq AND last_seq >= :seq""",
        camera_key=look.camera_key,
        generation=look.generation,
        seq=look.seq,
    )
    if row is None:
        return
    gap = Gap(row["first_seq"], row["last_seq"])
    await tx.run(
        """
        DELETE FROM frame_gaps
        WHERE camera_key = :camera_key AND generation = :generation AND first_seq = :first_seq""",
        camera_key=look.camera_key,
        generation=look.generation,
        first_seq=gap.first_seq,
    )
    for rest in without_seq(gap, look.seq):
        await _insert_gap(tx, look, rest)


async def find_recorded(tx: Tx, camera_key: int, generation: int, seq: int) -> Recorded | None:
    """The answer a repeat of this look gets, if it was recorded before: then its picture need not be stored again."""
    row = await tx.one(
        """
        SELECT frame_uuid, late FROM frames
        WHERE camera_key = :camera_key AND generation = :generation AND seq = :seq""",
        camera_key=camera_key,
        generation=generation,
        seq=seq,
    )
    if row is None:
        return None
    return Recorded(FrameStanding.LATE if row["late"] else FrameStanding.LIVE, row["frame_uuid"], repeat=True)


async def with_rows(tx: Tx, epoch_id: int, frame_uuids: tuple[str, ...]) -> frozenset[str]:
    """Which of these frames have their pictures under this epoch; the others' objects there are orphans."""
    rows = await tx.all(
        "SELECT frame_uuid FROM frames WHERE frame_uuid IN (:frame_uuids...) AND epoch_id = :epoch_id",
        frame_uuids=list(frame_uuids),
        epoch_id=epoch_id,
    )
    return frozenset(row["frame_uuid"] for row in rows)


_INSERT_FRAME = """
INSERT INTO frames (
  frame_uuid, tenant_id, site_id, camera_key, generation, seq, captured_at, worker_at, received_at, late,
  collector_status, error_code, error_message, verdict, diff_ratio, luma_delta, blur_score,
  full_w, full_h, infer_w, infer_h, letterbox, letterbox_top, letterbox_left, letterbox_bottom, letterbox_right,
  infer_hash64_hex, structure, view_hex, epoch_id, infer_bytes, full_bytes
) VALUES (
  :frame_uuid, :tenant_id, :site_id, :camera_key, :generation, :seq, :captured_at, :worker_at, :received_at, :late,
  :collector_status, :error_code, :error_message, :verdict, :diff_ratio, :luma_delta, :blur_score,
  :full_w, :full_h, :infer_w, :infer_h, :letterbox, :letterbox_top, :letterbox_left, :letterbox_bottom,
  :letterbox_right, :infer_hash64_hex, :structure, :view_hex, :epoch_id, :infer_bytes, :full_bytes
)"""
_INSERT_JOBS = """
INSERT INTO inference_jobs (tenant_id, frame_id, camera_key, captured_at, status, priority, lap, available_at,
  created_at)
SELECT f.tenant_id, f.frame_id, f.camera_key, f.captured_at, 'queued', :priority,
       (SELECT count(*) FROM inference_jobs q
        WHERE q.camera_key = f.camera_key AND q.status IN ('queued','delayed','running'))
       + row_number() OVER (PARTITION BY f.camera_key ORDER BY f.captured_at, f.frame_id) - 1,
       f.received_at, f.received_at
FROM frames f WHERE f.frame_uuid IN (:frame_uuids...) ORDER BY f.captured_at, f.frame_id"""
