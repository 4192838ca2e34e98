import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.push_messages import BYTES_MAX, page_of, push_message, topic_of

UUID = "01934e9a-8a3b-7c4d-9e5f-1a2b3c4d5e6f"
# Also what JSON escapes, and what takes four bytes; not half a surrogate pair, which is no text.
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]))


def test_a_usual_message() -> None:
    made = push_message(
        "main 入口: 人を検知",
        ("重要度: 2/3", "検知時刻: …"),
        tag=UUID,
        link=f"https://cameras.example/events/{UUID}",
        delivery_uuid="d",
    )
    assert json.loads(made) == {
        "title": "main 入口: 人を検知",
        "body": "重要度: 2/3\n検知時刻: …",
        "tag": UUID,
        "url": f"/events/{UUID}",
        "id": "d",
    }


@given(TEXT, st.lists(TEXT, max_size=40))
def test_every_message_fits_and_begins_as_it_should(title: str, lines: list[str]) -> None:
    made = push_message(title, lines, tag=UUID, link=None, delivery_uuid=UUID)
    assert len(made) <= BYTES_MAX
    read = json.loads(made)
    whole = "\n".join(lines)
    assert read["body"] == whole or (
        read["body"].endswith("…") and whole.startswith(read["body"].removesuffix("…").rstrip("…"))
    )


@pytest.mark.parametrize("character", ["x", "人", '"', "\\", "🦌"])
def test_a_long_one_is_cut_as_little_as_can_be(character: str) -> None:
    made = push_message("t", [character * 10_000], tag="", link=None, delivery_uuid="")
    assert BYTES_MAX - 20 <= len(made) <= BYTES_MAX
    assert json.loads(made)["body"].endswith("…")


@pytest.mark.parametrize(
    ("link", "page"),
    [
        (None, "/"),
        ("", "/"),
        ("https://cameras.example/events/1", "/events/1"),
        ("https://cameras.example/cams/events?camera=1", "/cams/events?camera=1"),
        ("https://cameras.example//evil.example/", "/evil.example/"),
        ("https://cameras.example", "/"),
    ],
)
def test_the_page_has_no_host(link: str | None, page: str) -> None:
    assert page_of(link) == page


@given(st.text())
def test_topics_are_what_the_standard_allows(tag: str) -> None:
    topic = topic_of(tag)
    assert len(topic) <= 32
    assert all(one.isascii() and (one.isalnum() or one in "-_") for one in topic)


def test_an_incident_is_a_topic_of_its_own() -> None:
    assert topic_of(UUID) == UUID.replace("-", "")
