"""Looks at sheets that were brought on the web before anything is asked: what they hold, what is wrong with them, and
what scoring them would cost."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import uuid_utils

from camserver.base.clock import Clock
from camserver.base.errors import BadInput, CamError, Retry
from camserver.base.log import get_logger
from camserver.domain.scoring import RunSpec
from camserver.domain.scoring_sheets import FINDINGS_MAX, SPEC_MAX_BYTES, SheetKind, SheetWishes
from camserver.domain.sheet_layout import SheetCheck
from camserver.services.scoring.estimating import estimate
from camserver.services.scoring.opening import Wishes, layout_of, price_for, spec_of
from camserver.services.scoring.places import Places
from camserver.store import Store, scoring_desk
from camserver.store.scoring_desk import HeldSheet

if TYPE_CHECKING:
    from camserver.config import Settings

log = get_logger(__name__)

LOCK_MS = 60_000
KEEP_EVERY_SEC = 15.0
# How long a sheet that is away just now is left alone.
AGAIN_MS = 15_000


async def look_at_next(store: Store, clock: Clock, settings: "Settings", places: Places) -> bool:
    """Whether there was one to look at."""
    token = str(uuid_utils.uuid7())
    now_ms = clock.now_ms()
    held = await store.write(scoring_desk.claim_look, token, now_ms + LOCK_MS, now_ms)
    if held is None:
        return False
    sheet_id = held.sheet.sheet_id
    keeping = asyncio.create_task(_keep(store, clock, sheet_id, token))
    look: dict[str, Any] | None = None
    spec: RunSpec | None = None
    message: str | None = None
    try:
        look, spec = await _look(store, clock, settings, places, held)
    except Retry as error:
        log.info("a sheet can't be looked at just now", sheet=held.sheet.sheet_uuid, cause=error.message)
        await store.write(scoring_desk.leave_look, sheet_id, token, clock.now_ms() + AGAIN_MS)
        return True
    except CamError as error:
        message = error.message
    except Exception:
        # It would be claimed again for ever, and hold up those behind it each time.
        log.exception("looking at a sheet crashed", sheet=held.sheet.sheet_uuid)
        message = "looking at the sheet failed by an error of camserver, whose log says where; save it in another way"
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
    await store.write(scoring_desk.looked, sheet_id, token, look, spec, message, clock.now_ms())
    return True


async def _keep(store: Store, clock: Clock, sheet_id: int, token: str) -> None:
    while True:
        await clock.sleep(KEEP_EVERY_SEC)
        with suppress(Retry):
            await store.write(scoring_desk.keep_look, sheet_id, token, clock.now_ms() + LOCK_MS)


async def _look(
    store: Store, clock: Clock, settings: "Settings", places: Places, held: HeldSheet
) -> tuple[dict[str, Any], RunSpec | None]:
    wishes = held.sheet.wishes
    layout = layout_of(settings.sheet, {} if held.sheet.kind is SheetKind.EVENTS else wishes.layout)
    sheet = await places.open(held.sheet, layout)
    try:
        check = await sheet.check()
        found: dict[str, Any] = {"check": _shown(check), "estimate": None, "is_priced": False}
        if not check.ok:
            return found, None
        spec = spec_of(settings.llm, settings.scoring, _wishes(wishes), sheet, check)
        if len(spec.as_json().encode()) > SPEC_MAX_BYTES:
            raise BadInput("the categories' descriptions are too long together; shorten them, or split the sheet")
        price = price_for(settings.llm, spec.model)
        found["is_priced"] = price is not None
        costs = await estimate(store, clock, held.tenant_id, sheet, spec, settings.scoring, price)
        return found | {"estimate": asdict(costs)}, spec
    finally:
        await sheet.close()


def _wishes(wishes: SheetWishes) -> Wishes:
    return Wishes(wishes.model, wishes.form, wishes.instructions)


def _shown(check: SheetCheck) -> dict[str, Any]:
    return {
        "ok": check.ok,
        "rows": check.texts,
        "distinct_rows": check.distinct_texts,
        "empty_rows": check.empty_rows,
        "filled_cells": check.filled_cells,
        "last_row": check.last_row,
        "categories": len(check.categories),
        "findings": [asdict(one) for one in check.findings[:FINDINGS_MAX]],
    }
