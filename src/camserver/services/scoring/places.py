"""Opens what was brought on the web as a sheet, wherever it lies: an upload, a link, the server's folder, events."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, NotFound
from camserver.base.secrets import Secret
from camserver.clients.sheets.opening import open_file, open_sheet
from camserver.clients.sheets.sheet import Sheet
from camserver.domain.picture_keys import Kind
from camserver.domain.scoring_sheets import SheetKind
from camserver.domain.sheet_layout import SheetLayout
from camserver.objects.interface import Objects
from camserver.services.scoring.event_sheet import EventSheet
from camserver.services.scoring.uploaded_sheet import open_uploaded
from camserver.store import Store, scoring_desk
from camserver.store.scoring_sheets import SheetRow

if TYPE_CHECKING:
    from camserver.config import Settings


class Places:
    def __init__(self, store: Store, objects: Objects, clock: Clock, settings: "Settings") -> None:
        self._store = store
        self._objects = objects
        self._clock = clock
        self._settings = settings

    async def open(self, sheet: SheetRow, layout: SheetLayout, run_id: int = 0) -> Sheet:
        address = f"{sheet.kind}:{sheet.sheet_uuid}"
        work_folder = self._settings.server.data_dir
        match sheet.kind:
            case SheetKind.FILE:
                pieces = await self._store.read(scoring_desk.pieces, sheet.sheet_id)
                return await open_uploaded(
                    self._objects, pieces, address, sheet.name, layout, self._clock, work_folder
                )
            case SheetKind.EVENTS:
                order = (Kind.INFER, Kind.FULL)
                if self._settings.llm_review.picture == "full":
                    order = (Kind.FULL, Kind.INFER)
                return EventSheet(
                    self._store, self._clock, address, sheet.sheet_id, run_id, sheet.wishes.categories, order
                )
            case SheetKind.FOLDER:
                path = await asyncio.to_thread(within, self._settings.scoring.folder, sheet.name)
                return await open_file(path, layout, self._clock, work_folder=work_folder)
            case SheetKind.GOOGLE:
                key = await asyncio.to_thread(_google_key, self._settings.drive.credentials_file)
                return await open_sheet(sheet.name, layout, self._clock, credentials=key, work_folder=work_folder)

    async def picture(self, object_key: str) -> bytes | None:
        try:
            return await self._objects.get(object_key)
        except NotFound:
            return None


def within(folder: str, name: str) -> Path:
    """A file of the server's folder. BadInput for what leads out of it, through links too."""
    if not folder:
        raise BadInput("no folder of the server is given for sheets; set scoring.folder")
    home = Path(folder).resolve()
    path = (home / name).resolve()
    if not path.is_relative_to(home):
        raise BadInput(f"{name} is not within the server's folder for sheets")
    return path


def _google_key(file: Path | None) -> Secret | None:
    return None if file is None else Secret(file.read_text(encoding="utf-8"))
