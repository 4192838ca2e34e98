"""Which objects rows name, page by page, for checking that they are there; and noting those that are not."""

from dataclasses import dataclass

from camserver.domain.people import Principal, Role
from camserver.domain.picture_keys import Kind, frame_key
from camserver.store import audit
from camserver.store.tx import Scoped, Tx

PAGE = 500


@dataclass(frozen=True, slots=True)
class NamedObject:
    """`row_id` is a frame's, or of `kind` clip or errand that one's."""

    row_id: int
    kind: str  # full, infer, clip, errand
    object_key: str


async def pictures(tx: Tx, after_frame_id: int) -> tuple[int | None, tuple[NamedObject, ...]]:
    """Pictures of the next frames, and where to go on; None: these were the last."""
    rows = await tx.all(
        "SELECT frame_id, frame_uuid, tenant_id, camera_key, captured_at, epoch_id, infer_bytes, full_bytes "
        f"FROM frames WHERE frame_id > :after ORDER BY frame_id LIMIT {PAGE}",
        after=after_frame_id,
    )
    found = [
        NamedObject(
            row["frame_id"],
            kind.value,
            frame_key(
                row["epoch_id"], row["tenant_id"], row["camera_key"], row["captured_at"], row["frame_uuid"], kind
            ),
        )
        for row in rows
        if row["epoch_id"] is not None
        for kind in Kind
        if row[f"{kind.value}_bytes"] is not None
    ]
    return (rows[-1]["frame_id"] if len(rows) == PAGE else None), tuple(found)


async def clips(tx: Tx, after_clip_id: int) -> tuple[int | None, tuple[NamedObject, ...]]:
    rows = await tx.all(
        "SELECT clip_id, object_key FROM clips WHERE clip_id > :after AND state = 'ready' "
        f"ORDER BY clip_id LIMIT {PAGE}",
        after=after_clip_id,
    )
    found = tuple([NamedObject(row["clip_id"], "clip", row["object_key"]) for row in rows])
    return (rows[-1]["clip_id"] if len(rows) == PAGE else None), found


async def errands(tx: Tx, after_errand_id: int) -> tuple[int | None, tuple[NamedObject, ...]]:
    """What was fetched on errands and is no clip yet. They live for minutes, so nobody notes their loss."""
    rows = await tx.all(
        "SELECT errand_id, object_key FROM errands WHERE errand_id > :after AND object_key IS NOT NULL "
        f"ORDER BY errand_id LIMIT {PAGE}",
        after=after_errand_id,
    )
    found = tuple([NamedObject(row["errand_id"], "errand", row["object_key"]) for row in rows])
    return (rows[-1]["errand_id"] if len(rows) == PAGE else None), found


async def count(tx: Tx) -> int:
    """Of all three."""
    row = await tx.one(
        "SELECT (SELECT count(infer_bytes) + count(full_bytes) FROM frames WHERE epoch_id IS NOT NULL) "
        "+ (SELECT count(*) FROM clips WHERE state = 'ready') "
        "+ (SELECT count(*) FROM errands WHERE object_key IS NOT NULL) AS n"
    )
    return 0 if row is None else int(row["n"])


async def still_named(tx: Tx, named: tuple[NamedObject, ...]) -> frozenset[NamedObject]:
    """Which of these (a page at most) rows name now: retention may have deleted some since they were read."""
    wanted = {one.kind: [two.row_id for two in named if two.kind == one.kind] for one in named}
    found: set[tuple[str, int]] = set()
    for kind, row_ids in wanted.items():
        table, key, condition = {
            "full": ("frames", "frame_id", "full_bytes IS NOT NULL AND epoch_id IS NOT NULL"),
            "infer": ("frames", "frame_id", "infer_bytes IS NOT NULL AND epoch_id IS NOT NULL"),
            "clip": ("clips", "clip_id", "state = 'ready'"),
        }[kind]
        rows = await tx.all(
            f"SELECT {key} AS row_id FROM {table} WHERE {key} IN (:row_ids...) AND {condition}", row_ids=row_ids
        )
        found |= {(kind, row["row_id"]) for row in rows}
    return frozenset(one for one in named if (one.kind, one.row_id) in found)


async def note_gone(tx: Tx, gone: tuple[NamedObject, ...], now_ms: int) -> None:
    """Notes objects as gone, so that pages say so instead of trying to show them. Only the command line does it."""
    entry = audit.Entry("objects_noted_gone", now_ms, details={"count": len(gone), "first": gone[0].object_key})
    await audit.add_own(Scoped(tx, Principal(audit.INSTALLATION, None, Role.SYSTEM_ADMIN)), entry)
    for one in gone:
        if one.kind == "clip":
            await tx.run(
                "UPDATE clips SET state = 'none', reason = 'failed', object_key = NULL, object_bytes = 0, "
                "epoch_id = NULL WHERE clip_id = :row_id AND object_key = :object_key",
                row_id=one.row_id,
                object_key=one.object_key,
            )
            continue
        column = {"full": "full_bytes", "infer": "infer_bytes"}[one.kind]
        await tx.run(f"UPDATE frames SET {column} = NULL WHERE frame_id = :row_id", row_id=one.row_id)
        await tx.run(
            "UPDATE frames SET epoch_id = NULL "
            "WHERE frame_id = :row_id AND full_bytes IS NULL AND infer_bytes IS NULL",
            row_id=one.row_id,
        )
