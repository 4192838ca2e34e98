from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.messages import (
    Facts,
    Language,
    Telling,
    document,
    duration,
    local_time,
    one_line,
    ready_text,
    render,
    trial_texts,
)
from camserver.domain.notices import BACK, CONTINUES, INCIDENT_OPENED, LATE_INCIDENT, SEVERITY_ROSE
from camserver.domain.vocabulary import Tag, Vocabulary

from .build import MIN, SEC, T0, shipped_vocabulary

TOKYO = ZoneInfo("Asia/Tokyo")
BERLIN = ZoneInfo("Europe/Berlin")
VOCABULARY = shipped_vocabulary()
JA, EN = Language.JA, Language.EN


def facts(**changes: Any) -> Facts:
    values: dict[str, Any] = {
        "reason": INCIDENT_OPENED,
        "site": "本社",
        "camera_id": "cam_1",
        "camera": "玄関",
        "zone": TOKYO,
        "primary_event": "human",
        "severity": 2,
        "tags": ("count.single", "top_color.red"),
        "start_at": T0,
        "last_seen_at": T0,
        "end_at": None,
        "received_at": T0 + SEC,
        "event_uuid": "event",
        "incident_uuid": "incident",
    }
    return Facts(**{**values, **changes})


def test_an_event_in_japanese() -> None:
    text = render(facts(), VOCABULARY, JA, Telling(link="https://example.test/events/event"))
    assert text.title == "本社 玄関：人を検知"
    assert text.lines == (
        "重要度：注意（2/3）",
        f"内容：{_label('count.single').label_ja}、{_label('top_color.red').label_ja}",
        "検知時刻：2026年1月1日(木) 09:00:00 JST",
    )
    assert text.plain.splitlines()[-1] == "https://example.test/events/event"


def test_what_the_analyzer_could_not_make_out_says_so() -> None:
    unclear = facts(primary_event="vehicle", severity=0, tags=(), is_unclear=True)
    assert render(unclear, VOCABULARY, JA, Telling()).lines[1] == "判定：はっきりしません。画像を確認してください"
    text = render(unclear, VOCABULARY, EN, Telling())
    assert text.lines[1] == "Finding: not certain; please look at the picture"
    assert document(unclear, VOCABULARY, text, 0)["unclear"] is True


def test_an_event_in_english_that_goes_on() -> None:
    text = render(facts(reason=CONTINUES, last_seen_at=T0 + 90 * SEC), VOCABULARY, EN, Telling(held_back=3))
    assert text.title == "[Ongoing] 本社 玄関: Person detected"
    assert text.lines == (
        "Severity: Warning (2/3)",
        f"Details: {_label('count.single').label_en}, {_label('top_color.red').label_en}",
        "Seen at: Thu 2026-01-01 09:00:00 JST",
        "Last seen at: Thu 2026-01-01 09:01:30 JST",
        "+3 more of this camera since the last message",
    )


def test_a_late_one_is_marked_with_both_times() -> None:
    late = facts(reason=LATE_INCIDENT, received_at=T0 + 60 * MIN)
    english = render(late, VOCABULARY, EN, Telling())
    assert english.title.startswith("[Late] ")
    assert "Seen at: Thu 2026-01-01 09:00:00 JST" in english.lines
    assert "Received late, at: Thu 2026-01-01 10:00:00 JST" in english.lines
    japanese = render(late, VOCABULARY, JA, Telling())
    assert japanese.title.startswith("【遅延】")
    assert "受信時刻（遅れて届きました）：2026年1月1日(木) 10:00:00 JST" in japanese.lines


def test_a_rise_is_marked() -> None:
    assert render(facts(reason=SEVERITY_ROSE), VOCABULARY, EN, Telling()).title.startswith("[More severe] ")


def test_an_issue_with_its_cause_in_plain_words() -> None:
    issue = facts(
        primary_event="camera_issue", subject="offline", cause="unauthorized", tags=("camera.offline",), severity=3
    )
    english = render(issue, VOCABULARY, EN, Telling())
    assert english.title == "本社 玄関: Camera offline"
    assert english.lines == ("Cause: It refuses user name or password", "Since: Thu 2026-01-01 09:00:00 JST")
    japanese = render(issue, VOCABULARY, JA, Telling())
    assert japanese.lines[0] == "原因：ユーザー名またはパスワードが違います"


def test_an_issue_that_is_over_says_how_long_it_lasted() -> None:
    back = facts(reason=BACK, subject="offline", cause="timeout", end_at=T0 + 80 * MIN)
    english = render(back, VOCABULARY, EN, Telling())
    assert english.title == "本社 玄関: Back to normal: Camera offline"
    assert english.lines == (
        "Since: Thu 2026-01-01 09:00:00 JST",
        "Back since: Thu 2026-01-01 10:20:00 JST",
        "Lasted: 1 h 20 min",
    )
    japanese = render(back, VOCABULARY, JA, Telling())
    assert japanese.title == "本社 玄関：カメラとの通信が復旧しました"
    assert japanese.lines[-1] == "継続時間：1時間20分"


def test_the_last_message_of_an_hour_says_so() -> None:
    text = render(facts(), VOCABULARY, EN, Telling(is_last_of_hour=True))
    assert text.lines[-1].startswith("The hourly limit is reached")


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        # 2026-10-25, 03:00 CEST becomes 02:00 CET: the same hour twice, told apart by the zone.
        (1_792_888_200_000, "Sun 2026-10-25 02:30:00 CEST"),
        (1_792_891_800_000, "Sun 2026-10-25 02:30:00 CET"),
    ],
)
def test_the_hour_that_comes_twice(at: int, shown: str) -> None:
    assert local_time(at, BERLIN, EN) == shown


