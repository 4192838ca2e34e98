"""How many cameras a core bears: the worker's path beside one ffmpeg a look and beside demuxing alone.

Cameras are simulated in a process of their own: 1080p, 15 pictures a second, a keyframe every 2 s, 3 Mbit/s, digest
authentication; four of five show a quiet place, in the fifth somebody walks. Ours is everything the worker does
between camera and disk (bench/_capture_ours.py). CPU is that of the process and its children, by /proc; cameras a
core is what 100 % of one would bear. The cameras' moments are spread evenly, so any window sees its share of looks;
it begins when every camera was looked at once, for that look is due at once and not by the grid.
"""

import json
import tempfile
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

import psutil

from bench import _capture_spawn, _capture_video
from bench._cameras import name_of, prepare_sub_streams
from bench._child import child
from bench._cpu import cpu_seconds
from bench._report import QUICK, Row, figure, less_is_better, more_is_better, report, say
from camserver.domain.looks import phase_ms

CAMERAS = 50
SHORT_SEC, LONG_SEC = 5, 60
ROUNDS = 1 if QUICK else 2
WINDOW_SEC = {SHORT_SEC: 6.0 if QUICK else 30.0, LONG_SEC: 6.0 if QUICK else 60.0}
DEMUX_WINDOW_SEC = 3.0 if QUICK else 20.0
# Until the rings for clips are full, as they are but for the first seconds of a worker's life: memory that is used
# for the first time costs more.
FILL_SEC = {SHORT_SEC: 0.0 if QUICK else 15.0, LONG_SEC: 0.0}
SPAWNS = 4 if QUICK else 20
SPAWNS_AT_ONCE = 2
SPAWN_AIM = 6.0
DEMUX_AIM = 1 / 3  # at most three times its CPU
LAG_MAX_MS = 50.0
LAG_EVERY_SEC = 0.01


@dataclass(frozen=True, slots=True)
class Ours:
    interval_sec: float
    cpu_share: float  # of one core, a camera
    cpu_ms: float  # a look, everything included
    memory_mb: float  # a camera
    threads: int
    lag_p99_ms: float
    idle_lag_p99_ms: float  # of a program that does nothing, at the same time

    @property
    def cameras_per_core(self) -> float:
        return 1 / self.cpu_share


def spread_ids(count: int, interval_ms: int) -> list[str]:
    """Camera ids whose moments divide the interval evenly."""
    wanted = set(range(count))
    found: dict[int, str] = {}
    number = 0
    while wanted:
        name = f"bench-{number}"
        place = phase_ms(zlib.crc32(name.encode()), interval_ms) * count // interval_ms
        if place in wanted:
            wanted.remove(place)
            found[place] = name
        number += 1
    return [found[place] for place in range(count)]


def measure_ours(base: str, interval_sec: int, with_sub: bool = False) -> Ours:
    ids = spread_ids(CAMERAS, interval_sec * 1000)
    # Neighbours in time show different things.
    urls = [f"{base}/{name_of(number)}" for number in range(CAMERAS)]
    gate = _capture_video.learned()
    cameras = [
        {"id": camera_id, "url": url, "sub": f"{url}/sub" if with_sub else None, "gate": gate}
        for camera_id, url in zip(ids, urls, strict=True)
    ]
    asked = {"cameras": cameras, "interval_sec": interval_sec, "with_lag": interval_sec == SHORT_SEC}
    with (
        tempfile.TemporaryDirectory(prefix="camserver-bench-") as spool,
        child("_capture_ours", spool=spool, **asked) as worker,
    ):
        worker.hear()
        empty_mb = _memory_mb(worker.pid)
        worker.tell()
        worker.hear()
        time.sleep(FILL_SEC[interval_sec])
        worker.tell()
        before, began = cpu_seconds(worker.pid), time.perf_counter()
        idle_lag_ms = wait(WINDOW_SEC[interval_sec])
        used, took = cpu_seconds(worker.pid) - before, time.perf_counter() - began
        worker.tell()
        seen = json.loads(worker.hear())
        # A busy machine leaves looks out, or makes late ones of the time before: neither counts for us.
        looks = min(seen["looks"], took * CAMERAS / interval_sec)
        process = psutil.Process(worker.pid)
        made = Ours(
            interval_sec,
            used / looks / interval_sec,
            used / looks * 1000,
            (_memory_mb(worker.pid) - empty_mb) / CAMERAS,
            process.num_threads(),
            seen["lag_p99_ms"],
            idle_lag_ms,
        )
    say(
        f"ours, every {interval_sec} s{', main and sub' if with_sub else ''}: {seen['looks']} looks "
        f"({seen['passed']} passed, {seen['failed']} failed) of {took * CAMERAS / interval_sec:.0f} due, "
        f"{made.cpu_ms:.1f} ms CPU each, {made.cpu_share:.2%} of a core a camera, {made.memory_mb:.1f} MB a camera, "
        f"{made.threads} threads, loop lag p99 {made.lag_p99_ms:.1f} ms (idle program {idle_lag_ms:.1f} ms)"
    )
    return made


