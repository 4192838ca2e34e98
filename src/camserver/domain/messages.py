"""What people are told, in Japanese and English: observed facts only (decision 25).

A text is made of where, what, when, and the labels of tags that may be notified. Nothing else can get in: `Facts` has
no place for a model's words, and a tag is looked up in the vocabulary, which says whether it may be told. Who is
told, and when, is in routing and notices; how a text is sent is the clients' business.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final

from camserver.domain.notices import BACK, CONTINUES, LATE_INCIDENT, SEVERITY_ROSE
from camserver.domain.phrases import (
    OWN_TAGS,
    Phrase,
    camera_cause_phrase,
    camera_issue_over_phrase,
    camera_issue_phrase,
    primary_event_phrase,
    severity_phrase,
)
from camserver.domain.vocabulary import Vocabulary

LABELS_MAX: Final = 8
NAME_MAX_CHARS: Final = 128
# Change the direction of what follows them, so a name that holds one could make a text read otherwise.
_DIRECTIONS = dict.fromkeys((0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_DAYS_JA: Final = "月火水木金土日"
_DAYS_EN: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Language(StrEnum):
    JA = "ja"
    EN = "en"


@dataclass(frozen=True, slots=True)
class Facts:
    """What was observed. Times are ms; `tags` are ids as the analyzer gave them, allowed or not."""

    reason: str  # of the notice, see domain.notices
    site: str
    camera_id: str
    camera: str
    zone: tzinfo  # of the site
    primary_event: str
    severity: int
    tags: tuple[str, ...]
    start_at: int
    last_seen_at: int
    end_at: int | None
    received_at: int  # when the server got the picture the notice is about
    event_uuid: str
    incident_uuid: str
    subject: str = ""  # the kind of a camera's own issue, '' for what the camera saw
    cause: str = ""  # of an issue
    cameras_more: int = 0  # other cameras of the site that it is about, too
    is_unclear: bool = False  # the analyzer could not make out what it was

    @property
    def is_late(self) -> bool:
        return self.reason == LATE_INCIDENT


@dataclass(frozen=True, slots=True)
class Telling:
    """What a message says besides its facts."""

    held_back: int = 0  # notices of this camera that this receiver did not get since the last message
    is_last_of_hour: bool = False  # the receiver's hourly cap is reached with it
    link: str | None = None  # the event's page, after sign-in
    picture_link: str | None = None  # opens the picture for whoever has it


@dataclass(frozen=True, slots=True)
class Text:
    """A message as people read it. No line holds a line break or another control character."""

    language: Language
    title: str
    lines: tuple[str, ...]
    link: str | None = None
    picture_link: str | None = None

    @property
    def plain(self) -> str:
        return "\n".join((self.title, *self.lines, *filter(None, (self.link, self.picture_link))))


def render(facts: Facts, vocabulary: Vocabulary, language: Language, telling: Telling) -> Text:
    """The message about an event or about a camera's own issue."""
    is_issue = bool(facts.subject)
    lines = [
        *(_issue_lines(facts, language) if is_issue else _event_lines(facts, vocabulary, language)),
        *_telling_lines(telling, language),
    ]
    return Text(language, _title(facts, language), tuple(lines), telling.link, telling.picture_link)


def ready_text(texts: Mapping[str, object], language: Language, link: str | None = None) -> Text:
    """A text that was written before, such as a summary: `{"ja": {"title": …, "lines": […]}, "en": …}`."""
    chosen = texts.get(language.value) or texts.get(Language.EN.value)
    if not isinstance(chosen, Mapping):
        return Text(language, "camserver", (), link)
    lines = chosen.get("lines")
    return Text(
        language,
        one_line(str(chosen.get("title", "camserver")), 250),
        tuple(one_line(str(line), 500) for line in lines) if isinstance(lines, list | tuple) else (),
        link,
    )


