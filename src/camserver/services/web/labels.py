"""Words of the active vocabulary as people read them."""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any

from camserver.base.errors import Bug
from camserver.domain.phrases import OWN_TAGS, camera_cause_phrase, camera_issue_phrase, primary_event_phrase
from camserver.domain.reviews import label_phrase
from camserver.domain.vocabulary import NOTIFY_SAFE, Tag, Vocabulary, parse_vocabulary
from camserver.services.web.calls import Call
from camserver.services.web.written_rows import R, WrittenRows
from camserver.store import Store, vocabularies
from camserver.store.cameras import CameraHealth
from camserver.store.worker_news import StreamFault
from camserver.wire import api


async def active_vocabulary(call: Call) -> Vocabulary:
    found = await call.web.remembered.get(("vocabulary",), lambda: _read_active(call.web.store))
    if found is None:
        raise Bug("no vocabulary is active")
    return found


async def _read_active(store: Store) -> Vocabulary:
    document = await store.read(vocabularies.active)
    return _parsed(document.text)


@lru_cache(maxsize=4)
def _parsed(text: str) -> Vocabulary:
    """By its text, so that whatever the store calls active is what is answered."""
    return parse_vocabulary(json.loads(text))


def shown_tags(vocabulary: Vocabulary, tag_ids: Iterable[str]) -> list[api.Tag]:
    """Tags with their labels. One of an older vocabulary is shown by its id, the server's own by their phrases."""
    return [shown_tag(vocabulary.tag(tag_id) or _unknown(vocabulary, tag_id)) for tag_id in tag_ids]


def group_of(vocabulary: Vocabulary, tag_id: str) -> str:
    """The tag's group; the server's own tags are nothing that anybody investigates."""
    return vocabulary.group_of(tag_id) if vocabulary.has(tag_id) or tag_id not in OWN_TAGS else NOTIFY_SAFE


def _unknown(vocabulary: Vocabulary, tag_id: str) -> Tag:
    own = OWN_TAGS.get(tag_id)
    return Tag(
        id=tag_id,
        group=group_of(vocabulary, tag_id),
        label_ja=tag_id if own is None else own.ja,
        label_en=tag_id if own is None else own.en,
        severity_default=0,
        notify_allowed=False,
        retention_hint="normal",
    )


# Tags and answers don't change, so each is made once; a vocabulary has some hundred.
@lru_cache(maxsize=4096)
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


def shown_review_label(label: str) -> api.Label:
    """What a language model chose from its closed list."""
    phrase = label_phrase(label)
    return api.Label(id=label, label_ja=phrase.ja, label_en=phrase.en)


def shown_issue(kind: str) -> api.Label:
    phrase = camera_issue_phrase(kind)
    return api.Label(id=kind, label_ja=phrase.ja, label_en=phrase.en)


def shown_cause(cause: str) -> api.Label | None:
    """Why a camera does not work, in plain words; None when there is nothing to say."""
    if not cause:
        return None
    phrase = camera_cause_phrase(cause)
    return api.Label(id=cause, label_ja=phrase.ja, label_en=phrase.en)


class PlainTags(dict[str, dict[str, object]]):
    """Tags of a vocabulary as they stand in an answer, each made when it is first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.lists: dict[str, list[dict[str, object]]] = {}  # by ids that are parted by commas
        self._written: dict[object, WrittenRows[Any]] = {}  # by how they are written

    def __missing__(self, tag_id: str) -> dict[str, object]:
        [tag] = shown_tags(self.vocabulary, [tag_id])
        if len(self) >= PLAIN_TAGS_MAX:
            self.clear()
        self[tag_id] = plain = tag.model_dump()
        return plain

    def of_text(self, text: str) -> list[dict[str, object]]:
        """Of ids that are parted by commas, sorted. It is not to be changed: the next answer has it, too."""
        found = self.lists.get(text)
        if found is None:
            if len(self.lists) >= PLAIN_TAGS_MAX:
                self.lists.clear()
            found = self.lists[text] = [self[tag_id] for tag_id in sorted(text.split(","))]
        return found

    def written(self, plain: "Callable[[PlainTags, R], dict[str, Any]]") -> WrittenRows[R]:
        """Rows of which `plain` says how they stand in an answer with these tags."""
        found = self._written.get(plain)
        if found is None:
            found = self._written[plain] = WrittenRows(partial(plain, self))
        return found


# Of the vocabulary that was asked for last, which is the active one.
PLAIN_TAGS_MAX = 4_096
_plain_tags: PlainTags | None = None


def plain_tags(vocabulary: Vocabulary, tag_ids: Iterable[str]) -> list[dict[str, object]]:
    """What `shown_tags` gives, as it stands in an answer."""
    known = plain_tags_of(vocabulary)
    return [known[tag_id] for tag_id in tag_ids]


def plain_tags_of(vocabulary: Vocabulary) -> PlainTags:
    global _plain_tags
    if _plain_tags is None or _plain_tags.vocabulary is not vocabulary:
        _plain_tags = PlainTags(vocabulary)
    return _plain_tags


@lru_cache(maxsize=256)
def plain_issue(kind: str) -> dict[str, object]:
    return shown_issue(kind).model_dump()


@lru_cache(maxsize=256)
def plain_cause(cause: str) -> dict[str, object] | None:
    label = shown_cause(cause)
    return None if label is None else label.model_dump()


def shown_fault(fault: StreamFault | None, manages: bool) -> api.StreamFault | None:
    """Of one of a camera's streams. Others than managers are shown only what keeps pictures from them now."""
    if fault is None or not (manages or fault.is_for_everybody):
        return None
    cause = camera_cause_phrase(fault.fault or "error")
    return api.StreamFault(
        stream=fault.stream,
        cause=api.Label(id=fault.fault or "error", label_ja=cause.ja, label_en=cause.en),
        message=fault.message,
        at=fault.at,
        over_at=fault.over_at,
    )


def shown_health(health: CameraHealth) -> api.CameraHealth:
    return api.CameraHealth.model_validate(
        {
            "state": health.state,
            "since": health.since,
            "cause": shown_cause(health.cause),
            "issues": [
                {**shown_issue(issue.kind).model_dump(), "since": issue.since, "event_uuid": issue.event_uuid}
                for issue in health.issues
            ],
        }
    )
