"""When a camera is asked for a keyframe."""

from camserver.media.rtsp_lean.keyframes import ASK_AGAIN_SEC, ASKS_MAX, KeyframeWish


def test_it_is_asked_once_and_once_more_after_a_while() -> None:
    wish = KeyframeWish()
    assert wish.is_due(is_missing=True, now_sec=100.0)
    assert not wish.is_due(is_missing=True, now_sec=100.0 + ASK_AGAIN_SEC / 2)
    asked = 1 + sum(wish.is_due(is_missing=True, now_sec=100.0 + number * ASK_AGAIN_SEC) for number in range(1, 100))
    assert asked == ASKS_MAX
    assert wish.is_open


def test_a_keyframe_ends_it_and_the_next_hole_begins_it_anew() -> None:
    wish = KeyframeWish()
    assert not wish.is_due(is_missing=False, now_sec=1.0)
    assert wish.is_due(is_missing=True, now_sec=1.0)
    assert not wish.is_due(is_missing=False, now_sec=1.1)
    assert not wish.is_open
    assert wish.is_due(is_missing=True, now_sec=1.2)


def test_the_message_is_a_report_and_the_wish() -> None:
    """RFC 3550 section 6.4.2 and RFC 4585 section 6.3.1."""
    message = KeyframeWish().message(0xCAFE0001)
    me = message[4:8]
    assert message == b"\x80\xc9\0\1" + me + b"\x81\xce\0\2" + me + b"\xca\xfe\0\1"
