"""Live view beside go2rtc, and beside one ffmpeg a viewer as the source document has it.

Cameras are simulated in a process of their own: 1080p, 15 pictures a second, a keyframe every 2 s, 3 Mbit/s, digest
authentication. Viewers are sockets in another one that take what comes; all get every picture, or the row says so.
Ours is the streamer and the worker's part of it, by the product's own code; viewings are not admitted here, which
costs a request each and no media. CPU is by /proc, of both; memory is what the streamer holds at the end and what
live view added to the worker, which is there for its looks. The first picture is warm when somebody watches already,
and counted from the socket's opening. Cold ones (`_live_cold`), how old a picture is in a browser (`_live_latency`)
and admission (`_live_admission`) are parts of their own.

    make bench-live
    QUICK=1 make bench-live                          80 viewers, 10 cameras, SQLite; no HLS, no browser
    make bench-live BENCH_ARGS="--only admission latency"
"""

import argparse
import contextlib
import json
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from urllib.request import urlopen

import psutil

from bench import _capture_spawn, _capture_video
from bench._cameras import PASSWORD, USER, name_of
from bench._child import Child, child
from bench._cpu import cpu_seconds
from bench._live_admission import admission_rows
from bench._live_cold import cold_rows
from bench._live_keys import KEYS
from bench._live_latency import latency_rows
from bench._report import QUICK, Row, figure, less_is_better, report, say
from camserver.domain.live_links import FEED_PATH, snapshot_url, stream_url
from tests.fakes.go2rtc.server import MissingGo2rtc, program
from tests.rig.polling import poll
from tests.rig.ports import free_port

MANY_CAMERAS = 10 if QUICK else 40
AUDIENCES = (80,) if QUICK else (80, 300)
WINDOW_SEC = 3.0 if QUICK else 20.0
SNAPSHOTS = 3 if QUICK else 10
HLS_SESSIONS = 2 if QUICK else 4
SNAPSHOT_MS = 100.0
HALF = 2.0
PARTS = ("audience", "each", "cold", "hls", "admission", "latency")
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
def go2rtc(
    cameras: dict[str, str], folder: Path, login: str = f"{USER}:{PASSWORD}@"
) -> Iterator[tuple[Carriers, str]]:
    port = free_port()
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


def watch(carriers: Carriers, urls: list[str], picture_url: str, asks_for_mse: bool) -> tuple[Measured, list[float]]:
    """All viewers at once, after the first one made it warm; and how long pictures to keep take while they watch."""
    with child("_live_viewers", urls=urls[:1], asks_for_mse=asks_for_mse) as first:
        cold_ms = json.loads(first.hear())[0]
        with child("_live_viewers", urls=urls[1:], asks_for_mse=asks_for_mse) as viewers:
            warm_ms = json.loads(viewers.hear())
            measured = _over_a_window(carriers, viewers, median(warm_ms), cold_ms)
            return measured, _fetched(picture_url)


def _over_a_window(carriers: Carriers, viewers: Child, warm_ms: float, cold_ms: float) -> Measured:
    [(cpu_percent, memory_mb, fps)] = _over_one_window([(carriers, viewers)])
    return Measured(cpu_percent, memory_mb, fps, warm_ms, cold_ms)


def _over_one_window(sides: list[tuple[Carriers, Child]]) -> list[tuple[float, float, float]]:
    """What carrying them takes while all of them watch: CPU, memory, and the pictures of who gets least."""
    for _, viewers in sides:
        viewers.tell()
        viewers.hear()
    before, began = [carriers.cpu_sec() for carriers, _ in sides], time.perf_counter()
    time.sleep(WINDOW_SEC)
    used = [carriers.cpu_sec() - so_far for (carriers, _), so_far in zip(sides, before, strict=True)]
    took = time.perf_counter() - began
    found = []
    for (carriers, viewers), cpu_sec in zip(sides, used, strict=True):
        viewers.tell()
        least = min(json.loads(viewers.hear()))
        found.append((cpu_sec / took * 100, carriers.memory_mb(), least / took))
    return found


def told(name: str, measured: Measured) -> Measured:
    say(
        f"{name}: {measured.cpu_percent:.1f} % of a core, {measured.memory_mb:.0f} MB, {measured.fps:.1f} pictures/s "
        f"at least, first picture cold {measured.cold_ms:.0f} ms, warm {measured.warm_ms:.0f} ms"
    )
    if measured.fps < _capture_video.FPS * (1 - MISSING_MAX):
        say(f"  {name}: some viewers did not get every picture; the machine is too busy for this comparison")
    return measured


