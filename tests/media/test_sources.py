import asyncio
import io
import os
from pathlib import Path

import pytest
from PIL import Image

from camserver.base.errors import BadInput
from camserver.domain.leases import Fault
from camserver.media import sources
from camserver.media.packets import Miss
from camserver.media.shots import JpegShot
from camserver.media.sources import FileSource, Source, SourceWanted, open_source
from tests.rig.pictures import jpeg
from tests.rig.polling import until


def source_at(url: str) -> Source:
    return open_source(SourceWanted(url.split(":")[0], url))


async def grab_jpeg(url: str, count: int = 1) -> list[bytes]:
    source = source_at(url)
    shots = [await source.grab() for _ in range(count)]
    await source.close()
    assert all(isinstance(shot, JpegShot) for shot in shots), shots
    return [shot.jpeg for shot in shots if isinstance(shot, JpegShot)]


async def test_moving_source_is_deterministic_and_moves() -> None:
    first = await grab_jpeg("test://moving?period=4", 6)
    again = await grab_jpeg("test://moving?period=4", 6)
    assert first == again
    assert len(set(first)) == 6  # the number of the look is in the picture, also when the shape is back


async def test_still_source_stands_still() -> None:
    assert len(set(await grab_jpeg("test://still", 3))) == 1


async def test_size_is_chosen_by_the_address() -> None:
    (data,) = await grab_jpeg("test://still?width=320&height=240")
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.size == (320, 240)


@pytest.mark.parametrize("fault", list(Fault))
async def test_broken_source_names_its_fault(fault: Fault) -> None:
    miss = await source_at(f"test://broken?fault={fault}").grab()
    assert isinstance(miss, Miss)
    assert miss.fault is fault


async def test_hanging_source_can_be_cancelled() -> None:
    grab = asyncio.ensure_future(source_at("test://hang").grab())
    await asyncio.sleep(0)
    assert not grab.done()
    grab.cancel()
    with pytest.raises(asyncio.CancelledError):
        await grab


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("rtsp", "http://10.0.0.1/"),
        ("rtsp", "rtsp:///stream"),
        ("rtsp", "rtsp://10.0.0.1:99999/"),
        ("rtsp", "rtsp://user:word@10.0.0.1/"),
        ("webcam", "webcam:0"),
        ("film", "film:0"),
        ("test", "test://unknown"),
        ("test", "http://moving"),
        ("test", "test://moving?period=0"),
        ("test", "test://moving?period=abc"),
        ("test", "test://moving?width=99999999999999"),
        ("test", "test://moving?colour=red"),
        ("test", "test://broken?fault=flood"),
        ("file", "file://other-host/x.jpg"),
        ("file", "http:///x.jpg"),
        ("file", "file://"),
    ],
)
def test_address_that_makes_no_sense_is_refused(kind: str, url: str) -> None:
    with pytest.raises(BadInput):
        open_source(SourceWanted(kind, url))


async def test_one_file_is_given_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "a picture.jpg"
    path.write_bytes(jpeg(scene=3))
    assert await grab_jpeg(path.as_uri(), 2) == [jpeg(scene=3)] * 2


async def test_folder_is_given_in_turn_and_pictures_may_be_added(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.JPG").write_bytes(jpeg(scene=number))
    (tmp_path / "notes.txt").write_text("no picture")
    assert await grab_jpeg(tmp_path.as_uri(), 5) == [jpeg(scene=n) for n in (0, 1, 2, 0, 1)]
    source = source_at(tmp_path.as_uri())
    await source.grab()
    (tmp_path / "0b.jpg").write_bytes(jpeg(scene=9))
    assert await source.grab() == JpegShot(jpeg(scene=9))


async def miss_of(path: Path) -> Miss:
    miss = await source_at(path.as_uri()).grab()
    assert isinstance(miss, Miss)
    return miss


async def test_missing_file_is_not_found(tmp_path: Path) -> None:
    assert (await miss_of(tmp_path / "none.jpg")).fault is Fault.NOT_FOUND


async def test_empty_folder_has_no_video(tmp_path: Path) -> None:
    assert (await miss_of(tmp_path)).fault is Fault.NO_VIDEO


async def test_file_that_can_not_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loop.jpg"
    path.symlink_to(path)  # also root can't read this one
    assert (await miss_of(path)).fault is Fault.REFUSED


async def test_too_large_file_has_no_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PICTURE_MAX_BYTES", 100)
    path = tmp_path / "large.jpg"
    path.write_bytes(bytes(101))
    assert (await miss_of(path)).fault is Fault.NO_VIDEO


async def test_read_that_hangs_takes_one_thread_however_often_it_is_tried(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jpg"
    os.mkfifo(pipe)  # opening it hangs until somebody writes
    source = source_at(pipe.as_uri())
    for _ in range(3):
        grab = asyncio.ensure_future(source.grab())
        for _ in range(10):
            await asyncio.sleep(0)
        grab.cancel()
        await asyncio.gather(grab, return_exceptions=True)
    assert isinstance(source, FileSource)
    hanging = source._reading
    assert hanging is not None
    last = asyncio.ensure_future(source.grab())
    await asyncio.to_thread(pipe.write_bytes, b"of the read that hung")
    # Both through the pipe at once would be one picture.
    await until(hanging.done, "the end of the read that hung")
    await asyncio.to_thread(pipe.write_bytes, b"picture")
    assert await last == JpegShot(b"picture")
