"""Live view beside go2rtc, and beside one ffmpeg a viewer as the source document has it.

Cameras are simulated in a process of their own: 1080p, 15 pictures a second, a keyframe every 2 s, 3 Mbit/s, digest
authentication. Viewers are sockets in another one that take what comes; all get every picture, or the row says so.
Ours is the streamer and the worker's part of it, by the product's own code; viewings are not admitted here, which
costs a request each and no media. CPU is by /proc, of both; memory is what the streamer holds at the end and what
live view added to the worker, which is there for its looks. The first picture is counted from the socket's opening:
warm when somebody watches already, cold when the camera has to be opened, with the time that control takes to see
that somebody watches; a camera's next keyframe is up to 2 s away then, for everybody.
"""

import contextlib
import json
import random
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from urllib.request import urlopen

import psutil

from bench import _capture_spawn, _capture_video
from bench._cameras import PASSWORD, USER, name_of
from bench._child import Child, child
from bench._cpu import cpu_seconds
from bench._live_keys import KEYS
from bench._report import QUICK, Row, figure, less_is_better, report, say
from camserver.domain.live_links import FEED_PATH, snapshot_url, stream_url
from tests.fakes.go2rtc.server import MissingGo2rtc, program
from tests.rig.polling import poll
from tests.rig.ports import free_port

MANY_CAMERAS = 10 if QUICK else 40
AUDIENCES = (80,) if QUICK else (80, 300)
WINDOW_SEC = 5.0 if QUICK else 20.0
COLD_TRIES = 2 if QUICK else 5
SNAPSHOTS = 3 if QUICK else 10
HLS_SESSIONS = 2 if QUICK else 4
SNAPSHOT_MS = 100.0
HALF = 2.0
# A keyframe is up to 2 s away when a camera is opened: a single run may miss it by chance.
COLD_AIM = 1.0
# How often control looks for viewings that want to be fed.
LOOK_EVERY_SEC = 0.2
# Fragments that a viewer may lack of what was sent in a window: one more or less at its ends.
MISSING_MAX = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    cpu_percent: float  # of one core
    memory_mb: float
    fps: float  # of the viewer that got least
    warm_ms: float  # to the first fragment, median
    cold_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Carriers:
    """The processes between cameras and viewers, and what they held before."""

    pids: list[int]
    before_mb: float = 0.0

    def cpu_sec(self) -> float:
        return sum(map(cpu_seconds, self.pids))

    def memory_mb(self) -> float:
        return rss_mb(self.pids) - self.before_mb


def rss_mb(pids: list[int]) -> float:
    return float(sum(psutil.Process(pid).memory_info().rss for pid in pids)) / 1e6


def camera_urls(base: str, count: int) -> dict[str, str]:
    return {name_of(number): f"{base}/{name_of(number)}" for number in range(count)}


@contextlib.contextmanager
def ours(cameras: dict[str, str], viewings: dict[str, str]) -> Iterator[tuple[Carriers, str]]:
    """What carries the pictures, and the streamer's origin."""
    with child("_live_streamer", viewings=viewings) as streamer:
        origin = f"http://127.0.0.1:{int(streamer.hear())}"
        feed_url = origin.replace("http", "ws", 1) + FEED_PATH
        with child("_live_worker", feed_url=feed_url, cameras=cameras) as worker:
            worker.hear()
            # A worker is there for its looks; what live view adds to it counts.
            carriers = Carriers([streamer.pid, worker.pid], rss_mb([worker.pid]))
            worker.tell()
            yield carriers, origin


@contextlib.contextmanager
def go2rtc(cameras: dict[str, str], folder: Path) -> Iterator[tuple[Carriers, str]]:
    port = free_port()
    login = f"{USER}:{PASSWORD}@"
    chosen = {
        "api": {"listen": f"127.0.0.1:{port}"},
        "rtsp": {"listen": ""},
        "webrtc": {"listen": ""},
        "srtp": {"listen": ""},
        "streams": {name: url.replace("rtsp://", f"rtsp://{login}") for name, url in cameras.items()},
        "log": {"level": "error"},
    }
    server = subprocess.Popen([program(folder), "-config", json.dumps(chosen)], stdout=subprocess.DEVNULL)
    try:
        poll(lambda: _answers(f"http://127.0.0.1:{port}/api"), "go2rtc answers")
        yield Carriers([server.pid]), f"ws://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def watch(carriers: Carriers, urls: list[str], asks_for_mse: bool) -> Measured:
    """All viewers at once, after the first one made it warm."""
    with child("_live_viewers", urls=urls[:1], asks_for_mse=asks_for_mse) as first:
        cold_ms = json.loads(first.hear())[0]
        with child("_live_viewers", urls=urls[1:] or urls, asks_for_mse=asks_for_mse) as viewers:
            warm_ms = json.loads(viewers.hear())
            return _over_a_window(carriers, viewers, median(warm_ms), cold_ms)


