"""Frames as people read them, with boxes and tags, and where their pictures lie.

Held to the principal's tenant and sites, except `linked_picture`, which serves whoever has a signed link and is
asked only after the signature was checked, and `boxes_in`, which follows upon one of the others. Tags for
investigation only, and pictures of cases, are for those who may investigate. Recording frames is `frames`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import orjson

from camserver.base.errors import Forbidden, NotFound
from camserver.base.records import record
from camserver.domain.analysis import Box
from camserver.domain.boxes import Shapes, in_full
from camserver.domain.links import may_be_linked
from camserver.domain.people import Permission
from camserver.domain.retention import Retention
from camserver.store import camera_filters
from camserver.store.cameras import PicturePlace, public_camera_id
from camserver.store.hidden_tags import hidden_group, is_shown
from camserver.store.paging import BEYOND, Listed, make_cursor, parse_cursor
from camserver.store.sql import Sql
from camserver.store.tenants import NOT_DISABLED
from camserver.store.tx import Row, Scoped, Tx

PAGE_MAX = 200
# The column that says whether a frame has a picture of a kind.
_BYTES_COLUMN: Mapping[str, str] = {"infer": "infer_bytes", "full": "full_bytes"}
# A small picture made of one of those.
THUMB = "thumb"


@dataclass(frozen=True, slots=True)
class Margins:
    """What was added around the infer picture, in its pixels."""

    top: int
    left: int
    bottom: int
    right: int


@record
class FrameDetail:
    frame_uuid: str
    event_uuid: str | None
    camera_id: str
    camera_name: str
    site: str
    captured_at: int
    received_at: int
    late: bool
    status: str  # ok, timeout, error
    error_code: str | None
    verdict: str  # skip, analyze, forced
    diff_ratio: float | None
    luma_delta: float | None
    blur_score: float | None
    full_w: int | None
    full_h: int | None
    infer_w: int | None
    infer_h: int | None
    letterbox: Margins | None
    infer_hash64_hex: str | None
    pictures: tuple[str, ...]  # those the principal may open
    analyzed: bool
    detected: bool
    primary_event: str
    unknown_flag: bool
    severity: int
    confidence: float | None
    count_hint: int | None
    retention_class: str
    boxes: tuple[Box, ...]
    warnings: tuple[str, ...]  # what the analyzer had to say besides
    tags: tuple[str, ...]
    cursor: str  # a page from here on begins with the frame behind this one


@dataclass(frozen=True, slots=True)
class Span:
    """Where an event's frames are: `frames` has no index by event, but one by camera and time."""

    event_id: int
    camera_key: int
    start_at: int
    last_seen_at: int


class FrameRow(NamedTuple):
    """The columns of `_FRAMES`."""

    frame_id: int
    frame_uuid: str
    captured_at: int
    received_at: int
    late: int
    collector_status: str
    error_code: str | None
    verdict: str
    diff_ratio: float | None
    luma_delta: float | None
    blur_score: float | None
    full_w: int | None
    full_h: int | None
    infer_w: int | None
    infer_h: int | None
    letterbox: int
    letterbox_top: int | None
    letterbox_left: int | None
    letterbox_bottom: int | None
    letterbox_right: int | None
    infer_hash64_hex: str | None
    epoch_id: int | None
    infer_bytes: int | None
    full_bytes: int | None
    analyzed: int
    detected: int
    primary_event: str
    unknown_flag: int
    severity: int
    confidence: float | None
    count_hint: int | None
    retention_class: str
    result_json: str | None
    camera_id: str
    camera_name: str
    site: str
    event_uuid: str | None


_FRAMES = """
SELECT f.frame_id, f.frame_uuid, f.captured_at, f.received_at, f.late, f.collector_status, f.error_code, f.verdict,
  f.diff_ratio, f.luma_delta, f.blur_score, f.full_w, f.full_h, f.infer_w, f.infer_h, f.letterbox, f.letterbox_top,
  f.letterbox_left, f.letterbox_bottom, f.letterbox_right, f.infer_hash64_hex, f.epoch_id, f.infer_bytes,
  f.full_bytes, f.analyzed, f.detected, f.primary_event, f.unknown_flag, f.severity, f.confidence, f.count_hint,
  f.retention_class, f.result_json, c.camera_id, c.name AS camera_name, s.name AS site, e.event_uuid
FROM frames f
JOIN cameras c ON c.camera_key = f.camera_key
JOIN sites s ON s.site_id = f.site_id
LEFT JOIN events e ON e.event_id = f.event_id
WHERE f.tenant_id = :tenant_id AND IN_REACH(f)"""


