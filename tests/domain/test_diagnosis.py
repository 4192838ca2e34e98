import string

import pytest

from camserver.domain import diagnosis
from camserver.domain.diagnosis import Cause, explain
from camserver.domain.makers import MAKERS, guess_maker, likely_paths

FACTS = {"host", "port", "paths", "fingerprint", "codec", "transport", "waited_sec", "detail"}


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_has_words_in_both_languages(cause: Cause) -> None:
    words = diagnosis._WORDS[cause]
    for text in (words.ja, words.en):
        assert {name for _, name, _, _ in string.Formatter().parse(text) if name} <= FACTS
    assert any(character > "\u3000" for character in words.ja)
    assert words.en.isascii()
    named = {name for _, name, _, _ in string.Formatter().parse(words.en) if name}
    assert named == {name for _, name, _, _ in string.Formatter().parse(words.ja) if name}


def test_the_facts_are_filled_in_and_unknown_ones_do_not_break_it() -> None:
    said = explain(Cause.PORT_CLOSED, {"host": "cam.lan", "port": "554"})
    assert "cam.lan" in said.en
    assert "554" in said.ja
    assert "?" in explain(Cause.PORT_CLOSED, {}).en


def test_a_maker_that_is_known_gives_its_own_paths() -> None:
    assert "/Streaming/Channels/101" in explain(Cause.NO_SUCH_PATH, {"said": "Server: Hikvision RTSP"}).en
    said = explain(Cause.NO_SUCH_PATH, {"said": "Dahua Rtsp Server"}).ja
    assert "/cam/realmonitor" in said
    assert "/Streaming" not in said
    assert "/stream1" in explain(Cause.NO_SUCH_PATH, {}).en


def test_makers_are_known_by_their_marks() -> None:
    for one in MAKERS:
        assert one.main.startswith("/")
        assert all(mark == mark.lower() for mark in one.marks)
        assert guess_maker(f"x {one.marks[0].upper()} y") is one
    assert guess_maker("GStreamer RTSP server") is None
    assert likely_paths("VIVOTEK")[0] == "/live1s1.sdp"