def _over_a_window(carriers: Carriers, viewers: Child, warm_ms: float, cold_ms: float) -> Measured:
    """What carrying them takes while all of them watch."""
    viewers.tell()
    viewers.hear()
    before, began = carriers.cpu_sec(), time.perf_counter()
    time.sleep(WINDOW_SEC)
    used, took = carriers.cpu_sec() - before, time.perf_counter() - began
    viewers.tell()
    counts = json.loads(viewers.hear())
    return Measured(used / took * 100, carriers.memory_mb(), min(counts) / took, warm_ms, cold_ms)


def told(name: str, measured: Measured) -> Measured:
    say(
        f"{name}: {measured.cpu_percent:.1f} % of a core, {measured.memory_mb:.0f} MB, {measured.fps:.1f} pictures/s "
        f"at least, first picture cold {measured.cold_ms:.0f} ms, warm {measured.warm_ms:.0f} ms"
    )
    if measured.fps < _capture_video.FPS * (1 - MISSING_MAX):
        say(f"  {name}: some viewers did not get every picture; the machine is too busy for this comparison")
    return measured


def audience(base: str, count: int, folder: Path) -> list[Row]:
    """Many viewers of one camera."""
    cameras = camera_urls(base, 1)
    camera_id = next(iter(cameras))
    leases = [str(uuid.uuid4()) for _ in range(count + 1)]
    with ours(cameras, dict.fromkeys(leases, camera_id)) as (carriers, origin):
        urls = [stream_url(KEYS, origin, camera_id, lease_id) for lease_id in leases]
        mine = told(f"ours, {count} viewers of one camera", watch(carriers, urls, asks_for_mse=False))
    with go2rtc(cameras, folder) as (carriers, origin):
        urls = [f"{origin}/api/ws?src={camera_id}"] * (count + 1)
        theirs = told(f"go2rtc, {count} viewers of one camera", watch(carriers, urls, asks_for_mse=True))
    what = f"{count} viewers of one camera"
    return [
        less_is_better(f"{what}, CPU", mine.cpu_percent, theirs.cpu_percent, "go2rtc", "% of a core", HALF),
        less_is_better(f"{what}, memory", mine.memory_mb, theirs.memory_mb, "go2rtc", "MB", HALF),
        less_is_better(f"{what}, first picture warm", mine.warm_ms, theirs.warm_ms, "go2rtc", "ms", 1.0),
    ]


def one_each(base: str, folder: Path) -> list[Row]:
    """One viewer on each of many cameras."""
    cameras = camera_urls(base, MANY_CAMERAS)
    leases = {str(uuid.uuid4()): camera_id for camera_id in cameras}
    with ours(cameras, leases) as (carriers, origin):
        urls = [stream_url(KEYS, origin, camera_id, lease_id) for lease_id, camera_id in leases.items()]
        mine = told(f"ours, one viewer on each of {MANY_CAMERAS}", watch_each(carriers, urls, asks_for_mse=False))
    with go2rtc(cameras, folder) as (carriers, origin):
        urls = [f"{origin}/api/ws?src={camera_id}" for camera_id in cameras]
        theirs = told(f"go2rtc, one viewer on each of {MANY_CAMERAS}", watch_each(carriers, urls, asks_for_mse=True))
    what = f"one viewer on each of {MANY_CAMERAS} cameras"
    return [
        less_is_better(f"{what}, CPU", mine.cpu_percent, theirs.cpu_percent, "go2rtc", "% of a core", 1.0),
        less_is_better(f"{what}, memory", mine.memory_mb, theirs.memory_mb, "go2rtc", "MB"),
    ]


def watch_each(carriers: Carriers, urls: list[str], asks_for_mse: bool) -> Measured:
    with child("_live_viewers", urls=urls, asks_for_mse=asks_for_mse) as viewers:
        first_ms = json.loads(viewers.hear())
        return _over_a_window(carriers, viewers, median(first_ms), max(first_ms))


def first_picture_cold(base: str, folder: Path) -> Row:
    """From opening the socket to the first fragment, of a camera that nobody has open."""
    mine, theirs = [], []
    chance = random.Random(1)
    for number in range(COLD_TRIES):
        camera_id, url = list(camera_urls(base, MANY_CAMERAS).items())[number % MANY_CAMERAS]
        mine.append(_cold_ours(camera_id, url, chance.uniform(0, LOOK_EVERY_SEC)))
        with (
            go2rtc({camera_id: url}, folder) as (_, origin),
            child("_live_viewers", urls=[f"{origin}/api/ws?src={camera_id}"], asks_for_mse=True) as viewer,
        ):
            theirs.append(json.loads(viewer.hear())[0])
    say(f"first picture cold, ms: ours {mine}, go2rtc {theirs}")
    return less_is_better("first picture cold", mean(mine), mean(theirs), "go2rtc", "ms", COLD_AIM)


