import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.domain.clips import NoClip, Span, no_clip, no_clip_phrase, span


@pytest.mark.parametrize(
    ("clip_sec", "wanted"),
    [(10.0, Span(95_000, 110_000)), (1.0, Span(99_500, 101_000)), (60.0, Span(70_000, 160_000))],
)
def test_a_clip_shows_half_as_much_before_as_after(clip_sec: float, wanted: Span) -> None:
    assert span(100_000, clip_sec) == wanted


@given(start_at=st.integers(0, 2**41), clip_sec=st.floats(0.01, 60))
def test_a_clip_shows_the_beginning(start_at: int, clip_sec: float) -> None:
    shown = span(start_at, clip_sec)
    assert shown.from_ms <= start_at < shown.to_ms
    assert shown.to_ms - shown.from_ms <= 90_000


@pytest.mark.parametrize("reason", [None, "", "a newer one", 7, ["busy"]])
def test_a_reason_that_is_not_known(reason: object) -> None:
    assert no_clip(reason) is NoClip.FAILED


@pytest.mark.parametrize("reason", list(NoClip))
def test_every_reason_has_its_words(reason: NoClip) -> None:
    assert no_clip(reason.value) is reason
    phrase = no_clip_phrase(reason.value)
    assert phrase.ja.strip()
    assert phrase.en.isascii()
