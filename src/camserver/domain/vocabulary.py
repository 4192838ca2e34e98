"""The vocabulary: which primary events and tags an analyzer may answer with (the seeds call it the schema).

`parse_vocabulary` checks a document and says what is wrong with it by name. Which vocabulary is active, and
reading the shipped file, are not decided here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from camserver.base.errors import BadInput

SHIPPED_VERSION = "2025-12-28.1"
SHIPPED_FILE = f"vocabulary_{SHIPPED_VERSION}.json"  # beside this module

NOTIFY_SAFE = "notify_safe"
INVESTIGATION_ONLY = "investigation_only"
NO_EVENT = "none"
UNKNOWN_EVENT = "unknown"
HAZARD_PREFIX = "hazard."

# Bounds keep a foreign document from filling rows, pages and requests.
MAX_TAGS = 1000
MAX_PRIMARY_EVENTS = 64
MAX_LABEL_CHARS = 120
MAX_DESCRIPTION_CHARS = 500
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_TAG_ID = re.compile(r"(?=.{3,64}\Z)[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_HINTS = ("normal", "quarantine")  # `case` is given by people only


@dataclass(frozen=True, slots=True)
class Tag:
    id: str
    group: str
    label_ja: str
    label_en: str
    severity_default: int  # 0..3
    notify_allowed: bool
    retention_hint: str  # normal or quarantine
    description_ja: str | None = None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A checked vocabulary. For a tag it does not know it answers the careful way: never notified."""

    version: str
    primary_events: tuple[str, ...]
    tags: tuple[Tag, ...]
    _by_id: Mapping[str, Tag] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_id", {tag.id: tag for tag in self.tags})

    def tag(self, tag_id: str) -> Tag | None:
        return self._by_id.get(tag_id)

    def has(self, tag_id: str) -> bool:
        return tag_id in self._by_id

    def group_of(self, tag_id: str) -> str:
        """The tag's group; a tag this vocabulary does not know is for investigation only."""
        tag = self._by_id.get(tag_id)
        return tag.group if tag is not None else INVESTIGATION_ONLY

    def notify_allowed(self, tag_id: str) -> bool:
        tag = self._by_id.get(tag_id)
        return tag is not None and tag.notify_allowed


def is_hazard(tag_id: str) -> bool:
    return tag_id.startswith(HAZARD_PREFIX)


def parse_vocabulary(document: Mapping[str, object]) -> Vocabulary:
    """A vocabulary from its document; raises BadInput naming the first thing that is wrong.

    Keys this version does not know are left alone, so that a newer document can still be used.
    """
    version = _text(document, "schema_version", "the vocabulary", 32)
    if not _VERSION.fullmatch(version):
        raise BadInput(
            f"Vocabulary: schema_version {version!r} may hold only letters, digits, dot, dash and underscore "
            "(at most 32). Correct the document.",
            reason="vocabulary_version",
        )
    groups = _parse_groups(document.get("tag_groups"))
    primary_events = _parse_primary_events(document.get("primary_events"))
    entries = document.get("tags")
    if not isinstance(entries, list) or not entries:
        raise BadInput(
            "Vocabulary: `tags` must be a list with at least one tag. Correct the document.", reason="vocabulary_tags"
        )
    if len(entries) > MAX_TAGS:
        raise BadInput(
            f"Vocabulary: {len(entries)} tags, at most {MAX_TAGS} are allowed. Remove some.",
            reason="vocabulary_tags_full",
            most=MAX_TAGS,
        )
    tags = tuple(_parse_tag(entry, position, groups) for position, entry in enumerate(entries))
    _refuse_repeats("tags", [tag.id for tag in tags])
    return Vocabulary(version=version, primary_events=primary_events, tags=tags)


def _parse_groups(value: object) -> frozenset[str]:
    """Group ids from an object keyed by id, or from a list of ids or of objects with an `id`."""
    names: list[object]
    if isinstance(value, Mapping):
        names = list(value)
    elif isinstance(value, list):
        names = [entry.get("id") if isinstance(entry, Mapping) else entry for entry in value]
    else:
        names = []
    known = {NOTIFY_SAFE, INVESTIGATION_ONLY}
    if set(map(str, names)) != known or len(names) != len(known):
        raise BadInput(
            f"Vocabulary: `tag_groups` must hold exactly {NOTIFY_SAFE} and {INVESTIGATION_ONLY}, "
            "because what may be notified depends on them. Correct the document.",
            reason="vocabulary_groups",
        )
    return frozenset(known)


