"""The camera to watch now."""

from camserver.domain.people import Permission, Principal, Role
from camserver.domain.suggest import phrase_of
from camserver.services.web.calls import Call, TheCall
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import suggestions
from camserver.store.suggestions import Shown
from camserver.wire import api

routes = Routes()


@routes.get("/api/suggest", Permission.READ)
async def get_suggestion(call: TheCall) -> api.SuggestionShown:
    """Which camera to watch now, and why. The feed tells of a change as `suggestion`."""
    policy = call.web.settings.suggest
    if await call.store.read(suggestions.is_due, policy, call.now_ms):
        # What it is does not depend on who asks, so it is brought up to now in nobody's name.
        nobody = Principal(call.principal.tenant_id, None, Role.VIEWER)
        await call.web.store.as_(nobody).write(suggestions.advance, policy, call.now_ms)
    return await _current(call)


@routes.post("/api/suggest/manual", Permission.MANAGE_CAMERAS, repeat=Repeat.ANSWER)
async def choose_suggestion(call: TheCall, asked: api.SuggestionAsked) -> api.SuggestionShown:
    """Chooses the camera to watch for a while; what happens elsewhere does not change it until then."""
    await call.store.write(suggestions.choose, asked.camera_id, asked.duration_sec, call.address, call.now_ms)
    return await _current(call)


@routes.delete("/api/suggest", Permission.MANAGE_CAMERAS, status_code=204, repeat=Repeat.ANSWER)
async def end_suggestion(call: TheCall) -> None:
    """Ends the suggestion; what has happened so far is not suggested again."""
    await call.store.write(suggestions.dismiss, call.web.settings.suggest, call.address, call.now_ms)


async def _current(call: Call) -> api.SuggestionShown:
    shown = await call.store.read(suggestions.current, call.now_ms)
    return api.SuggestionShown(suggestion=None if shown is None else _described(call, shown))


def _described(call: Call, shown: Shown) -> api.Suggestion:
    one, words = shown.suggestion, phrase_of(shown.suggestion, shown.severity)
    return api.Suggestion(
        camera_id=shown.camera_id,
        camera_name=shown.camera_name,
        site=shown.site,
        score=round(one.score_at(call.now_ms, call.web.settings.suggest), 1),
        reason_code=one.reason,
        reason=words.ja if call.language == "ja" else words.en,
        manual=one.manual,
        event_uuid=shown.event_uuid,
        since=one.since,
        until=one.until,
    )