def _one(joined: str) -> str:
    tags = f"(SELECT {joined} FROM frame_tags g WHERE g.frame_id = f.frame_id AND {is_shown('g')}) AS tags"
    return f"{_FRAMES.replace('e.event_uuid', f'e.event_uuid, {tags}', 1)} AND f.frame_uuid = :frame_uuid"


_ONE = Sql(_one("GROUP_CONCAT(g.tag_id)"), postgres=_one("STRING_AGG(g.tag_id, ',')"))


async def find(tx: Scoped, frame_uuid: str | None) -> FrameDetail | None:
    if frame_uuid is None:
        return None
    found = await tx.values(_ONE, frame_uuid=frame_uuid, hidden=hidden_group(tx))
    if found is None:
        return None
    *values, tags = found
    return _detail(tx, FrameRow._make(values), tuple(sorted(tags.split(","))) if tags else ())


async def get(tx: Scoped, frame_uuid: str) -> FrameDetail:
    found = await find(tx, frame_uuid)
    if found is None:
        raise _missing(frame_uuid)
    return found


async def of_event(tx: Scoped, span: Span, after: str | None, limit: int) -> tuple[FrameDetail, ...]:
    """Frames of an event the principal was found to reach, oldest first."""
    captured_at, frame_id = (-1, -1) if after is None else parse_cursor(Listed.FRAMES, after)
    rows = await tx.flat(
        FrameRow,
        f"{_FRAMES} AND f.camera_key = :camera_key AND f.event_id = :event_id "
        "AND f.captured_at BETWEEN :start_at AND :last_seen_at "
        "AND (f.captured_at > :captured_at OR (f.captured_at = :captured_at AND f.frame_id > :frame_id)) "
        "ORDER BY f.captured_at, f.frame_id LIMIT :limit",
        camera_key=span.camera_key,
        event_id=span.event_id,
        start_at=span.start_at,
        last_seen_at=span.last_seen_at,
        captured_at=captured_at,
        frame_id=frame_id,
        limit=min(limit, PAGE_MAX),
    )
    return await _with_tags(tx, rows)


# What frames of a camera can be narrowed to.
_ONLY: Mapping[str, str] = {
    "all": "",
    "pictures": " AND f.infer_bytes IS NOT NULL",
    "quiet": " AND f.infer_bytes IS NOT NULL AND f.verdict = 'skip' AND f.analyzed = 0 AND f.event_id IS NULL",
    "failed": " AND f.collector_status <> 'ok'",
}
# Frames that each statement looks at: failed ones may be far apart. A page that stops there says where to go on.
LOOKED_AT = (PAGE_MAX, 1_000, 1_000, 1_000)


@dataclass(frozen=True, slots=True)
class CameraFrames:
    """Which frames of a camera: `only` all, pictures, quiet (kept though nothing happened) or failed."""

    camera_id: str
    from_ms: int | None = None
    to_ms: int | None = None  # not included
    only: str = "all"


async def of_camera(
    tx: Scoped, wanted: CameraFrames, before: str | None, limit: int
) -> tuple[tuple[FrameDetail, ...], str | None]:
    """The newest frames of a camera before the cursor, and where the next page begins, if there may be one."""
    [camera_key] = await camera_filters.keys_of(tx, [wanted.camera_id])
    captured_at, frame_id = (BEYOND, BEYOND) if before is None else parse_cursor(Listed.FRAMES, before)
    most = min(limit, PAGE_MAX)
    span: dict[str, object] = {
        "camera_key": camera_key,
        "from_ms": wanted.from_ms or 0,
        "to_ms": BEYOND if wanted.to_ms is None else wanted.to_ms,
        "captured_at": captured_at,
        "frame_id": frame_id,
    }
    found: list[FrameRow] = []
    for step in LOOKED_AT:
        left = most - len(found)
        rows = await tx.flat(
            FrameRow,
            f"{_FRAMES} AND f.frame_id IN (SELECT w.frame_id FROM ({_WALKED} LIMIT {step}) w)"
            f"{_ONLY[wanted.only]} ORDER BY f.captured_at DESC, f.frame_id DESC LIMIT :limit",
            limit=left,
            **span,
        )
        if len(rows) == left:
            shown = await _with_tags(tx, found + rows)
            return shown, shown[-1].cursor
        end = await tx.one(f"{_WALKED} LIMIT 1 OFFSET {step - 1}", **span)
        if end is None:
            return await _with_tags(tx, found + rows), None
        captured_at, frame_id = end["captured_at"], end["frame_id"]
        # What came meanwhile makes the step end earlier; what lies behind its end is found by the next one.
        found += [row for row in rows if (row.captured_at, row.frame_id) >= (captured_at, frame_id)]
        span |= {"captured_at": captured_at, "frame_id": frame_id}
    return await _with_tags(tx, found), make_cursor(Listed.FRAMES, captured_at, frame_id)