def _parse_primary_events(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_PRIMARY_EVENTS:
        raise BadInput(
            f"Vocabulary: `primary_events` must be a list of 1 to {MAX_PRIMARY_EVENTS} names. Correct the document.",
            reason="vocabulary_events",
            most=MAX_PRIMARY_EVENTS,
        )
    names: list[str] = []
    for name in value:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadInput(
                f"Vocabulary: primary event {name!r} must be a lower-case name of at most 32 characters. Rename it.",
                reason="vocabulary_event_name",
            )
        names.append(name)
    _refuse_repeats("primary_events", names)
    for needed in (NO_EVENT, UNKNOWN_EVENT):
        if needed not in names:
            raise BadInput(
                f"Vocabulary: `primary_events` lacks {needed!r}, which the event rules need. Add it.",
                reason="vocabulary_event_missing",
                needed=needed,
            )
    return tuple(names)


def _parse_tag(entry: object, position: int, groups: frozenset[str]) -> Tag:
    if not isinstance(entry, Mapping):
        raise BadInput(
            f"Vocabulary: tags[{position}] is not an object. Correct the document.",
            reason="vocabulary_tag_form",
            position=position,
        )
    tag_id = _text(entry, "id", f"tags[{position}]", 64)
    if not _TAG_ID.fullmatch(tag_id):
        raise BadInput(
            f"Vocabulary: tags[{position}] has the id {tag_id!r}; it must look like `family.name`, lower "
            "case, at most 64 characters. Rename it.",
            reason="vocabulary_tag_id",
            position=position,
        )
    where = f"tag {tag_id}"
    group = _text(entry, "group", where, 32)
    if group not in groups:
        raise BadInput(
            f"Vocabulary: {where} is in the group {group!r}, which is not in `tag_groups`. Move it.",
            reason="vocabulary_tag_group",
            tag=tag_id,
        )
    severity = entry.get("severity_default")
    if isinstance(severity, bool) or not isinstance(severity, int) or not 0 <= severity <= 3:
        raise BadInput(
            f"Vocabulary: {where}: `severity_default` must be 0, 1, 2 or 3, not {severity!r}. Correct it.",
            reason="vocabulary_severity",
            tag=tag_id,
        )
    notify_allowed = entry.get("notify_allowed")
    if not isinstance(notify_allowed, bool):
        raise BadInput(
            f"Vocabulary: {where}: `notify_allowed` must be true or false. Correct it.",
            reason="vocabulary_notify",
            tag=tag_id,
        )
    if notify_allowed and group == INVESTIGATION_ONLY:
        raise BadInput(
            f"Vocabulary: {where} is {INVESTIGATION_ONLY} and notify_allowed at once. Choose one; such tags "
            "never go into a notification.",
            reason="vocabulary_never_notified",
            tag=tag_id,
        )
    hint = entry.get("retention_hint")
    if hint not in _HINTS:
        raise BadInput(
            f"Vocabulary: {where}: `retention_hint` must be normal or quarantine, not {hint!r}. Correct it.",
            reason="vocabulary_retention",
            tag=tag_id,
        )
    return Tag(
        id=tag_id,
        group=group,
        label_ja=_text(entry, "label_ja", where, MAX_LABEL_CHARS),
        # Only our own documents have English labels; an English reader can make sense of the id otherwise.
        label_en=_text(entry, "label_en", where, MAX_LABEL_CHARS) if "label_en" in entry else tag_id,
        severity_default=severity,
        notify_allowed=notify_allowed,
        retention_hint=str(hint),
        description_ja=(
            _text(entry, "description_ja", where, MAX_DESCRIPTION_CHARS) if "description_ja" in entry else None
        ),
    )


def _text(holder: Mapping[str, object], key: str, where: str, chars_max: int) -> str:
    value = holder.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > chars_max:
        raise BadInput(
            f"Vocabulary: `{key}` of {where} must be a text of 1 to {chars_max} characters. Correct the document.",
            reason="vocabulary_text",
            key=key,
            where=where,
            chars_max=chars_max,
        )
    return value


def _refuse_repeats(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(
                f"Vocabulary: `{what}` names {name!r} twice. Remove one.",
                reason="vocabulary_twice",
                what=what,
                named=name,
            )
        seen.add(name)