def wait(seconds: float) -> float:
    """Waits; by how many milliseconds, p99, it was woken too late meanwhile: what the machine does to everybody."""
    lags_ms = []
    end_sec = time.perf_counter() + seconds
    while (began_sec := time.perf_counter()) < end_sec:
        time.sleep(LAG_EVERY_SEC)
        lags_ms.append((time.perf_counter() - began_sec - LAG_EVERY_SEC) * 1000)
    return sorted(lags_ms)[len(lags_ms) * 99 // 100]


def measure_demux(base: str, reader: str) -> float:
    """Share of one core that a camera takes."""
    urls = [f"{base}/{name_of(number)}" for number in range(CAMERAS)]
    with child("_capture_demux", reader=reader, urls=urls) as demux:
        demux.hear()
        demux.tell()
        first = json.loads(demux.hear())["packets"]
        before, began = cpu_seconds(demux.pid), time.perf_counter()
        time.sleep(DEMUX_WINDOW_SEC)
        used, took = cpu_seconds(demux.pid) - before, time.perf_counter() - began
        demux.tell()
        packets = json.loads(demux.hear())["packets"] - first
    share = used / took / CAMERAS
    say(f"demux only ({reader}): {share:.2%} of a core a camera, {packets / took / CAMERAS:.1f} packets/s a camera")
    return share


def measure_spawn(spawn: _capture_spawn.Spawn, base: str, more: tuple[str, ...] = ()) -> float:
    """CPU seconds of a look."""
    urls = [f"{base}/{name_of(number)}" for number in range(SPAWNS)]
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    with ThreadPoolExecutor(SPAWNS_AT_ONCE) as threads:
        sizes = list(threads.map(lambda url: spawn.look(url, more), urls))
    after, took = getrusage(RUSAGE_CHILDREN), time.perf_counter() - began
    used = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / SPAWNS
    say(
        f"{spawn.name} {' '.join(more)}: {used:.3f} s CPU a look, {median(sizes) / 1000:.0f} kB, "
        f"{took / SPAWNS * SPAWNS_AT_ONCE:.1f} s to the picture"
    )
    return used


def _memory_mb(pid: int) -> float:
    return float(psutil.Process(pid).memory_full_info().pss) / 1e6


def main() -> None:
    spawn = _capture_spawn.find()
    videos = _capture_video.videos()
    cache = _capture_video.folder()
    if not QUICK:
        prepare_sub_streams(videos, cache)
    shown = [str(video) for video in videos]
    with child(
        "_cameras", count=CAMERAS, videos=shown, cache=str(cache), faults_seed=None, faults_log=None
    ) as cameras:
        base = f"rtsp://127.0.0.1:{int(cameras.hear())}"
        # In turns, so that whatever else the machine does meets all of them.
        rounds = [(measure_demux(base, "pyav"), measure_ours(base, SHORT_SEC)) for _ in range(ROUNDS)]
        demux = median(one for one, _ in rounds)
        spawned = measure_spawn(spawn, base)
        rows = against_both(_typical([ours for _, ours in rounds]), demux, spawned, spawn.name)
        rows += against_spawn("", measure_ours(base, LONG_SEC), spawned, spawn.name)
        if not QUICK:
            rows += against_spawn(", main and sub stream", measure_ours(base, SHORT_SEC, True), spawned, spawn.name)
            small = measure_spawn(spawn, base, _capture_spawn.SMALL_PROBE)
            rows.append(figure(f"{spawn.name} with a small probe, CPU a look", small * 1000, "ms"))
            rows.append(figure("the worker's reader alone, CPU a camera", measure_demux(base, "lean") * 100, "%"))
    report("capture", rows)


def _typical(rounds: list[Ours]) -> Ours:
    return sorted(rounds, key=lambda one: one.cpu_share)[(len(rounds) - 1) // 2]


def against_both(ours: Ours, demux: float, spawned: float, spawn_name: str) -> list[Row]:
    lag = less_is_better(
        f"event-loop lag p99, {CAMERAS} cameras every {SHORT_SEC} s", ours.lag_p99_ms, LAG_MAX_MS, "limit", "ms", 1.0
    )
    return [
        *against_spawn("", ours, spawned, spawn_name),
        less_is_better(
            f"CPU a camera, every {SHORT_SEC} s",
            ours.cpu_share * 100,
            demux * 100,
            "demux only (PyAV)",
            "%",
            DEMUX_AIM,
        ),
        figure(f"memory a camera, every {SHORT_SEC} s", ours.memory_mb, "MB"),
        figure(f"threads, {CAMERAS} cameras every {SHORT_SEC} s", ours.threads, ""),
        lag,
        figure("the same lag of an idle program beside it", ours.idle_lag_p99_ms, "ms"),
    ]


def against_spawn(what: str, ours: Ours, spawned: float, spawn_name: str) -> list[Row]:
    name = f"cameras a core, every {ours.interval_sec} s{what}"
    peer = ours.interval_sec / spawned
    return [more_is_better(name, ours.cameras_per_core, peer, f"one {spawn_name} a look", "cameras", SPAWN_AIM)]


if __name__ == "__main__":
    main()
