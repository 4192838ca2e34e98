"""Copies of a frame at archives, as people see them and as signed links open them (decision 29).

The id of an archive's file is the archive's own: a file of Google Drive, a key of a bucket, a path of a folder.
Copies of a case are named to those who may investigate, and no link opens them.
"""

from dataclasses import dataclass

from camserver.base.errors import Forbidden, NotFound
from camserver.domain.archive import is_clip
from camserver.domain.links import may_be_linked
from camserver.domain.people import Permission
from camserver.store.receivers import StoredReceiver, stored_by_id
from camserver.store.tenants import NOT_DISABLED
from camserver.store.tx import Row, Scoped, Tx

COPIES_MAX = 50


@dataclass(frozen=True, slots=True)
class CopySummary:
    archive_file_id: str
    receiver_uuid: str | None  # None: the receiver was removed, and the copy can't be reached any more
    receiver_name: str | None
    path: str
    bytes: int
    sha256: str
    in_case: bool
    archived_at: int
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class LinkedCopy:
    archive_file_id: str
    path: str
    sha256: str
    receiver: StoredReceiver


_FRAME = """
SELECT f.frame_id, f.retention_class, e.retention_class AS event_class
FROM frames f LEFT JOIN events e ON e.event_id = f.event_id WHERE f.frame_uuid = :frame_uuid"""
_COPIES = f"""
SELECT o.external_id, o.path, o.bytes, o.sha256, o.case_id, o.archived_at, o.expires_at, o.receiver_id,
  r.receiver_uuid, r.name
FROM drive_objects o LEFT JOIN receivers r ON r.receiver_id = o.receiver_id
WHERE o.frame_id = :frame_id AND o.deleted_at IS NULL{{narrowed}} ORDER BY o.object_id LIMIT {COPIES_MAX}"""


async def copies(tx: Scoped, frame_uuid: str) -> tuple[CopySummary, ...]:
    """The copies of a frame, and of the clip whose event it is the best of."""
    frame = await tx.one(
        f"{_FRAME} AND f.tenant_id = :tenant_id AND IN_REACH(f)",
        frame_uuid=frame_uuid,
    )
    if frame is None:
        raise _missing(frame_uuid)
    rows = await tx.all(
        _COPIES.format(narrowed=" AND o.tenant_id = :tenant_id"),
        frame_id=frame["frame_id"],
    )
    sees_cases = tx.principal.may(Permission.INVESTIGATE)
    found = [_summary(row, _is_of_case(frame, row)) for row in rows]
    return tuple([one for one in found if sees_cases or not one.in_case])


async def linkable(tx: Scoped, frame_uuid: str, archive_file_id: str) -> None:
    """NotFound or Forbidden when no link to this copy may be given out."""
    found = await copies(tx, frame_uuid)
    frame = await tx.one(f"{_FRAME} AND f.tenant_id = :tenant_id", frame_uuid=frame_uuid)
    if frame is not None and not may_be_linked(frame["retention_class"]):
        raise _of_case()
    wanted = [one for one in found if one.archive_file_id == archive_file_id]
    if wanted and all(one.in_case for one in wanted):
        raise _of_case()
    if not wanted or wanted[0].receiver_uuid is None:
        raise NotFound("this frame has no such copy at an archive", reason="no_archive_file")


async def linked(tx: Tx, frame_uuid: str) -> tuple[LinkedCopy, ...]:
    """The copies of a frame that a link may open; none when there is no such frame, or a case has it."""
    frame = await tx.one(f"{_FRAME} AND f.tenant_id {NOT_DISABLED}", frame_uuid=frame_uuid)
    if frame is None or not may_be_linked(frame["retention_class"]):
        return ()
    rows = await tx.all(_COPIES.format(narrowed=" AND o.case_id IS NULL"), frame_id=frame["frame_id"])
    found = []
    for row in rows:
        if _is_of_case(frame, row):
            continue
        receiver = await stored_by_id(tx, row["receiver_id"])
        if receiver is not None:
            found.append(LinkedCopy(row["external_id"], row["path"], row["sha256"], receiver))
    return tuple(found)


def _is_of_case(frame: Row, copy: Row) -> bool:
    """Whether a case has what this is a copy of, also where the copy was made before that. A clip is its event's."""
    original = frame["event_class"] if is_clip(copy["path"]) else frame["retention_class"]
    return copy["case_id"] is not None or not may_be_linked(original or "")


def _summary(row: Row, in_case: bool) -> CopySummary:
    return CopySummary(
        archive_file_id=row["external_id"],
        receiver_uuid=row["receiver_uuid"],
        receiver_name=row["name"],
        path=row["path"],
        bytes=row["bytes"],
        sha256=row["sha256"],
        in_case=in_case,
        archived_at=row["archived_at"],
        expires_at=row["expires_at"],
    )


def _of_case() -> Forbidden:
    return Forbidden("this copy belongs to a case, and no link opens it; sign in to see it", reason="case_link")


def _missing(frame_uuid: str) -> NotFound:
    return NotFound(f"there is no frame {frame_uuid}; it may be past its retention", reason="no_frame")
