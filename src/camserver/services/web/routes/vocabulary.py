"""The active vocabulary's words, so that pages can name what they show; and which vocabularies there are."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path

from camserver.base.errors import BadInput, Conflict
from camserver.base.plain_json import plain_json
from camserver.domain.people import Permission
from camserver.domain.phrases import OWN_TAGS
from camserver.domain.vocabulary import INVESTIGATION_ONLY, parse_vocabulary
from camserver.services.web.calls import TheCall
from camserver.services.web.labels import active_vocabulary, shown_primary_event, shown_tag, shown_tags
from camserver.services.web.once import Repeat
from camserver.services.web.routing import Routes
from camserver.store import vocabulary_choices
from camserver.store.vocabularies import Document
from camserver.store.vocabulary_choices import Version
from camserver.wire import api

routes = Routes()

SchemaVersion = Annotated[str, Path(min_length=1, max_length=32)]


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


@routes.get("/api/vocabulary/versions", Permission.MANAGE_SYSTEM)
async def list_vocabularies(call: TheCall) -> api.VocabularyVersions:
    """The vocabularies there are, newest first."""
    return _versions(await call.web.store.read(vocabulary_choices.versions))


@routes.get("/api/vocabulary/versions/{schema_version}", Permission.MANAGE_SYSTEM)
async def get_vocabulary_version(call: TheCall, schema_version: SchemaVersion) -> api.VocabularyDocument:
    """One of them as a whole, as analyzers get it."""
    found = await call.web.store.read(vocabulary_choices.find, schema_version)
    return api.VocabularyDocument(schema_version=found.version, document=dict(found.parsed()))


@routes.post("/api/vocabulary", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def add_vocabulary(call: TheCall, asked: api.NewVocabulary) -> api.VocabularyVersions:
    """Adds a vocabulary that was checked; it is used when it is made the active one."""
    parsed = parse_vocabulary(asked.document)
    text = plain_json(asked.document)
    if text is None:
        raise BadInput(
            "the vocabulary is too long, too deep or holds characters that can't be stored; shorten or correct it",
            reason="vocabulary_unstorable",
        )
    document = Document(parsed.version, text)
    added = await call.store.write_beyond(vocabulary_choices.add, document, call.address, call.now_ms)
    return _versions(added)


@routes.post("/api/vocabulary/active", Permission.MANAGE_SYSTEM, repeat=Repeat.ANSWER)
async def use_vocabulary(call: TheCall, asked: api.VocabularyChoice) -> api.VocabularyVersions:
    """Makes one of them the active one, for all tenants."""
    pinned = call.web.settings.vocabulary.schema_version
    if pinned is not None and pinned != asked.schema_version:
        raise Conflict(
            f"vocabulary.schema_version (SCHEMA_VERSION) is set to {pinned}, and the next start would go back to it; "
            "take it out of the settings to choose here",
            reason="vocabulary_pinned",
            version=pinned,
        )
    used = await call.store.write_beyond(vocabulary_choices.use, asked.schema_version, call.address, call.now_ms)
    return _versions(used)


def _versions(found: tuple[Version, ...]) -> api.VocabularyVersions:
    return api.VocabularyVersions(versions=[api.VocabularyVersion.model_validate(asdict(one)) for one in found])
