"""Rules of who is told of what, and what they would do with an event."""

from typing import Annotated, Any

from fastapi import Path, Query

from camserver.base.errors import NotFound
from camserver.base.zones import zone_of
from camserver.domain import messages
from camserver.domain.messages import Language
from camserver.domain.notices import INCIDENT_OPENED
from camserver.domain.people import Permission
from camserver.domain.routing import VERDICTS, Route, Verdict, check_events, route
from camserver.domain.vocabulary import Vocabulary
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.labels import active_vocabulary
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import event_pages, notice_facts, notify_rules
from camserver.store.notice_facts import EventRow, Listener
from camserver.store.notify_rules import RuleChange, RuleSummary, RuleValues
from camserver.wire import api

routes = Routes()

RuleUuid = Annotated[str, Path(pattern=api.UUID_PATTERN)]
# Where null says something of its own: all, or none of it.
_NULLABLE = frozenset({"sites", "camera_ids", "primary_events", "receivers", "quiet"})


@routes.get("/api/notify/rules", Permission.MANAGE_DELIVERIES)
async def list_notify_rules(call: TheCall) -> api.NotifyRuleList:
    """All rules, in the order they are tried."""
    return _listed(await call.store.read(notify_rules.listed))


@routes.post("/api/notify/rules", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER, status_code=201)
async def add_notify_rule(call: TheCall, asked: api.NotifyRuleAsked) -> api.NotifyRule:
    """Adds a rule behind the others."""
    return _shown(await call.store.write(notify_rules.add, await _values(call, asked), call.address, call.now_ms))


@routes.post("/api/notify/rules/order", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER)
async def order_notify_rules(call: TheCall, asked: api.NotifyRuleOrder) -> api.NotifyRuleList:
    """Puts the rules into another order."""
    return _listed(await call.store.write(notify_rules.reorder, tuple(asked.rule_uuids), call.address, call.now_ms))


@routes.get("/api/notify/rules/{rule_uuid}", Permission.MANAGE_DELIVERIES)
async def get_notify_rule(call: TheCall, rule_uuid: RuleUuid) -> api.NotifyRule:
    """One rule."""
    return _shown(await call.store.read(notify_rules.get, rule_uuid))


@routes.patch("/api/notify/rules/{rule_uuid}", Permission.MANAGE_DELIVERIES, repeat=Repeat.ANSWER)
async def change_notify_rule(call: TheCall, rule_uuid: RuleUuid, asked: api.NotifyRuleChange) -> api.NotifyRule:
    """Changes what is given of a rule; its place stays. Dispatchers go by it at once."""
    check_events(asked.primary_events, await active_vocabulary(call))
    values = {name: _frozen(getattr(asked, name)) for name in asked.model_fields_set}
    given = {name: value for name, value in values.items() if value is not None or name in _NULLABLE}
    # What is not given is not written, so its values here mean nothing.
    wanted = RuleChange(RuleValues(**{"name": "", **given}), frozenset(given))
    return _shown(await call.store.write(notify_rules.change, rule_uuid, wanted, call.address, call.now_ms))


@routes.delete("/api/notify/rules/{rule_uuid}", Permission.MANAGE_DELIVERIES, status_code=204, repeat=Repeat.ANSWER)
async def remove_notify_rule(call: TheCall, rule_uuid: RuleUuid) -> None:
    """Removes a rule."""
    await call.store.write(notify_rules.remove, rule_uuid, call.address, call.now_ms)


@routes.get("/api/notify/preview", Permission.MANAGE_DELIVERIES)
async def preview_notification(
    call: TheCall, event: Annotated[str, Query(pattern=api.UUID_PATTERN)]
) -> api.NotifyPreview:
    """Which receivers would be told of an event if it began now, with what words, and why the others would not."""
    # By the caller's reach; what is read afterwards is not narrowed.
    await call.store.read(event_pages.get, event)
    found = await call.web.store.read(
        notice_facts.preview, call.principal.tenant_id, event, INCIDENT_OPENED, call.now_ms
    )
    if found is None:
        raise NotFound(f"there is no event {event}; it may be past its retention", reason="no_event")
    telling, listeners = found
    zone = zone_of(telling.event.timezone)
    decided = route(telling.event.notice, telling.rules, telling.snoozes, telling.recipients, zone, call.now_ms)
    vocabulary = await active_vocabulary(call)
    by_id = {one.receiver_id: one for one in listeners}
    return api.NotifyPreview(
        event_uuid=event,
        receivers=[
            _previewed(one, by_id[one.receiver_id], telling.event, vocabulary)
            for one in decided
            if one.receiver_id in by_id
        ],
    )


def _previewed(decided: Route, listener: Listener, event: EventRow, vocabulary: Vocabulary) -> api.PreviewedReceiver:
    verdict, until = decided.verdict, decided.until
    if verdict is Verdict.SEND and listener.cooldown_until is not None:
        verdict, until = Verdict.COOLDOWN, listener.cooldown_until
    language = Language.EN if listener.language == Language.EN.value else Language.JA
    facts = event.facts(INCIDENT_OPENED, zone_of(event.timezone))
    text = messages.render(facts, vocabulary, language, messages.Telling(listener.held_back))
    phrase = VERDICTS[verdict]
    return api.PreviewedReceiver.model_validate(
        {
            "receiver_uuid": listener.receiver_uuid,
            "name": listener.name,
            "kind": listener.kind,
            "verdict": verdict.value,
            "why": api.Label(id=verdict.value, label_ja=phrase.ja, label_en=phrase.en),
            "rule": decided.rule,
            "until": until,
            "held_back": listener.held_back,
            "language": language.value,
            "title": text.title,
            "lines": list(text.lines),
        }
    )


async def _values(call: Call, asked: api.NotifyRuleAsked) -> RuleValues:
    check_events(asked.primary_events, await active_vocabulary(call))
    return RuleValues(**{name: _frozen(getattr(asked, name)) for name in api.NotifyRuleAsked.model_fields})


def _frozen(value: Any) -> Any:
    """What was asked for, as rules hold it."""
    if isinstance(value, api.QuietHours):
        return value.model_dump(by_alias=True)
    return tuple(value) if isinstance(value, list) else value


def _listed(rules: tuple[RuleSummary, ...]) -> api.NotifyRuleList:
    return api.NotifyRuleList(rules=[_shown(one) for one in rules])


def _shown(rule: RuleSummary) -> api.NotifyRule:
    values, quiet = rule.values, rule.values.quiet
    return api.NotifyRule.model_validate(
        {
            "rule_uuid": rule.rule_uuid,
            "name": values.name,
            "enabled": values.enabled,
            "sites": values.sites,
            "camera_ids": values.camera_ids,
            "primary_events": values.primary_events,
            "min_severity": values.min_severity,
            "receivers": values.receivers,
            "quiet": None
            if quiet is None
            else {
                "begin": quiet["from"],
                "end": quiet["to"],
                "days": quiet["days"],
                "through_severity": quiet["through_severity"],
            },
            "gone": rule.gone,
            "created_at": rule.created_at,
            "updated_at": rule.updated_at,
        }
    )