def audience(base: str, count: int, folder: Path) -> list[Row]:
    """Many viewers of one camera, and a picture to keep of it."""
    cameras = camera_urls(base, 1)
    camera_id = next(iter(cameras))
    leases = [str(uuid.uuid4()) for _ in range(count + 1)]
    with ours(cameras, dict.fromkeys(leases, camera_id)) as (carriers, origin):
        urls = [stream_url(KEYS, origin, camera_id, lease_id) for lease_id in leases]
        picture = snapshot_url(KEYS, origin, leases[0])
        mine, my_pictures = watch(carriers, urls, picture, asks_for_mse=False)
        told(f"ours, {count} viewers of one camera", mine)
    with go2rtc(cameras, folder) as (carriers, origin):
        urls = [f"{origin}/api/ws?src={camera_id}"] * (count + 1)
        picture = f"{origin.replace('ws', 'http', 1)}/api/frame.jpeg?src={camera_id}"
        theirs, their_pictures = watch(carriers, urls, picture, asks_for_mse=True)
        told(f"go2rtc, {count} viewers of one camera", theirs)
    what = f"{count} viewers of one camera"
    return [
        less_is_better(f"{what}, CPU", mine.cpu_percent, theirs.cpu_percent, "go2rtc", "% of a core", HALF),
        less_is_better(f"{what}, memory", mine.memory_mb, theirs.memory_mb, "go2rtc", "MB", HALF),
        less_is_better(f"{what}, first picture warm", mine.warm_ms, theirs.warm_ms, "go2rtc", "ms", 1.0),
        *snapshots(what, my_pictures, their_pictures),
    ]


def snapshots(what: str, mine: list[float], theirs: list[float]) -> list[Row]:
    """The first one, for which much is loaded, and those after it."""
    if theirs:
        say(f"go2rtc, a snapshot: first {theirs[0]:.0f} ms, then {median(theirs[1:]):.0f} ms")
    else:
        say("go2rtc makes no snapshot of H.264 here: it starts the ffmpeg of the machine for that")
    return [
        less_is_better(f"{what}, first snapshot", mine[0], SNAPSHOT_MS, "the aim", "ms", 1.0),
        less_is_better(f"{what}, later snapshots", median(mine[1:]), SNAPSHOT_MS, "the aim", "ms", 1.0),
    ]


def one_each(base: str, folder: Path) -> list[Row]:
    """One viewer on each of many cameras, of both at the same time: whatever else this machine does falls on both."""
    cameras = camera_urls(base, MANY_CAMERAS)
    leases = {str(uuid.uuid4()): camera_id for camera_id in cameras}
    with ours(cameras, leases) as (mine, origin), go2rtc(cameras, folder) as (theirs, their_origin):
        urls = [stream_url(KEYS, origin, camera_id, lease_id) for lease_id, camera_id in leases.items()]
        their_urls = [f"{their_origin}/api/ws?src={camera_id}" for camera_id in cameras]
        with (
            child("_live_viewers", urls=urls, asks_for_mse=False) as viewers,
            child("_live_viewers", urls=their_urls, asks_for_mse=True) as their_viewers,
        ):
            sides = [(mine, viewers), (theirs, their_viewers)]
            first_ms = [json.loads(one.hear()) for _, one in sides]
            used = _over_one_window(sides)
    measured = [
        told(
            f"{name}, one viewer on each of {MANY_CAMERAS}",
            Measured(cpu_percent, memory_mb, fps, median(first), max(first)),
        )
        for name, (cpu_percent, memory_mb, fps), first in zip(("ours", "go2rtc"), used, first_ms, strict=True)
    ]
    what = f"one viewer on each of {MANY_CAMERAS} cameras"
    one, other = measured
    return [
        less_is_better(f"{what}, CPU", one.cpu_percent, other.cpu_percent, "go2rtc", "% of a core", 1.0),
        less_is_better(f"{what}, memory", one.memory_mb, other.memory_mb, "go2rtc", "MB"),
    ]


def _fetched(url: str) -> list[float]:
    """How long each took, in ms; nothing where there is none to be had."""
    times = []
    for _ in range(SNAPSHOTS):
        began = time.perf_counter()
        try:
            with urlopen(url, timeout=60) as answer:
                assert answer.read(2) == b"\xff\xd8"
        except OSError:
            return []
        times.append((time.perf_counter() - began) * 1000)
    return times


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
    parts = _parts()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="camserver-bench-") as made:
        folder = Path(made)
        if not parts.isdisjoint(("audience", "each", "hls")):
            rows += of_cameras(parts, folder)
        # Each of these is an installation of its own.
        if "cold" in parts:
            rows += cold_rows(_made(folder / "cold"), partial(go2rtc, login=""))
        if "latency" in parts:
            rows += latency_rows(_made(folder / "latency"))
    if "admission" in parts:
        rows += admission_rows()
    report("live", rows)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def of_cameras(parts: set[str], folder: Path) -> list[Row]:
    """What needs simulated cameras."""
    rows: list[Row] = []
    videos = [str(video) for video in _capture_video.videos()]
    asked = {"videos": videos, "cache": str(_capture_video.folder()), "faults_seed": None, "faults_log": None}
    with child("_cameras", count=MANY_CAMERAS, **asked) as cameras:
        base = f"rtsp://127.0.0.1:{int(cameras.hear())}"
        for count in AUDIENCES if "audience" in parts else ():
            rows += audience(base, count, folder)
        if "each" in parts:
            rows += one_each(base, folder)
        if "hls" in parts:
            rows += one_program_each(base, folder)
    return rows


def _parts() -> set[str]:
    usual = [part for part in PARTS if part not in ("hls", "latency") or not QUICK]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=usual, help="parts to measure")
    return set(parser.parse_args().only)


if __name__ == "__main__":
    try:
        main()
    except MissingGo2rtc as error:
        raise SystemExit(f"error: {error}") from None