def _cold_ours(camera_id: str, url: str, seen_after_sec: float) -> float:
    """`seen_after_sec`: how long control takes to see that somebody watches."""
    lease_id = str(uuid.uuid4())
    with child("_live_streamer", viewings={lease_id: camera_id}) as streamer:
        origin = f"http://127.0.0.1:{int(streamer.hear())}"
        feed_url = origin.replace("http", "ws", 1) + FEED_PATH
        urls = [stream_url(KEYS, origin, camera_id, lease_id)]
        with child("_live_worker", feed_url=feed_url, cameras={camera_id: url}) as worker:
            worker.hear()
            with child("_live_viewers", urls=urls, asks_for_mse=False, announces=True) as viewer:
                viewer.hear()
                time.sleep(seen_after_sec)
                worker.tell()
                return float(json.loads(viewer.hear())[0])


def snapshots(base: str, folder: Path) -> Row:
    """A picture now, of a camera that is watched."""
    cameras = camera_urls(base, 1)
    camera_id = next(iter(cameras))
    leases = [str(uuid.uuid4()), str(uuid.uuid4())]
    with ours(cameras, dict.fromkeys(leases, camera_id)) as (_, origin):
        url = stream_url(KEYS, origin, camera_id, leases[0])
        with child("_live_viewers", urls=[url], asks_for_mse=False) as viewer:
            viewer.hear()
            mine = _fetched(snapshot_url(KEYS, origin, leases[0]))
    with (
        go2rtc(cameras, folder) as (_, origin),
        child("_live_viewers", urls=[f"{origin}/api/ws?src={camera_id}"], asks_for_mse=True) as viewer,
    ):
        viewer.hear()
        try:
            theirs = _fetched(f"{origin.replace('ws', 'http', 1)}/api/frame.jpeg?src={camera_id}")
        except OSError:
            say("go2rtc makes no snapshot of H.264 here: it starts the ffmpeg of the machine for that")
            return less_is_better("snapshot of a watched camera", mine, SNAPSHOT_MS, "the aim", "ms", 1.0)
    return less_is_better("snapshot of a watched camera", mine, theirs, "go2rtc", "ms", 1.0)


def _fetched(url: str) -> float:
    times = []
    for _ in range(SNAPSHOTS):
        began = time.perf_counter()
        with urlopen(url, timeout=60) as answer:
            assert answer.read(2) == b"\xff\xd8"
        times.append((time.perf_counter() - began) * 1000)
    return median(times)


def one_program_each(base: str, folder: Path) -> list[Row]:
    """HLS by one ffmpeg a viewer, as the source document has it."""
    spawn = _capture_spawn.find()
    if not spawn.name.startswith("ffmpeg"):
        say("there is no ffmpeg on this machine: the source document's way is not measured")
        return []
    url = f"{base}/{name_of(0)}".replace("rtsp://", f"rtsp://{USER}:{PASSWORD}@")
    running = []
    began = time.perf_counter()
    for number in range(HLS_SESSIONS):
        target = folder / f"hls-{number}"
        target.mkdir()
        options = ["-f", "hls", "-hls_time", "1", "-hls_list_size", "3", "-hls_flags", "delete_segments+omit_endlist"]
        command = [*spawn.program, "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", url]
        running.append(subprocess.Popen([*command, "-c:v", "copy", "-an", *options, str(target / "index.m3u8")]))
    try:
        poll(lambda: (folder / "hls-0" / "index.m3u8").exists(), "a list of segments")
        first_ms = (time.perf_counter() - began) * 1000
        carriers = Carriers([one.pid for one in running])
        before, since = carriers.cpu_sec(), time.perf_counter()
        time.sleep(WINDOW_SEC)
        used, took = carriers.cpu_sec() - before, time.perf_counter() - since
        memory_mb = carriers.memory_mb()
    finally:
        for one in running:
            one.kill()
            one.wait()
    say(f"{spawn.name}, HLS: one process and one connection to the camera a viewer, first segment {first_ms:.0f} ms")
    return [
        figure("one ffmpeg a viewer (HLS), CPU a viewer", used / took * 100 / HLS_SESSIONS, "% of a core"),
        figure("one ffmpeg a viewer (HLS), memory a viewer", memory_mb / HLS_SESSIONS, "MB"),
    ]


def main() -> None:
    videos = _capture_video.videos()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="camserver-bench-") as made:
        folder = Path(made)
        asked = {"videos": [str(video) for video in videos], "cache": str(_capture_video.folder())}
        with child("_cameras", count=MANY_CAMERAS, **asked, faults_seed=None, faults_log=None) as cameras:
            base = f"rtsp://127.0.0.1:{int(cameras.hear())}"
            for count in AUDIENCES:
                rows += audience(base, count, folder)
            rows += one_each(base, folder)
            rows.append(first_picture_cold(base, folder))
            rows.append(snapshots(base, folder))
            rows += one_program_each(base, folder)
    report("live", rows)


if __name__ == "__main__":
    try:
        main()
    except MissingGo2rtc as error:
        raise SystemExit(f"error: {error}") from None
