"""A case as one ZIP file, made while it is sent.

Pictures and clips go first, as they are found; meanwhile the tables and the page grow in drafts. Then come these, and
at last the manifest with the hash of everything, and its signature. What is missing is named in the manifest; an
object that can't be read never ends the export.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import asdict, dataclass, field

from camserver import __version__
from camserver.base import signing
from camserver.base.errors import CamError, NotFound
from camserver.base.log import get_logger
from camserver.domain.cases import ItemKind
from camserver.domain.people import LOCAL_ADMIN
from camserver.domain.phrases import camera_issue_phrase, primary_event_phrase
from camserver.domain.picture_keys import Kind, frame_key
from camserver.domain.vocabulary import Vocabulary
from camserver.services.web import case_index
from camserver.services.web.calls import Call
from camserver.services.web.case_index import EventLine, utc_stamp
from camserver.services.web.case_tables import Draft, Table
from camserver.services.web.labels import active_vocabulary, shown_tags
from camserver.services.web.zip_stream import CHUNK_BYTES, ZipStream
from camserver.store import cases, clips, event_pages, frame_pages
from camserver.store.cases import CaseItem, CaseSummary
from camserver.store.event_pages import EventSummary
from camserver.store.frame_pages import FrameDetail
from camserver.wire.case_file import (
    MANIFEST,
    MANIFEST_HASH,
    MANIFEST_SIGNATURE,
    AuditLine,
    Manifest,
    MissingLine,
    Signature,
)

log = get_logger(__name__)

PAGE = 200
_FRAME_COLUMNS = (
    "frame_uuid",
    "event_uuid",
    "camera_id",
    "camera_name",
    "site",
    "captured_at",
    "received_at",
    "late",
    "status",
    "verdict",
    "detected",
    "primary_event",
    "severity",
    "confidence",
    "tags",
)
_EVENT_COLUMNS = (
    "event_uuid",
    "incident_uuid",
    "camera_id",
    "camera_name",
    "site",
    "state",
    "primary_event",
    "start_at",
    "last_seen_at",
    "end_at",
    "severity_max",
    "confidence_max",
    "frame_count",
    "subject",
    "cause",
    "tags",
)


@dataclass(slots=True)
class CaseExport:
    """One export. `chunks` can be gone through once."""

    call: Call
    case: CaseSummary
    zip: ZipStream = field(default_factory=ZipStream)
    frames: Table = field(default_factory=lambda: Table(_FRAME_COLUMNS))
    events: Table = field(default_factory=lambda: Table(_EVENT_COLUMNS))
    page: Draft = field(default_factory=Draft)
    event_lines: dict[str, EventLine] = field(default_factory=dict)
    missing: list[MissingLine] = field(default_factory=list)
    _vocabulary: Vocabulary | None = None
    _frames_seen: set[str] = field(default_factory=set)
    _clips_seen: set[str] = field(default_factory=set)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The file, piece by piece."""
        async for chunk in self._media():
            yield chunk
        async for chunk in self._tables():
            yield chunk
        async for chunk in self._manifest():
            yield chunk

    def close(self) -> None:
        """Lets go of what is half written; also when the reader left in the middle, or before the first piece."""
        self.zip.abandon()
        for draft in (self.page, self.frames.json, self.frames.csv, self.events.json, self.events.csv):
            draft.close()

    # -----------------------------------------------------------------------------------------------------------

    async def _media(self) -> AsyncIterator[bytes]:
        store, case = self.call.store, self.case
        notes = await store.read(cases.notes, case.case_id)
        items = await store.read(cases.items, case.case_id, 0, PAGE)
        timezone = items[0].timezone if items else "UTC"
        self.page.add(case_index.head(case, notes, self.call.now_ms, timezone, self.call.language))
        while items:
            for item in items:
                async for chunk in self._item(item):
                    yield chunk
            items = await store.read(cases.items, case.case_id, items[-1].item_id, PAGE)

    async def _item(self, item: CaseItem) -> AsyncIterator[bytes]:
        kind = ItemKind(item.kind)
        frame = None
        if kind is ItemKind.FRAME and not item.gone:
            frame = await self.call.store.read(frame_pages.find, item.uuid)
        if item.gone or (kind is ItemKind.FRAME and frame is None):
            self._note_gone(item)
            return
        parts = self._event(item, kind is ItemKind.EVENT) if frame is None else self._frame(frame, item.timezone)
        async for chunk in parts:
            yield chunk

    def _note_gone(self, item: CaseItem) -> None:
        """Deleted since the list was read, or before."""
        self.missing.append(MissingLine(kind=ItemKind(item.kind).value, uuid=item.uuid, reason="gone"))

    async def _event(self, item: CaseItem, with_frames: bool) -> AsyncIterator[bytes]:
        try:
            found = await self.call.store.read(event_pages.get, item.uuid)
        except NotFound:
            self._note_gone(item)
            return
        if item.uuid not in self.event_lines:
            self.event_lines[item.uuid] = self._line(found.summary, item.timezone)
            self.events.add(_plain(asdict(found.summary)))
        async for chunk in self._clip(item, is_asked_for=not with_frames):
            yield chunk
        if not with_frames:
            return
        after: str | None = None
        while frames := await self.call.store.read(event_pages.frames, item.uuid, after, PAGE):
            for frame in frames:
                async for chunk in self._frame(frame, item.timezone):
                    yield chunk
            after = frames[-1].cursor
        if found.best_frame is not None:
            async for chunk in self._frame(found.best_frame, item.timezone):
                yield chunk

    def _line(self, event: EventSummary, timezone: str) -> EventLine:
        phrase = camera_issue_phrase(event.subject) if event.subject else primary_event_phrase(event.primary_event)
        return EventLine(
            event.event_uuid,
            f"{event.camera_name} ({event.camera_id})",
            phrase.ja if self.call.language == "ja" else phrase.en,
            event.severity_max,
            event.start_at,
            event.last_seen_at,
            timezone,
        )

    async def _frame(self, frame: FrameDetail, timezone: str) -> AsyncIterator[bytes]:
        if frame.frame_uuid in self._frames_seen:
            return
        self._frames_seen.add(frame.frame_uuid)
        self.frames.add(_plain(asdict(frame)))
        shown = ""
        for kind in sorted(frame.pictures):
            path = f"pictures/{frame.camera_id}/{utc_stamp(frame.captured_at)}_{frame.frame_uuid}.{kind}.jpg"
            is_there = False
            async for chunk in self._picture(frame, Kind(kind), path):
                is_there = True
                yield chunk
            if is_there and not shown:
                # `full` comes before `infer`: the larger one is shown.
                shown = path
                self.page.add(case_index.figure(frame, path, kind, timezone, await self._labels(frame)))

    async def _labels(self, frame: FrameDetail) -> list[str]:
        if self._vocabulary is None:
            self._vocabulary = await active_vocabulary(self.call)
        tags = shown_tags(self._vocabulary, frame.tags)
        return [tag.label_ja if self.call.language == "ja" else tag.label_en for tag in tags]

    async def _picture(self, frame: FrameDetail, kind: Kind, path: str) -> AsyncIterator[bytes]:
        try:
            place = await self.call.store.read(frame_pages.picture, frame.frame_uuid, kind.value)
            key = frame_key(
                place.epoch_id, place.tenant_id, place.camera_key, place.captured_at, place.frame_uuid, kind
            )
            data = await self.call.web.objects.get(key)
        except (CamError, OSError) as error:
            self._miss("picture", frame.frame_uuid, path, error)
            return
        async for chunk in self._file(path, frame.captured_at, _parts(data), len(data)):
            yield chunk

    async def _clip(self, item: CaseItem, is_asked_for: bool) -> AsyncIterator[bytes]:
        if item.uuid in self._clips_seen:
            return
        self._clips_seen.add(item.uuid)
        path = f"clips/{item.camera_id}/{utc_stamp(item.happened_at)}_{item.uuid}.mp4"
        try:
            place = await self.call.store.read(clips.place, item.uuid)
        except NotFound:
            if is_asked_for:
                self.missing.append(MissingLine(kind="clip", uuid=item.uuid, reason="gone", path=path))
            return
        try:
            first = await self.call.web.objects.get_range(place.object_key, 0, CHUNK_BYTES)
        except (CamError, OSError) as error:
            self._miss("clip", item.uuid, path, error)
            return
        self.event_lines[item.uuid] = _with_clip(self.event_lines[item.uuid], path)
        async for chunk in self._file(path, item.happened_at, self._rest(item, place, path, first), place.bytes):
            yield chunk

    async def _rest(self, item: CaseItem, place: clips.ClipPlace, path: str, first: bytes) -> AsyncIterator[bytes]:
        yield first
        begin = len(first)
        while begin < place.bytes:
            try:
                part = await self.call.web.objects.get_range(place.object_key, begin, CHUNK_BYTES)
            except (CamError, OSError) as error:
                self._miss("clip", item.uuid, path, error)
                return
            if not part:
                self.missing.append(MissingLine(kind="clip", uuid=item.uuid, reason="unreadable", path=path))
                return
            begin += len(part)
            yield part

    def _miss(self, kind: str, uuid: str, path: str, error: Exception) -> None:
        reason = "no_object" if isinstance(error, NotFound) else "unreadable"
        log.warning("a file of a case could not be exported", kind=kind, uuid=uuid, why=str(error))
        self.missing.append(MissingLine.model_validate({"kind": kind, "uuid": uuid, "reason": reason, "path": path}))

    # -----------------------------------------------------------------------------------------------------------

    async def _tables(self) -> AsyncIterator[bytes]:
        told = [(line.kind, line.uuid, line.reason) for line in self.missing]
        self.page.add(case_index.tail(list(self.event_lines.values()), told, self.call.language))
        self.frames.end()
        self.events.end()
        notes = await self.call.store.read(cases.notes, self.case.case_id)
        about, noted = Draft(), Draft()
        about.add(json.dumps(_plain(asdict(self.case)), ensure_ascii=False, indent=1) + "\n")
        noted.add(json.dumps([asdict(note) for note in notes], ensure_ascii=False, indent=1) + "\n")
        for name, draft in (
            ("case.json", about),
            ("notes.json", noted),
            ("events.json", self.events.json),
            ("events.csv", self.events.csv),
            ("frames.json", self.frames.json),
            ("frames.csv", self.frames.csv),
            ("index.html", self.page),
        ):
            size_bytes = draft.size_bytes
            draft.rewind()
            async for chunk in self._file(name, self.call.now_ms, _drafted(draft), size_bytes):
                yield chunk
        about.close()
        noted.close()

    async def _manifest(self) -> AsyncIterator[bytes]:
        call = self.call
        key = call.web.secrets.case_key_bytes()
        entries = await call.store.read(cases.audit_of, self.case.case_uuid)
        manifest = Manifest(
            case_uuid=self.case.case_uuid,
            title=self.case.title,
            exported_at=call.now_ms,
            exported_by=call.signed_in.login if call.signed_in is not None else LOCAL_ADMIN,
            camserver_version=__version__,
            public_key=signing.public_key(key),
            files=list(self.zip.files),
            missing=self.missing,
            audit=[AuditLine.model_validate(asdict(entry)) for entry in entries],
        )
        text = manifest.model_dump_json(indent=1).encode() + b"\n"
        digest = hashlib.sha256(text).hexdigest()
        signature = Signature(public_key=manifest.public_key, signature=signing.sign(key, text))
        for name, data in (
            (MANIFEST, text),
            (MANIFEST_HASH, f"{digest}  {MANIFEST}\n".encode()),
            (MANIFEST_SIGNATURE, signature.model_dump_json(indent=1).encode() + b"\n"),
        ):
            async for chunk in self._file(name, call.now_ms, _parts(data), len(data)):
                yield chunk
        details: dict[str, str | int] = {
            "files": len(manifest.files),
            "missing": len(manifest.missing),
            "manifest_sha256": digest,
        }
        await call.store.write(
            cases.note_in_log, self.case.case_uuid, "case_exported", details, call.address, call.web.clock.now_ms()
        )
        yield await asyncio.to_thread(self.zip.close)

    async def _file(
        self, name: str, at_ms: int, parts: AsyncIterator[bytes], size_bytes: int
    ) -> AsyncIterator[bytes]:
        self.zip.begin(name, at_ms, size_bytes)
        async for part in parts:
            yield await asyncio.to_thread(self.zip.write, part)
        yield await asyncio.to_thread(self.zip.end)


async def _parts(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), CHUNK_BYTES):
        yield data[begin : begin + CHUNK_BYTES]


async def _drafted(draft: Draft) -> AsyncIterator[bytes]:
    while part := await asyncio.to_thread(draft.read):
        yield part


def _with_clip(line: EventLine, path: str) -> EventLine:
    return EventLine(
        line.event_uuid,
        line.camera,
        line.phrase,
        line.severity,
        line.start_at,
        line.last_seen_at,
        line.timezone,
        path,
    )


def _plain(row: dict[str, object]) -> dict[str, object]:
    """Without what means something to this program only."""
    return {name: value for name, value in row.items() if name not in ("cursor", "case_id", "item_id")}
