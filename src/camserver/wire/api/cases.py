"""Cases: evidence that people keep together; and what retention keeps and deletes."""

from typing import Annotated, Literal

from pydantic import Field

from camserver.wire.api.shapes import UUID_PATTERN, Answer, Asked

CaseState = Literal["open", "closed"]
CaseItemKind = Literal["frame", "event", "clip"]
CaseTitle = Annotated[str, Field(min_length=1, max_length=400)]
CaseNoteBody = Annotated[str, Field(min_length=1, max_length=12_000)]


class Case(Answer):
    case_uuid: str
    title: str
    state: CaseState
    hold: bool  # nothing of it is deleted, closed or not
    created_by: str  # login; "local admin" for the command line
    created_at: int
    updated_at: int
    closed_at: int | None
    items: int
    notes: int


class CasePage(Answer):
    cases: list[Case]
    next_before: str | None


class CaseNote(Answer):
    body: str
    by: str
    at: int


class CaseDetail(Case):
    note_list: list[CaseNote]  # oldest first


class CaseAsked(Asked):
    title: CaseTitle
    note: CaseNoteBody | None = None


class CaseChange(Asked):
    """What is left out stays as it is."""

    title: CaseTitle | None = None
    state: CaseState | None = None
    hold: bool | None = None


class CaseNoteAsked(Asked):
    body: CaseNoteBody


class CaseItemAsked(Asked):
    """`uuid` is that of the frame or event; of a clip, its event's."""

    kind: CaseItemKind
    uuid: Annotated[str, Field(pattern=UUID_PATTERN)]


class CaseItemAdded(Answer):
    added: bool  # False: it was in the case before


class CaseItem(Answer):
    kind: CaseItemKind
    uuid: str
    camera_id: str
    camera_name: str
    site: str
    happened_at: int
    added_at: int
    added_by: str
    held: bool  # kept from being deleted
    gone: bool  # deleted after the case had let go of it


class CaseItemPage(Answer):
    items: list[CaseItem]
    next_after: str | None


class KeptMedia(Answer):
    """What pictures and clips of one class take."""

    retention_class: str
    pictures: int
    bytes: int
    day_bytes: int  # of the last 24 hours
    oldest_at: int | None


class CameraKept(Answer):
    camera_id: str
    camera_name: str
    removed: bool
    kept: list[KeptMedia]
    counted_at: int


class Sweep(Answer):
    at: int
    what: str  # frames, pictures, clips, events, …; failed: cameras left out; nothing_left: nothing to give
    count: int
    bytes: int
    reason: str  # age, quiet, camera_quota, tenant_quota, floor, floor_best


class RetentionStatus(Answer):
    days: dict[str, int]  # how many days each kind of record lives
    camera_max_bytes: int  # 0: no bound
    tenant_max_bytes: int
    free_min_bytes: int
    free_bytes: int | None  # of the disk; None where it can't be known
    kept: list[KeptMedia]  # of all cameras in reach
    cameras: list[CameraKept]
    sweeps: list[Sweep]  # newest first
    grown_bytes_a_day: int
    days_until_floor: float | None
    counted_at: int | None  # since when at the latest `kept` holds for every camera; None: nothing was counted yet
    round_ended_at: int | None
    round_wanted_at: int | None


class RoundAsked(Answer):
    asked_at: int


class RetentionPreviewLine(Answer):
    """What would go of one camera, for whatever reason."""

    camera_id: str
    count: int
    bytes: int


class GoingMedia(Answer):
    """What would go of one kind, for one reason."""

    what: str  # frames, pictures, clips, events, garbage, notifications, …
    reason: str  # as of a Sweep; garbage: unlinked
    count: int
    bytes: int


class RetentionPreview(Answer):
    """What a round would delete if it began now."""

    cameras: list[RetentionPreviewLine]
    going: list[GoingMedia]
    frames: int
    pictures: int
    bytes: int
    whole: bool  # False: there was too much to look at all of it; at least this goes