def trial_texts(receiver: str) -> dict[str, object]:
    """What a receiver gets when people try it, as `ready_text` takes it."""
    name = one_line(receiver)
    return {
        "ja": {
            "title": "camserver テスト通知",
            "lines": [f"通知先「{name}」に届いています。", "これは設定を確かめるためのメッセージです。"],
        },
        "en": {
            "title": "camserver test message",
            "lines": [f'The receiver "{name}" works.', "This message was sent to try the settings."],
        },
    }


def document(facts: Facts, vocabulary: Vocabulary, text: Text, held_back: int) -> dict[str, object]:
    """The same for programs. Times are ISO 8601 with the site's offset, and UTC ms."""
    return {
        "kind": "camera_issue" if facts.subject else "event",
        "reason": facts.reason,
        "title": text.title,
        "lines": list(text.lines),
        "language": text.language.value,
        "site": one_line(facts.site),
        "camera_id": facts.camera_id,
        "camera": one_line(facts.camera),
        "primary_event": facts.primary_event,
        "issue": facts.subject or None,
        "cause": facts.cause or None,
        "cameras_more": facts.cameras_more,
        "severity": facts.severity,
        "unclear": facts.is_unclear,
        "tags": [{"id": tag_id, "label": label} for tag_id, label in _allowed(facts, vocabulary, text.language)],
        "start_at": facts.start_at,
        "start_at_local": _iso(facts.start_at, facts.zone),
        "last_seen_at": facts.last_seen_at,
        "last_seen_at_local": _iso(facts.last_seen_at, facts.zone),
        "end_at": facts.end_at,
        "late": facts.is_late,
        "received_at": facts.received_at,
        "held_back": held_back,
        "event_uuid": facts.event_uuid,
        "incident_uuid": facts.incident_uuid,
        "link": text.link,
        "picture_link": text.picture_link,
    }


@lru_cache(maxsize=1024)  # The same few names and labels stand in most messages.
def one_line(text: str, chars_max: int = NAME_MAX_CHARS) -> str:
    """A name as it can stand in a title or a mail's header: one line, bounded, nothing invisible that steers."""
    shown = "".join(
        " " if not one.isprintable() and not one.isspace() else one for one in text.translate(_DIRECTIONS)
    )
    shown = " ".join(shown.split())
    return shown if len(shown) <= chars_max else shown[: chars_max - 1] + "…"


def local_time(at_ms: int, zone: tzinfo, language: Language) -> str:
    """With day and zone, so that the two hours of a night in autumn can be told apart."""
    local = datetime.fromtimestamp(at_ms / 1000, zone)
    if language is Language.JA:
        day = f"{local.year}年{local.month}月{local.day}日({_DAYS_JA[local.weekday()]})"
    else:
        day = f"{_DAYS_EN[local.weekday()]} {local:%Y-%m-%d}"
    return f"{day} {local:%H:%M:%S} {_zone_name(local)}"


def duration(length_ms: int, language: Language) -> str:
    """In at most two units, e.g. 1 h 20 min."""
    seconds = max(length_ms, 0) // 1000
    units = (("日", "d", 86_400), ("時間", "h", 3600), ("分", "min", 60), ("秒", "s", 1))
    parts: list[str] = []
    for ja, en, length in units:
        count, seconds = divmod(seconds, length)
        if count or (length == 1 and not parts):
            parts.append(f"{count}{ja}" if language is Language.JA else f"{count} {en}")
    return ("" if language is Language.JA else " ").join(parts[:2])


def _title(facts: Facts, language: Language) -> str:
    if facts.subject:
        phrase = (camera_issue_over_phrase if facts.reason == BACK else camera_issue_phrase)(facts.subject)
    else:
        phrase = primary_event_phrase(facts.primary_event)
    marks = {
        LATE_INCIDENT: Phrase("【遅延】", "[Late] "),
        SEVERITY_ROSE: Phrase("【重要度上昇】", "[More severe] "),
        CONTINUES: Phrase("【継続】", "[Ongoing] "),
    }
    mark = _in(marks.get(facts.reason, Phrase("", "")), language)
    where = f"{one_line(facts.site)} {one_line(facts.camera)}"
    return (
        f"{mark}{where}：{one_line(phrase.ja)}"
        if language is Language.JA
        else f"{mark}{where}: {one_line(phrase.en)}"
    )


