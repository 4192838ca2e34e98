"""Words of the active vocabulary as people read them."""

import json
from collections.abc import Iterable
from functools import lru_cache

from camserver.domain.phrases import primary_event_phrase
from camserver.domain.vocabulary import Tag, Vocabulary, parse_vocabulary
from camserver.services.web.calls import Call
from camserver.store import vocabularies
from camserver.wire import api


async def active_vocabulary(call: Call) -> Vocabulary:
    document = await call.web.store.read(vocabularies.active)
    return _parsed(document.text)


@lru_cache(maxsize=4)
def _parsed(text: str) -> Vocabulary:
    """By its text, so that whatever the store calls active is what is answered."""
    return parse_vocabulary(json.loads(text))


def shown_tags(vocabulary: Vocabulary, tag_ids: Iterable[str]) -> list[api.Tag]:
    """Tags with their labels. One of an older vocabulary is shown by its id."""
    return [shown_tag(vocabulary.tag(tag_id) or _unknown(vocabulary, tag_id)) for tag_id in tag_ids]


def _unknown(vocabulary: Vocabulary, tag_id: str) -> Tag:
    return Tag(
        id=tag_id,
        group=vocabulary.group_of(tag_id),
        label_ja=tag_id,
        label_en=tag_id,
        severity_default=0,
        notify_allowed=False,
        retention_hint="normal",
    )


def shown_tag(tag: Tag) -> api.Tag:
    return api.Tag.model_validate(
        {
            "id": tag.id,
            "group": tag.group,
            "label_ja": tag.label_ja,
            "label_en": tag.label_en,
            "severity_default": tag.severity_default,
        }
    )


def shown_primary_event(primary_event: str) -> api.Label:
    phrase = primary_event_phrase(primary_event)
    return api.Label(id=primary_event, label_ja=phrase.ja, label_en=phrase.en)
