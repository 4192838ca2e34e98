"""Deliveries: what is on its way out, what arrived, what was given up and why; queueing it again."""

import json
from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query

from camserver.domain.people import Permission
from camserver.services.web.calls import TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routes.filters import Cursor, From, To, check_times
from camserver.services.web.routing import Routes
from camserver.store import delivery_pages
from camserver.store.delivery_pages import DeliveryFilter, DeliverySummary
from camserver.wire import api
from camserver.wire.api.receivers import DeliveryKindName, DeliveryState

routes = Routes()

PAGE_USUAL = 50

DeliveryUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
Statuses = Annotated[list[DeliveryState], Query(alias="status", max_length=7)]
Kinds = Annotated[list[DeliveryKindName], Query(alias="kind", max_length=6)]
Uuid = Annotated[str | None, Query(pattern=api.UUID_PATTERN)]


@routes.get("/api/deliveries", Permission.MANAGE_DELIVERIES)
async def list_deliveries(
    call: TheCall,
    statuses: Statuses = [],  # noqa: B006 - read by FastAPI, which gives each call its own
    kinds: Kinds = [],  # noqa: B006 - as above
    receiver: Uuid = None,
    event: Uuid = None,
    parent: Uuid = None,
    from_ms: From = None,
    to_ms: To = None,
    before: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=delivery_pages.PAGE_MAX)] = PAGE_USUAL,
) -> api.DeliveryPage:
    """Deliveries, newest first. Filters narrow; several values of one are alternatives."""
    check_times(from_ms, to_ms)
    wanted = DeliveryFilter(tuple(statuses), tuple(kinds), receiver, event, parent, from_ms, to_ms)
    found = await call.store.read(delivery_pages.page, wanted, before, limit)
    return api.DeliveryPage(
        deliveries=[_shown(one) for one in found],
        next_before=found[-1].cursor if len(found) == limit else None,
    )


@routes.get("/api/deliveries/{delivery_uuid}", Permission.MANAGE_DELIVERIES)
async def get_delivery(call: TheCall, delivery_uuid: DeliveryUuid) -> api.Delivery:
    """One delivery."""
    return _shown(await call.store.read(delivery_pages.get, delivery_uuid))


@routes.post("/api/deliveries/requeue", Permission.MANAGE_DELIVERIES, within_sites=True, repeat=Repeat.ANSWER)
async def requeue_deliveries(call: TheCall, asked: api.RequeueAsked) -> api.Requeued:
    """Queues dead deliveries again, oldest first, up to 1000 at a time."""
    check_times(asked.from_ms, asked.to_ms, ("from_ms", "to_ms"))
    wanted = DeliveryFilter(
        kinds=() if asked.kind is None else (asked.kind,),
        receiver_uuid=asked.receiver_uuid,
        from_ms=asked.from_ms,
        to_ms=asked.to_ms,
    )
    return api.Requeued(count=await call.store.write(delivery_pages.requeue_all, wanted, call.address, call.now_ms))


@routes.post(
    "/api/deliveries/{delivery_uuid}/requeue", Permission.MANAGE_DELIVERIES, within_sites=True, repeat=Repeat.ANSWER
)
async def requeue_delivery(call: TheCall, delivery_uuid: DeliveryUuid) -> api.Delivery:
    """Queues one dead delivery again. Its attempts and its age begin anew; its id stays."""
    return _shown(await call.store.write(delivery_pages.requeue, delivery_uuid, call.address, call.now_ms))


def _shown(one: DeliverySummary) -> api.Delivery:
    return api.Delivery.model_validate(
        {**asdict(one), "result": None if one.result is None else json.loads(one.result)}
    )