def _event_lines(facts: Facts, vocabulary: Vocabulary, language: Language) -> Iterable[str]:
    grave = severity_phrase(facts.severity)
    of_three = Phrase(f"{grave.ja}（{facts.severity}/3）", f"{grave.en} ({facts.severity}/3)")
    yield _pair(Phrase("重要度", "Severity"), _in(of_three, language), language)
    if facts.is_unclear:
        unsure = Phrase("はっきりしません。画像を確認してください", "not certain; please look at the picture")
        yield _pair(Phrase("判定", "Finding"), _in(unsure, language), language)
    labels = [label for _, label in _allowed(facts, vocabulary, language)]
    if labels:
        shown = ("、" if language is Language.JA else ", ").join(labels[:LABELS_MAX])
        yield _pair(Phrase("内容", "Details"), shown + ("…" if len(labels) > LABELS_MAX else ""), language)
    yield _pair(Phrase("検知時刻", "Seen at"), local_time(facts.start_at, facts.zone, language), language)
    if facts.last_seen_at > facts.start_at:
        at = local_time(facts.last_seen_at, facts.zone, language)
        yield _pair(Phrase("最終確認", "Last seen at"), at, language)
    if facts.is_late:
        at = local_time(facts.received_at, facts.zone, language)
        yield _pair(Phrase("受信時刻（遅れて届きました）", "Received late, at"), at, language)


def _issue_lines(facts: Facts, language: Language) -> Iterable[str]:
    if facts.cause and facts.reason != BACK:
        yield _pair(Phrase("原因", "Cause"), one_line(_in(camera_cause_phrase(facts.cause), language)), language)
    if facts.cameras_more:
        more = Phrase(
            f"同じサイトのほか {facts.cameras_more} 台も見ているワーカーがありません",
            f"{facts.cameras_more} other cameras of this site have no worker either",
        )
        yield _pair(Phrase("範囲", "How many"), _in(more, language), language)
    yield _pair(Phrase("発生", "Since"), local_time(facts.start_at, facts.zone, language), language)
    if facts.end_at is not None:
        yield _pair(Phrase("復旧", "Back since"), local_time(facts.end_at, facts.zone, language), language)
        yield _pair(Phrase("継続時間", "Lasted"), duration(facts.end_at - facts.start_at, language), language)


def _telling_lines(telling: Telling, language: Language) -> Iterable[str]:
    if telling.held_back > 0:
        count = telling.held_back
        yield (
            f"ほか +{count} 件（このカメラについて、前回の通知のあと送らなかったもの）"
            if language is Language.JA
            else f"+{count} more of this camera since the last message"
        )
    if telling.is_last_of_hour:
        yield _in(
            Phrase(
                "1時間の上限に達しました。次の時間まで件数だけを数えます。",
                "The hourly limit is reached: until the next hour, further ones are only counted.",
            ),
            language,
        )


def _allowed(facts: Facts, vocabulary: Vocabulary, language: Language) -> list[tuple[str, str]]:
    """The tags that may be told, with their labels. One that the vocabulary does not know may not."""
    found = []
    for tag_id in dict.fromkeys(facts.tags):
        tag = vocabulary.tag(tag_id)
        if tag is not None and tag.notify_allowed:
            found.append((tag_id, one_line(tag.label_ja if language is Language.JA else tag.label_en)))
        elif tag is None and tag_id in OWN_TAGS:
            found.append((tag_id, _in(OWN_TAGS[tag_id], language)))
    return found


def _pair(name: Phrase, value: str, language: Language) -> str:
    return f"{name.ja}：{value}" if language is Language.JA else f"{name.en}: {value}"


def _in(phrase: Phrase, language: Language) -> str:
    return phrase.ja if language is Language.JA else phrase.en


def _iso(at_ms: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(at_ms / 1000, zone).isoformat(timespec="seconds")


def _zone_name(local: datetime) -> str:
    """The zone's abbreviation where it has one; zones without are named by their offset."""
    name = local.tzname() or ""
    return name if name[:1].isalpha() else f"UTC{name}"