_WALKED = """
SELECT p.captured_at, p.frame_id FROM frames p WHERE p.tenant_id = :tenant_id AND p.camera_key = :camera_key
  AND p.captured_at >= :from_ms AND p.captured_at < :to_ms AND p.captured_at <= :captured_at
  AND (p.captured_at < :captured_at OR p.frame_id < :frame_id)
ORDER BY p.captured_at DESC, p.frame_id DESC"""


_PICTURE = """
SELECT f.tenant_id, f.camera_key, f.captured_at, f.frame_uuid, f.epoch_id, f.infer_bytes, f.full_bytes,
  f.retention_class
FROM frames f WHERE f.frame_uuid = :frame_uuid"""
_REACHED = f"{_PICTURE} AND f.tenant_id = :tenant_id AND IN_REACH(f)"
_LINKED = f"{_PICTURE} AND f.tenant_id {NOT_DISABLED}"


async def picture(tx: Scoped, frame_uuid: str, kind: str) -> PicturePlace:
    """Where a picture lies that the principal may see."""
    row = await _reached(tx, frame_uuid)
    if _is_closed(row["retention_class"], tx):
        raise Forbidden(
            "this picture belongs to a case; ask somebody who may investigate",
            reason="case_media",
            permission=Permission.INVESTIGATE.value,
        )
    return _place(row, kind)


async def linkable_picture(tx: Scoped, frame_uuid: str, kind: str) -> PicturePlace:
    """The same, when a link to it may be given out."""
    row = await _reached(tx, frame_uuid)
    _refuse_case(row)
    return _place(row, kind)


async def _reached(tx: Scoped, frame_uuid: str) -> Row:
    row = await tx.one(_REACHED, frame_uuid=frame_uuid)
    if row is None:
        raise _missing(frame_uuid)
    return row


async def linked_picture(tx: Tx, frame_uuid: str, kind: str) -> PicturePlace:
    """Where the picture of a link lies whose signature was found right."""
    row = await tx.one(_LINKED, frame_uuid=frame_uuid)
    if row is None:
        raise _missing(frame_uuid)
    _refuse_case(row)
    return _place(row, kind)


async def boxes_in(tx: Tx, place: PicturePlace, kind: str) -> tuple[Box, ...]:
    """What was found in a picture, in shares of it. Asked only for a place that was given out just before."""
    row = await tx.one(
        "SELECT result_json, full_w, full_h, infer_w, infer_h, letterbox, letterbox_top, letterbox_left, "
        "letterbox_bottom, letterbox_right FROM frames WHERE frame_uuid = :frame_uuid AND tenant_id = :tenant_id",
        frame_uuid=place.frame_uuid,
        tenant_id=place.tenant_id,
    )
    if row is None:
        raise _missing(place.frame_uuid)
    boxes = _boxes(_result(row["result_json"]))
    return in_full(boxes, _shapes(row)) if kind == "full" else boxes


def _shapes(row: Row) -> Shapes:
    bars = (row["letterbox_top"], row["letterbox_left"], row["letterbox_bottom"], row["letterbox_right"])
    margins = _margins(*bars) if row["letterbox"] else Margins(0, 0, 0, 0)
    return Shapes(
        full=(row["full_w"], row["full_h"]) if row["full_w"] and row["full_h"] else None,
        infer=(row["infer_w"], row["infer_h"]) if row["infer_w"] and row["infer_h"] else None,
        bars=(margins.top, margins.left, margins.bottom, margins.right),
    )


def _refuse_case(row: Row) -> None:
    """Asked when a link is made and when it is used: a case may have been opened in between."""
    if not may_be_linked(row["retention_class"]):
        raise Forbidden("this picture belongs to a case, and no link opens it; sign in to see it", reason="case_link")