def test_a_zone_without_a_name_is_named_by_its_offset() -> None:
    assert local_time(T0, ZoneInfo("America/Sao_Paulo"), EN).endswith("UTC-03")


@pytest.mark.parametrize(
    ("length_ms", "shown"),
    [(0, "0 s"), (59_000, "59 s"), (61_000, "1 min 1 s"), (3_600_000, "1 h"), (90_061_000, "1 d 1 h"), (-5, "0 s")],
)
def test_durations(length_ms: int, shown: str) -> None:
    assert duration(length_ms, EN) == shown


@given(st.text(max_size=400))
def test_a_name_is_one_bounded_line(name: str) -> None:
    shown = one_line(name)
    assert len(shown) <= 128
    assert all(one.isprintable() for one in shown)
    assert len(shown.splitlines()) <= 1


def test_names_can_neither_break_a_line_nor_turn_the_text() -> None:
    text = render(facts(camera="a\r\nBcc: x@y\x00\u202e", site="b\u2028c"), VOCABULARY, EN, Telling())
    assert text.title == "b c a Bcc: x@y: Person detected"


@given(
    tags=st.lists(st.sampled_from([tag.id for tag in VOCABULARY.tags] + ["made.up", "camera.frozen"]), max_size=12),
    reason=st.sampled_from([INCIDENT_OPENED, CONTINUES, LATE_INCIDENT, SEVERITY_ROSE, BACK]),
    subject=st.sampled_from(["", "offline", "frozen"]),
    language=st.sampled_from(Language),
    held_back=st.integers(0, 5),
)
def test_no_tag_is_told_that_may_not_be(
    tags: list[str], reason: str, subject: str, language: Language, held_back: int
) -> None:
    """By its id or by either label; labels that an allowed tag of the same message has as well are no leak."""
    told = facts(tags=tuple(tags), reason=reason, subject=subject, end_at=T0)
    text = render(told, VOCABULARY, language, Telling(held_back=held_back))
    shown = f"{text.plain}\n{document(told, VOCABULARY, text, held_back)}"
    for tag_id in tags:
        tag = VOCABULARY.tag(tag_id)
        if tag is None or tag.notify_allowed:
            continue
        for word in (tag.id, tag.label_ja, tag.label_en):
            assert word not in shown


MARK = "<hidden>"


@given(
    allowed=st.lists(st.booleans(), min_size=1, max_size=10),
    language=st.sampled_from(Language),
)
def test_investigation_only_tags_never_appear_whatever_the_vocabulary(
    allowed: list[bool], language: Language
) -> None:
    tags = tuple(
        Tag(
            id=f"tag.n{number}",
            group="notify_safe" if may else "investigation_only",
            label_ja=f"札{number}" if may else MARK,
            label_en=f"label {number}" if may else MARK,
            severity_default=0,
            notify_allowed=may,
            retention_hint="normal",
        )
        for number, may in enumerate(allowed)
    )
    vocabulary = Vocabulary("v", ("none", "unknown", "human"), tags)
    told = facts(tags=tuple(tag.id for tag in tags))
    text = render(told, vocabulary, language, Telling())
    shown = f"{text.plain}\n{document(told, vocabulary, text, 0)}"
    assert MARK not in shown
    for tag in tags:
        assert (f"'{tag.id}'" in shown) is tag.notify_allowed


def test_there_is_no_place_for_a_models_words() -> None:
    """A message is made of these and of nothing else; a field for a memo would have to be added here first."""
    assert set(Facts.__slots__) == {
        "reason", "site", "camera_id", "camera", "zone", "primary_event", "severity", "tags", "start_at",
        "last_seen_at", "end_at", "received_at", "event_uuid", "incident_uuid", "subject", "cause", "is_unclear",
            "cameras_more",
    }  # fmt: skip
    assert set(Telling.__slots__) == {"held_back", "is_last_of_hour", "link", "picture_link"}


def test_many_labels_are_cut() -> None:
    allowed = [tag.id for tag in VOCABULARY.tags if tag.notify_allowed][:12]
    assert len(allowed) == 12
    text = render(facts(tags=tuple(allowed)), VOCABULARY, EN, Telling())
    assert text.lines[1].endswith("…")
    assert text.lines[1].count(", ") == 7


def trial_texts_that_were_written_before() -> None:
    texts = trial_texts("メール")
    assert ready_text(texts, JA).title == "camserver テスト通知"
    assert "メール" in ready_text(texts, EN).lines[0]
    assert ready_text({"en": {"title": "a\nb", "lines": ["c\nd"]}}, JA) == ready_text(
        {"ja": {"title": "a b", "lines": ("c d",)}}, JA
    ), "one language stands for the other, and lines stay lines"
    assert ready_text({}, EN).title == "camserver"


def _label(tag_id: str) -> Tag:
    tag = VOCABULARY.tag(tag_id)
    assert tag is not None
    return tag


def test_a_message_about_a_site_without_a_worker_says_how_many_cameras_it_is_about() -> None:
    said = facts(subject="unattended", primary_event="camera_issue", cameras_more=63)
    text = render(said, VOCABULARY, Language.EN, Telling())
    assert "No worker looks at it" in text.title
    assert "How many: 63 other cameras of this site have no worker either" in text.lines
    assert "ほか 63 台" in render(said, VOCABULARY, Language.JA, Telling()).plain
    assert document(said, VOCABULARY, text, 0)["cameras_more"] == 63
