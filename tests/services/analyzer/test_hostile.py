"""Hostile pictures against `camserver analyzer` as a process: each is answered, and none takes the memory away."""

import asyncio
from pathlib import Path

from tests.rig.processes import Launcher
from tests.services.analyzer.hostile import all_hostile
from tests.services.analyzer.rig import RunningAnalyzer
from tests.services.analyzer.test_process import Process, camserver_process, client

# The worst is a picture of 25 million pixels in Pillow's RGB and once more in its own form, or the numbers behind a
# progressive JPEG, on top of what the allocator keeps of those before. Two at once would be above it.
GROWTH_MB_MAX = 420


def most_mb(pid: int) -> float:
    """The most memory that the process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:"))


async def test_each_is_answered_within_bounded_memory(launcher: Launcher, tmp_path: Path) -> None:
    process = Process(launcher, tmp_path)
    # However slow the machine is, each shall get its own answer.
    process.settings["analyzer"]["analyze_timeout_sec"] = 300
    running = await process.ready()
    pid = camserver_process(running).pid
    async with client() as http:
        analyzer = RunningAnalyzer(process.url, [], http)
        await analyzer.put_vocabulary()
        assert (await analyzer.analyze())[0] == 200
        before_mb = most_mb(pid)
        for picture in all_hostile():
            # Twice at once: as the picture, and as the one before it.
            asked = (analyzer.analyze(picture.content), analyzer.analyze(prev_infer_image=picture.content))
            statuses = [status for status, _ in await asyncio.gather(*asked)]
            assert statuses == [picture.status, 200], picture.name
            assert most_mb(pid) - before_mb < GROWTH_MB_MAX, picture.name
        assert (await analyzer.analyze())[0] == 200
