"""What a run of scoring is downloaded as: the filled sheet, its chunks, what the sheet has, and its report."""

import json
from collections.abc import AsyncGenerator, Sequence
from urllib.parse import quote

from camserver.base.errors import NotFound
from camserver.base.records import fields_of
from camserver.domain import scoring_report
from camserver.services.web.calls import Call
from camserver.store import scoring_pages
from camserver.store.scoring_pages import PAGE_MAX, Overview
from camserver.store.scoring_sheets import Piece

BLOCKS_PAGE = 5_000


def attachment(name: str) -> dict[str, str]:
    """Headers by which a browser saves what it gets under a name."""
    plain = "".join(one if one.isascii() and (one.isalnum() or one in ".-_") else "_" for one in name)
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "Cache-Control": "no-store",
    }


async def filled_sheet(call: Call, pieces: Sequence[Piece]) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        try:
            yield await call.web.objects.get(piece.object_key)
        except NotFound:
            # A newer one has taken its place while this was read; what came so far is no file.
            raise ConnectionAbortedError("a newer result has taken the place of this one") from None


async def chunk_meta(call: Call, run: Overview) -> AsyncGenerator[bytes, None]:
    after, before = 0, b"["
    while found := await call.store.read(scoring_pages.chunks, run.run.run_id, after, PAGE_MAX):
        for one in found:
            yield before + b"\n" + json.dumps(scoring_report.chunk_meta(fields_of(one)), ensure_ascii=False).encode()
            before = b","
        after = found[-1].number
    yield b"\n]\n" if before == b"," else b"[]\n"


async def checkpoint(call: Call, run: Overview) -> AsyncGenerator[bytes, None]:
    after, before = (0, 0), ""
    yield b'{"completed_blocks": ['
    size = run.run.spec.layout.block_size
    while found := await call.store.read(scoring_pages.written_blocks, run.run.run_id, after, BLOCKS_PAGE):
        names = ", ".join(f'"{scoring_report.block_name(row, first, size)}"' for row, first in found)
        yield (before + names).encode()
        before, after = ", ", found[-1]
    yield f'], "updated_at": "{scoring_report.moment(run.run.updated_at)}"}}\n'.encode()


async def run_report(call: Call, run: Overview) -> AsyncGenerator[bytes, None]:
    states = await call.store.read(scoring_pages.states, run.run.run_id)
    notes = await call.store.read(scoring_pages.notes, run.run.run_id)
    found = scoring_report.report(
        fields_of(run.run), run.run.spec, fields_of(run.totals), states, [fields_of(one) for one in notes]
    )
    yield json.dumps(found, ensure_ascii=False, indent=1).encode() + b"\n"


DOCUMENTS = {"chunk_meta.json": chunk_meta, "checkpoint.json": checkpoint, "run_report.json": run_report}
