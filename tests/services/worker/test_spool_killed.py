import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.rig.processes import REPOSITORY
from tests.services.worker.build import roomy_spool, spooled

ROUNDS = 60


@contextmanager
def writer(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.services.worker.spool_writer", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait()
        process.stdout.close()


def kill_once(process: "subprocess.Popen[str]", after_lines: int) -> list[str]:
    """Starts a writer and kills it after so many lines; everything it said before it died."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    lines: list[str] = []
    pid = 0
    for line in process.stdout:
        word, _, rest = line.strip().partition(" ")
        if word == "ended":
            return lines
        if word == "pid":
            pid = int(rest)
        else:
            lines.append(line.strip())
        if pid and len(lines) >= after_lines:
            os.kill(pid, signal.SIGKILL)
            pid = 0
    raise AssertionError("the process that starts writers ended by itself")


async def test_every_look_reported_durable_survives_kill_9_and_no_half_one_is_left(tmp_path: Path) -> None:
    chance = random.Random()
    durable: set[int] = set()
    left: set[int] = set()
    with writer(tmp_path) as process:
        for _ in range(ROUNDS):
            for line in kill_once(process, chance.randrange(0, 8)):
                word, seq = line.split()
                (durable if word == "durable" else left).add(int(seq))
            spool = roomy_spool(tmp_path)
            await spool.open()
            looks = await spooled(spool)
            found = {look.header.seq for look in looks}
            assert spool.set_aside == 0, "a look was there but could not be read"
            await spool.close()
            assert durable - left <= found
            # One may have become durable without living to say so; one may have left after it said it would.
            assert len(found - durable) <= ROUNDS
            assert all(look.infer == bytes([look.header.seq % 256]) * len(look.infer) for look in looks)
            assert not [name for name in os.listdir(tmp_path / "looks") if name.endswith(".tmp")]
    assert len(durable) > ROUNDS
