"""The active vocabulary's words, so that pages can name what they show."""

from camserver.domain.people import Permission
from camserver.domain.phrases import OWN_TAGS
from camserver.domain.vocabulary import INVESTIGATION_ONLY
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import active_vocabulary, shown_primary_event, shown_tag, shown_tags
from camserver.services.web.routing import Routes
from camserver.wire import api

routes = Routes()


@routes.get("/api/vocabulary", Permission.READ)
async def get_vocabulary(call: TheCall) -> api.Vocabulary:
    """Primary events and tags with their labels; tags for investigation only for those who may investigate.

    The server's own tags are among them.
    """
    active = await active_vocabulary(call)
    own = [tag_id for tag_id in OWN_TAGS if not active.has(tag_id)]
    all_groups = call.principal.may(Permission.INVESTIGATE)
    return api.Vocabulary(
        schema_version=active.version,
        primary_events=[shown_primary_event(name) for name in active.primary_events],
        tags=[
            *(shown_tag(tag) for tag in active.tags if all_groups or tag.group != INVESTIGATION_ONLY),
            *shown_tags(active, own),
        ],
    )