def _is_closed(retention_class: str, tx: Scoped) -> bool:
    return retention_class == Retention.CASE and not tx.principal.may(Permission.INVESTIGATE)


def _place(row: Row, kind: str) -> PicturePlace:
    # The infer picture is the smaller one to start from.
    kept = kind if kind != THUMB else "full" if row["infer_bytes"] is None else "infer"
    if row["epoch_id"] is None or row[_BYTES_COLUMN[kept]] is None:
        raise NotFound(
            f"frame {row['frame_uuid']} has no {kind} picture; see `pictures` of the frame",
            reason="no_frame_picture",
            kind=kind,
        )
    return PicturePlace(
        row["epoch_id"],
        row["tenant_id"],
        row["camera_key"],
        row["captured_at"],
        row["frame_uuid"],
        in_case=row["retention_class"] == Retention.CASE,
        kept=kept,
    )


def _missing(frame_uuid: str) -> NotFound:
    return NotFound(f"there is no frame {frame_uuid}; it may be past its retention", reason="no_frame")


async def _with_tags(tx: Scoped, rows: Sequence[FrameRow]) -> tuple[FrameDetail, ...]:
    if not rows:
        return ()
    tags: dict[int, list[str]] = {}
    for row in await tx.all(
        "SELECT frame_id, tag_id FROM frame_tags WHERE frame_id IN (:frame_ids...) AND tenant_id = :tenant_id "
        f"AND {is_shown()} ORDER BY frame_id, tag_id",
        frame_ids=[row.frame_id for row in rows],
        hidden=hidden_group(tx),
    ):
        tags.setdefault(row["frame_id"], []).append(row["tag_id"])
    return tuple([_detail(tx, row, tuple(tags.get(row.frame_id, ()))) for row in rows])


def _detail(tx: Scoped, row: FrameRow, tags: tuple[str, ...]) -> FrameDetail:
    result = _result(row.result_json)
    return FrameDetail(
        frame_uuid=row.frame_uuid,
        event_uuid=row.event_uuid,
        camera_id=public_camera_id(row.camera_id),
        camera_name=row.camera_name,
        site=row.site,
        captured_at=row.captured_at,
        received_at=row.received_at,
        late=bool(row.late),
        status=row.collector_status,
        error_code=row.error_code,
        verdict=row.verdict,
        diff_ratio=row.diff_ratio,
        luma_delta=row.luma_delta,
        blur_score=row.blur_score,
        full_w=row.full_w,
        full_h=row.full_h,
        infer_w=row.infer_w,
        infer_h=row.infer_h,
        letterbox=_margins(*_BARS(row)) if row.letterbox else None,
        infer_hash64_hex=row.infer_hash64_hex,
        pictures=() if _is_closed(row.retention_class, tx) else _pictures(row),
        analyzed=bool(row.analyzed),
        detected=bool(row.detected),
        primary_event=row.primary_event,
        unknown_flag=bool(row.unknown_flag),
        severity=row.severity,
        confidence=row.confidence,
        count_hint=row.count_hint,
        retention_class=row.retention_class,
        boxes=_boxes(result),
        warnings=tuple(result.get("warnings") or ()),
        tags=tags,
        cursor=make_cursor(Listed.FRAMES, row.captured_at, row.frame_id),
    )


_BARS = attrgetter("letterbox_top", "letterbox_left", "letterbox_bottom", "letterbox_right")


def _margins(top: int | None, left: int | None, bottom: int | None, right: int | None) -> Margins:
    return Margins(top or 0, left or 0, bottom or 0, right or 0)


def _pictures(row: FrameRow) -> tuple[str, ...]:
    if row.epoch_id is None:
        return ()
    return tuple([kind for kind, column in _BYTES_COLUMN.items() if getattr(row, column) is not None])


def _result(result_json: str | None) -> dict[str, Any]:
    """As `wire.analyzer.result_json` made it; empty before the analysis."""
    kept: dict[str, Any] = {} if result_json is None else orjson.loads(result_json)
    return kept


def _boxes(result: Mapping[str, Any]) -> tuple[Box, ...]:
    return tuple(
        Box(box["x1"], box["y1"], box["x2"], box["y2"], box.get("label"), box.get("conf"))
        for box in result.get("bboxes", ())
    )
