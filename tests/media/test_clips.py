import itertools
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from camserver.base.errors import BadInput, Unavailable
from camserver.media import clips
from camserver.media.clips import (
    CLOCK_HZ,
    cache_name,
    encode_file,
    encode_frames,
    is_servable,
    read_clip,
    split_nals,
)
from tests.rig.video_files import video_file


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "avi"])
def test_a_clip_is_the_file_s_own_video(tmp_path: Path, suffix: str) -> None:
    path = video_file(tmp_path / f"a.{suffix}", bf="0")
    clip = read_clip(path)
    assert clip.size == (320, 180)
    assert len(clip.units) == 20
    assert abs(clip.duration - 2 * CLOCK_HZ) <= 9000
    assert [number for number, unit in enumerate(clip.units) if unit.is_keyframe] == [0, 10]
    assert (clip.sps[0] & 31, clip.pps[0] & 31) == (7, 8)
    assert clip.units[0].dts == 0
    assert all(later.dts > earlier.dts for earlier, later in pairwise(clip.units))
    assert all(nal[0] & 31 in range(1, 24) for unit in clip.units for nal in unit.nals)


def test_pictures_out_of_order_keep_both_times(tmp_path: Path) -> None:
    clip = read_clip(video_file(tmp_path / "b.mp4", bf="2"))
    assert any(unit.pts != unit.dts for unit in clip.units)
    assert all(unit.pts >= unit.dts for unit in clip.units)


def test_only_what_a_camera_could_send_is_served_as_it_is(tmp_path: Path) -> None:
    assert is_servable(video_file(tmp_path / "good.mp4"))
    assert not is_servable(video_file(tmp_path / "rare.mp4", seconds=6, keyframes_apart=1000))
    assert not is_servable(video_file(tmp_path / "other.avi", "mpeg4"))


def test_another_video_is_encoded(tmp_path: Path) -> None:
    source = video_file(tmp_path / "other.avi", "mpeg4", size=(640, 360))
    target = tmp_path / "cache" / "made.mp4"
    encode_file(source, 320, target)
    clip = read_clip(target)
    assert clip.size == (320, 180)
    assert len(clip.units) == 20
    assert is_servable(target)
    assert os.listdir(target.parent) == ["made.mp4"]  # no draft is left


def test_encoding_ends_when_told_and_leaves_nothing(tmp_path: Path) -> None:
    stop = threading.Event()

    def without_end() -> Iterator[av.VideoFrame]:
        for number in itertools.count():
            if number == 3:
                stop.set()
            yield av.VideoFrame(320, 180, "yuv420p")

    with pytest.raises(Unavailable, match=r"made\.mp4"):
        encode_frames(without_end(), 10, (320, 180), tmp_path / "cache" / "made.mp4", stop)
    assert os.listdir(tmp_path / "cache") == []


def test_two_at_once_do_not_write_into_one_file(tmp_path: Path) -> None:
    """Two cameras may show the same: the first frame of one waits until the other has begun."""
    both = threading.Barrier(2, timeout=60)

    def frames() -> Iterator[av.VideoFrame]:
        both.wait()
        for _ in range(20):
            yield av.VideoFrame(320, 180, "yuv420p")

    target = tmp_path / "made.mp4"
    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(encode_frames, frames(), 10, (320, 180), target) for _ in range(2)]:
            one.result()
    assert os.listdir(tmp_path) == ["made.mp4"]
    assert len(read_clip(target).units) == 20


def test_sizes_become_even(tmp_path: Path) -> None:
    target = tmp_path / "made.mp4"
    encode_file(video_file(tmp_path / "a.avi", "mpeg4", size=(322, 182)), 101, target)
    assert read_clip(target).size == (100, 56)


@pytest.mark.parametrize("content", [b"", b"no video", b"\0" * 1000])
def test_what_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"x\.mp4"):
        read_clip(path)
    assert not is_servable(path)
    with pytest.raises(BadInput):
        encode_file(path, 100, tmp_path / "made.mp4")
    assert not (tmp_path / "made.mp4").exists()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="can't be read"):
        read_clip(tmp_path / "none.mp4")


def test_a_file_that_is_too_large_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = video_file(tmp_path / "a.mp4", bf="0")
    whole = read_clip(path)
    size = sum(len(nal) for unit in whole.units for nal in unit.nals)
    monkeypatch.setattr(clips, "CLIP_MAX_BYTES", size)  # start codes are counted too
    assert 0 < len(read_clip(path).units) < len(whole.units)


def test_a_changed_file_has_another_name_in_the_cache(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    path.write_bytes(b"1")
    names = {cache_name(path, 100), cache_name(path, 200)}
    path.write_bytes(b"12")
    names.add(cache_name(path, 100))
    assert len(names) == 3


@given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda nal: b"\0\0" not in nal and nal[-1]), max_size=8))
def test_start_codes_are_found(nals: list[bytes]) -> None:
    for code in (b"\0\0\1", b"\0\0\0\1"):
        assert split_nals(b"".join(code + nal for nal in nals)) == tuple(nals)
