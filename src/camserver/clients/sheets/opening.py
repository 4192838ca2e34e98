"""Opens a sheet by its address: the path of a file, or a link to Google Sheets."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

from camserver.base import folders
from camserver.base.clock import Clock
from camserver.base.errors import BadInput
from camserver.base.secrets import Secret
from camserver.clients.outgoing import OutgoingHttp, OutgoingPolicy
from camserver.clients.sheets import file_places
from camserver.clients.sheets.csv_format import CsvFormat
from camserver.clients.sheets.file_sheet import SETTLE_SEC, FileSheet
from camserver.clients.sheets.formats import FileFormat
from camserver.clients.sheets.google_api import SHEETS_URL as SHEETS_URL
from camserver.clients.sheets.google_api import GoogleApi, google_address
from camserver.clients.sheets.google_sheet import GoogleSheet
from camserver.clients.sheets.parquet_format import ParquetFormat
from camserver.clients.sheets.sheet import SheetError
from camserver.clients.sheets.xlsx_format import XlsxFormat
from camserver.domain.sheet_layout import SheetLayout

CSV_ENDINGS: Final = (".csv", ".tsv", ".txt")
EXCEL_ENDINGS: Final = (".xlsx", ".xlsm")
PARQUET_ENDINGS: Final = (".parquet", ".pq")
ENDINGS: Final = (*CSV_ENDINGS, *EXCEL_ENDINGS, *PARQUET_ENDINGS)


def format_of(path: Path, work_folder: Path | None = None) -> FileFormat:
    """How a file of this name is read. BadInput when its kind is not known."""
    ending = path.suffix.lower()
    if ending in CSV_ENDINGS:
        return CsvFormat()
    if ending in EXCEL_ENDINGS:
        return XlsxFormat(work_folder)
    if ending in PARQUET_ENDINGS:
        return ParquetFormat()
    if ending == ".xls":
        raise BadInput(f"{path.name} is of an Excel before 2007; save it as .xlsx")
    raise BadInput(f"{path.name} is no sheet that can be scored; its name must end with one of {', '.join(ENDINGS)}")


async def open_sheet(
    address: str,
    layout: SheetLayout,
    clock: Clock,
    *,
    credentials: Secret | None = None,
    output: Path | None = None,
    work_folder: Path | None = None,
    google_url: str = SHEETS_URL,
) -> FileSheet | GoogleSheet:
    """The sheet at an address: a path, a link to Google Sheets, or gsheet:ID. Google needs the key file of a service
    account that the sheet is shared with."""
    layout.check()
    found = google_address(address)
    if found is None and address.startswith(("http://", "https://", "gsheet:")):
        raise BadInput(f"{address} is no link to Google Sheets; copy it from the address bar of the browser")
    if found is None:
        return await open_file(Path(address), layout, clock, output=output, work_folder=work_folder)
    if credentials is None:
        raise BadInput("Google Sheets needs the key file of a service account; name it, and share the sheet with it")
    if output is not None:
        raise BadInput("a Google sheet is filled where it is; make a copy of it there instead of naming an output")
    http = OutgoingHttp(OutgoingPolicy(allow_loopback=google_url != SHEETS_URL))
    try:
        api = GoogleApi(http, clock, credentials, found.book_id, google_url)
        return GoogleSheet(api, http, layout, clock, found.gid)
    except BaseException:
        await http.close()
        raise


async def open_file(
    path: Path,
    layout: SheetLayout,
    clock: Clock,
    *,
    output: Path | None = None,
    work_folder: Path | None = None,
    settle_sec: float = SETTLE_SEC,
) -> FileSheet:
    """A file as a sheet. With `output`, scores go there and the file itself is never written; what an earlier run
    left there is gone on with."""
    layout.check()
    form = format_of(path, work_folder)
    if output is not None:
        if type(format_of(output)) is not type(form):
            raise BadInput(f"{output.name} must be of the same kind as {path.name}")
        await asyncio.to_thread(_copy_once, path, output)
    # Through links: the file that they lead to is replaced, not they.
    chosen = Path(await asyncio.to_thread(os.path.realpath, output or path))
    if not await asyncio.to_thread(chosen.is_file):
        raise file_places.trouble(chosen, FileNotFoundError())
    return FileSheet(chosen, layout, form, clock, work_folder, settle_sec)


def _copy_once(path: Path, output: Path) -> None:
    """The output begins as a copy, which is there as a whole or not at all."""
    if output.exists():
        return
    try:
        draft = file_places.new_draft(output)
        try:
            shutil.copyfile(path, draft)
            shutil.copymode(path, draft)
            with draft.open("rb") as file:
                os.fsync(file.fileno())
            draft.replace(output)
        finally:
            draft.unlink(missing_ok=True)
        folders.sync(output.parent)
    except OSError as error:
        raise _told(path, output, error) from None


def _told(path: Path, output: Path, error: OSError) -> SheetError:
    return file_places.trouble(path if error.filename == str(path) else output, error)
