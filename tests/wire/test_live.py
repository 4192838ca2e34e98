"""Messages of live view: what is packed is unpacked, and nothing else."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput
from camserver.wire import live

STAMPS = st.one_of(st.none(), st.integers(-(2**62), 2**62))


@given(STAMPS, STAMPS, st.booleans(), st.integers(0, 2**63), st.binary(min_size=1, max_size=50))
def test_a_packet(pts: int | None, dts: int | None, is_keyframe: bool, boot_ms: int, data: bytes) -> None:
    message = live.packet_head(pts, dts, is_keyframe, boot_ms) + data
    assert live.unpack_feed(message) == live.FeedPacket(pts, dts, is_keyframe, boot_ms, data)


@given(STAMPS, st.integers(0, 2**63), st.binary(min_size=1, max_size=50))
def test_a_piece_of_sound(pts: int | None, boot_ms: int, data: bytes) -> None:
    assert live.unpack_feed(live.sound_head(pts, boot_ms) + data) == live.FeedSoundPacket(pts, boot_ms, data)


def test_a_packet_with_the_places_of_its_units() -> None:
    data = b"\0\0\0\1one\0\0\0\1two"
    packet = live.unpack_feed(live.packet_head(1, 1, True, 1, (4, 11)) + data)
    assert packet == live.FeedPacket(1, 1, True, 1, data, (4, 11))
    many = live.packet_head(1, 1, True, 1, tuple(range(4, 4 + live.STARTS_MAX + 1)))
    assert live.unpack_feed(many + data) == live.FeedPacket(1, 1, True, 1, data)


def test_a_stream_and_a_status() -> None:
    stream = live.FeedStream("h264", b"\0\0\1\x67sets", Fraction(1, 90_000), "transcoded_mask")
    assert live.unpack_feed(live.pack_stream(stream)) == stream
    sound = live.FeedSound("aac", b"\x14\x08", 16_000, 1)
    stream = live.FeedStream("h264", b"", Fraction(1, 90_000), "transcoded_codec", "hevc", sound)
    assert live.unpack_feed(live.pack_stream(stream)) == stream
    status = live.FeedStatus(state="refused", reason="unauthorized", message="401")
    assert live.unpack_feed(live.pack_status(status)) == status


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x09",
        b"\x02\0\0",
        live.packet_head(1, 1, True, 1),
        live.packet_head(1, 1, True, 1, (4, 11)) + b"short",
        live.packet_head(1, 1, True, 1, (11, 4)) + b"long enough for both",
        live.packet_head(1, 1, True, 1, (2,)) + b"long enough",
        live.packet_head(1, 1, True, 1)[:-1] + b"\xff" + b"x" * 2000,
        b"\x01{}",
        b'\x01["h264", "", 1, 90000, ""]',
        b'\x01["h264", "!", 1, 90000, "", ""]',
        b'\x01["h264", "", 1, 0, "", ""]',
        b'\x01["h264", "", -1, 5, "", ""]',
        b'\x01["h264", "", 1, 90000, "", 5]',
        b'\x01["h264", "", 1, 90000, "", "", "aac"]',
        b'\x01["h264", "", 1, 90000, "", "", "aac", "", 16000, 99]',
        b'\x01["h264", "", 1, 90000, "", "", "aac", "", "fast", 1]',
        b'\x01["h264", "", 1, 90000, "", "", 5, "", 16000, 1]',
        live.sound_head(1, 1),
        b"\x04\0",
        b"\x03{}",
        b'\x03{"state": "dancing"}',
    ],
)
def test_what_makes_no_sense_is_refused(message: bytes) -> None:
    with pytest.raises(BadInput):
        live.unpack_feed(message)


def test_a_sync_and_its_answer() -> None:
    sync = live.Sync(
        streamer_id="streamer-1",
        port=8082,
        feed_url="ws://127.0.0.1:8082/v1/feed",
        total_units=50,
        load=live.Load(cpu_percent=5.5, memory_percent=20, swap_mb=0),
        asked=("a",),
        watched=(live.Watched(lease_id="a", feed="fed"),),
    )
    assert live.parse_sync(sync.model_dump_json().encode()) == sync
    viewing = live.LiveViewing(
        lease_id="a",
        tenant_id=1,
        camera_id="cam_1",
        quality="sub",
        transcode=False,
        kind="modal",
        expires_at=5,
        feed="wanted",
    )
    synced = live.Synced(server_time=1, viewings=(viewing,), gone=(live.Gone(lease_id="b", reason="ttl"),))
    assert live.parse_synced(synced.model_dump_json().encode()) == synced
    assert live.feed_key(viewing) == (1, "cam_1", "sub", False)
    for parse in (live.parse_sync, live.parse_synced):
        with pytest.raises(BadInput):
            parse(b"{}")
